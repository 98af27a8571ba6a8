//! Which names belong to the C++ runtime, whoever exports them.

use crate::demangle;

/// Namespaces of libstdc++ and its ABI.
const NAMESPACES: &[&str] = &["std::", "__gnu_cxx::", "__gnu_debug::", "__gnu_parallel::", "__cxxabiv1::", "__gnu_internal::"];

/// What the C++ ABI, the unwinder and the compiler's support library call themselves in C.
const PREFIXES: &[&str] = &[
    "__cxa_",
    "__gxx_",
    "__gcc_",
    "__dynamic_cast",
    "_Unwind_",
    "__register_frame",
    "__deregister_frame",
    "__emutls_",
    "__once_proxy",
    "__atomic_",
    "_ITM_",
    "_ZGTt",
];

/// Whether `name` belongs to the C++ runtime: an entity of `std::` or of the ABI's namespaces, global `operator new` and
/// `delete`, type information of the built-in types, exception handling, the compiler's support routines.
///
/// Torch's libraries export hundreds of these, copied in by their own link. Which ones differs between releases: an
/// extension that binds to a copy loads with that release only.
pub fn is_of_runtime(name: &str) -> bool {
    if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || is_type_info_of_builtin(name) {
        return true;
    }
    // The short forms that the ABI has for `std` catch what the demangler does not know.
    let bare = name.strip_prefix("_Z").map(|rest| rest.strip_prefix("TV").or_else(|| rest.strip_prefix("NK")).unwrap_or(rest));
    if bare.is_some_and(|rest| rest.trim_start_matches('N').starts_with("St")) {
        return true;
    }
    demangle::entity(name).is_some_and(|entity| {
        NAMESPACES.iter().any(|space| entity.starts_with(space))
            || matches!(entity.as_str(), "operator new" | "operator new[]" | "operator delete" | "operator delete[]")
    })
}

/// `_ZTIi`, `_ZTSPKc` and the like: the runtime has them for every built-in type, pointers and constant pointers.
fn is_type_info_of_builtin(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("_ZTI").or_else(|| name.strip_prefix("_ZTS")) else { return false };
    let rest = rest.strip_prefix("PK").or_else(|| rest.strip_prefix('P')).unwrap_or(rest);
    match rest.as_bytes() {
        [letter] => letter.is_ascii_lowercase(),
        [b'D', letter] => letter.is_ascii_lowercase(),
        _ => false,
    }
}
