//! C++ symbols as text (Itanium C++ ABI).

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

/// How deep names may nest. Symbols are untrusted: depth is paid for with stack.
const DEPTH: u32 = 96;

/// How the demangler brackets what belongs to another entity, and the words that C++ tools use for it.
const BRACKETED: &[(&str, &str)] =
    &[("{vtable(", "vtable for "), ("{vtt(", "VTT for "), ("{virtual override thunk(", "virtual override thunk for ")];

/// Words in front of the entity that a symbol belongs to.
const SPECIAL: &[&str] = &[
    "vtable for ",
    "VTT for ",
    "typeinfo for ",
    "typeinfo name for ",
    "typeinfo fn for ",
    "guard variable for ",
    "construction vtable for ",
    "virtual override thunk for ",
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
    // Compilers add suffixes to the names of clones (`.cold`, `.isra.0`).
    let name = name.split_once('.').map_or(name, |(name, _)| name);
    let full = text(name, DemangleOptions::new().no_params().no_return_type())?;
    let mut rest = full.as_str();
    while let Some(shorter) = SPECIAL.iter().find_map(|special| rest.strip_prefix(special)) {
        rest = shorter;
    }
    // `reference temporary #0 for x`
    if let Some((number, name)) = rest.strip_prefix("reference temporary #").and_then(|text| text.split_once(" for "))
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        rest = name;
    }
    Some(rest.to_owned())
}

fn text(name: &str, options: DemangleOptions) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let parse = ParseOptions::default().recursion_limit(DEPTH);
    let symbol = BorrowedSymbol::new_with_options(name.as_bytes(), &parse).ok()?;
    let mut text = String::new();
    symbol.structured_demangle(&mut text, &options.recursion_limit(DEPTH)).ok()?;
    Some(in_words(text))
}

/// `{vtable(x)}` as `vtable for x`.
fn in_words(text: String) -> String {
    for (bracket, words) in BRACKETED {
        if let Some(mut inner) = text.strip_prefix(bracket).and_then(|rest| rest.strip_suffix(")}")) {
            // A thunk's offsets stand before its function.
            while let Some((_, rest)) = inner.strip_prefix('{').and_then(|offset| offset.split_once("}, ")) {
                inner = rest;
            }
            return format!("{words}{inner}");
        }
    }
    text
}
