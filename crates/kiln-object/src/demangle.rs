//! C++ symbols as text (Itanium C++ ABI).

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

/// How deep names may nest. Symbols are untrusted: depth is paid for with stack.
const DEPTH: u32 = 96;

/// What cpp_demangle and the C++ ABI put in front of an entity that belongs to another one.
const SPECIAL: &[&str] = &[
    "vtable for ",
    "VTT for ",
    "typeinfo for ",
    "typeinfo name for ",
    "typeinfo fn for ",
    "guard variable for ",
    "reference temporary for ",
    "construction vtable for ",
    "non-virtual thunk to ",
    "virtual thunk to ",
    "covariant return thunk to ",
    "transaction clone for ",
    "non-transaction clone for ",
    "TLS init function for ",
    "TLS wrapper function for ",
];

/// The declaration that a symbol stands for, such as `c10::gone(int)`. None for a name that is not a C++ symbol.
pub fn demangle(name: &str) -> Option<String> {
    text(name, DemangleOptions::new())
}

/// The qualified name of what a symbol belongs to: `at::Tensor` for its vtable, `c10::gone` for `c10::gone(int)`, without
/// return type, arguments and such words as `vtable for`. None for a name that is not a C++ symbol.
pub fn entity(name: &str) -> Option<String> {
    let full = text(name, DemangleOptions::new().no_params().no_return_type())?;
    let mut rest = full.as_str();
    while let Some(shorter) = SPECIAL.iter().find_map(|special| rest.strip_prefix(special)) {
        rest = shorter;
    }
    Some(rest.to_owned())
}

fn text(name: &str, options: DemangleOptions) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let parse = ParseOptions::default().recursion_limit(DEPTH);
    // Compilers add suffixes to clones (`.cold`, `.isra.0`) that are no part of the mangled name.
    let (symbol, tail) = BorrowedSymbol::with_tail_and_options(name.as_bytes(), &parse).ok()?;
    if !(tail.is_empty() || tail.starts_with(b".")) {
        return None;
    }
    let mut text = String::new();
    symbol.structured_demangle(&mut text, &options.recursion_limit(DEPTH)).ok()?;
    Some(text)
}
