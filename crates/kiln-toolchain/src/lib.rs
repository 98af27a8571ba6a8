//! Where compilers, headers and link stubs come from.
