// GLIBCXX_3.4.26, gcc 9: default constructors. GLIBCXX_3.4.21 has those that take the mode.
#define IN 8
#define OUT 16

#define DEFAULT_CONSTRUCTOR(class_name, kind, mode)                                                              \
  extern "C" void _ZNSt7__cxx11##class_name##IcSt11char_traitsIcESaIcEE##kind##ESt13_Ios_Openmode(void *, int); \
  extern "C" void _ZNSt7__cxx11##class_name##IcSt11char_traitsIcESaIcEE##kind##Ev(void *self) {                 \
    _ZNSt7__cxx11##class_name##IcSt11char_traitsIcESaIcEE##kind##ESt13_Ios_Openmode(self, mode);                \
  }
DEFAULT_CONSTRUCTOR(19basic_ostringstream, C1, OUT)
DEFAULT_CONSTRUCTOR(19basic_istringstream, C1, IN)
DEFAULT_CONSTRUCTOR(18basic_stringstream, C1, IN | OUT)
DEFAULT_CONSTRUCTOR(15basic_stringbuf, C1, IN | OUT)
DEFAULT_CONSTRUCTOR(15basic_stringbuf, C2, IN | OUT)
