// GLIBCXX_3.4.26, gcc 9: moves. A copy is a valid move.
#define MOVES(class_name)                                                                                                       \
  extern "C" {                                                                                                                  \
  void _ZNSt##class_name##C1ERKS_(void *, const void *);                                                                       \
  void _ZNSt##class_name##C2ERKS_(void *, const void *);                                                                       \
  void *_ZNSt##class_name##aSERKS_(void *, const void *);                                                                      \
  void _ZNSt##class_name##C1EOS_(void *self, void *other) { _ZNSt##class_name##C1ERKS_(self, other); }                        \
  void _ZNSt##class_name##C2EOS_(void *self, void *other) { _ZNSt##class_name##C2ERKS_(self, other); }                        \
  void *_ZNSt##class_name##aSEOS_(void *self, void *other) { return _ZNSt##class_name##aSERKS_(self, other); }               \
  }
MOVES(13runtime_error)
MOVES(11logic_error)
