// GLIBCXX_3.4.32, gcc 13: <iostream> names this function instead of making an object that sets the streams up. The object is here.
namespace std {
class ios_base {
 public:
  class Init {
   public:
    Init();
    ~Init();
  };
};
}  // namespace std

extern "C" void _ZSt21ios_base_library_initv() {}
static std::ios_base::Init streams __attribute__((init_priority(101)));
