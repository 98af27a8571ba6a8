// CXXABI_1.3.13, gcc 11: copying and destroying an exception_ptr inline.
//
// The old copy constructor and destructor would do, but headers define both inline in terms of the two functions here: where a
// compiler emits them, they and the shims would call each other for ever. The constructor from a pointer (CXXABI_1.3.11) and the
// destructor of nested_exception (1.3.5) are never inline.
struct exception_ptr {
  void *object;
};
struct nested_exception {
  void *table;
  exception_ptr exception;
};

extern "C" {
void _ZNSt15__exception_ptr13exception_ptrC1EPv(exception_ptr *, void *) noexcept;
void _ZNSt16nested_exceptionD1Ev(nested_exception *) noexcept;

void _ZNSt15__exception_ptr13exception_ptr9_M_addrefEv(exception_ptr *self) noexcept {
  // Taking a share counts; what takes it is never destroyed.
  exception_ptr share;
  if (self->object) _ZNSt15__exception_ptr13exception_ptrC1EPv(&share, self->object);
}

void _ZNSt15__exception_ptr13exception_ptr10_M_releaseEv(exception_ptr *self) noexcept {
  nested_exception last = {nullptr, *self};
  self->object = nullptr;
  if (last.exception.object) _ZNSt16nested_exceptionD1Ev(&last);
}
}
