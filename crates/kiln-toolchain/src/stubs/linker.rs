//! Names that no library has to provide.

/// Names that linkers define themselves (GNU ld's and lld's manuals, "symbols" and "start/stop").
const MADE: &[&str] = &[
    "_GLOBAL_OFFSET_TABLE_",
    "_PROCEDURE_LINKAGE_TABLE_",
    "_DYNAMIC",
    "__GNU_EH_FRAME_HDR",
    "__ehdr_start",
    "__executable_start",
    "__bss_start",
    "__bss_start__",
    "__bss_end__",
    "_etext",
    "etext",
    "_edata",
    "edata",
    "_end",
    "end",
    "__end__",
    "__preinit_array_start",
    "__preinit_array_end",
    "__init_array_start",
    "__init_array_end",
    "__fini_array_start",
    "__fini_array_end",
    "__rela_iplt_start",
    "__rela_iplt_end",
    "_TLS_MODULE_BASE_",
];

/// Whether the linker defines `name`. That is also so for the ends of a section that is called like a C identifier.
pub(super) fn is_made_by_linker(name: &str) -> bool {
    MADE.contains(&name)
        || name.strip_prefix("__start_").or_else(|| name.strip_prefix("__stop_")).is_some_and(|section| !section.is_empty())
}

/// Whether a weak name may be left without a provider: code that has it asks first whether it is there. Profiling, transactional
/// memory, the start code of thread-local variables (`_ZTH`), and what the C++ runtime asks of a thread library.
pub(super) fn may_stay_undefined(name: &str) -> bool {
    const PREFIXES: &[&str] = &["_ITM_", "__cxa_", "pthread_", "__pthread_", "__gthrw_", "_ZGTt", "_ZTH"];
    matches!(name, "__gmon_start__" | "_Jv_RegisterClasses" | "__TMC_END__") || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
