//! What is known of single flags.
//!
//! Sources: the option summaries of the manuals of gcc, clang and nvcc. A flag that stands in no table is the compiler's own business.

/// What a flag would do that no extension can have, or that has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Makes the compiler stop early, print something, or make another kind of file.
    Mode,
    /// Says which files were read, and where to write that.
    Depfile,
    /// Names the output.
    Output,
    /// Says what language the sources are.
    Language,
    /// Writes files beside the object.
    Beside,
    /// Names a directory to search for headers.
    IncludeDir,
    /// Reads a file before the source.
    PreInclude,
    /// Reads a file that no depfile names.
    HiddenInput,
    /// Says where the compiler's own parts, and the system's headers, are.
    Parts,
    /// Makes code for another platform.
    Platform,
    /// Leaves the code to the linker.
    LinkTime,
    /// Links the C++ runtime into the extension.
    StaticRuntime,
    /// Links the unwinder into the extension.
    StaticUnwinder,
    /// Means the linker alone.
    Linker,
    /// Says how many processors a step may use.
    Jobs,
}

/// How a flag and its value are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The flag alone.
    Alone,
    /// The flag, its value in the next argument.
    Next,
    /// The flag, its value in the next argument or joined to it.
    Either,
    /// The flag with any text joined to it, or alone.
    Starts,
    /// The flag with `=` and its value joined to it, or alone.
    Equals,
    /// The flag with a number joined to it, behind `=` or at once, or the number in the next argument.
    NumberOrNext,
    /// The flag with `=` and its value joined to it, or the value in the next argument.
    EqualsOrNext,
}

/// A known flag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) flag: &'static str,
    pub(super) form: Form,
    /// None: fine, and listed for its value alone.
    pub(super) class: Option<Class>,
}

const fn bad(flag: &'static str, form: Form, class: Class) -> Known {
    Known { flag, form, class: Some(class) }
}

const fn fine(flag: &'static str, form: Form) -> Known {
    Known { flag, form, class: None }
}

/// Flags of gcc and clang, and of compilers made of them. The first that fits counts, so the longer of two stands first.
pub(super) const HOST: &[Known] = &[
    bad("-static-libstdc++", Form::Alone, Class::StaticRuntime),
    bad("-static-libgcc", Form::Alone, Class::StaticUnwinder),
    // What is made.
    bad("-c", Form::Alone, Class::Mode),
    bad("--compile", Form::Alone, Class::Mode),
    bad("-S", Form::Alone, Class::Mode),
    bad("--assemble", Form::Alone, Class::Mode),
    bad("-E", Form::Alone, Class::Mode),
    bad("--preprocess", Form::Alone, Class::Mode),
    bad("-fsyntax-only", Form::Alone, Class::Mode),
    bad("--syntax-only", Form::Alone, Class::Mode),
    bad("-fpreprocessed", Form::Alone, Class::Mode),
    bad("-fdirectives-only", Form::Alone, Class::Mode),
    bad("-emit-llvm", Form::Alone, Class::Mode),
    bad("-emit-ast", Form::Alone, Class::Mode),
    bad("-emit-pch", Form::Alone, Class::Mode),
    bad("--precompile", Form::Alone, Class::Mode),
    bad("--analyze", Form::Alone, Class::Mode),
    bad("-###", Form::Alone, Class::Mode),
    bad("--version", Form::Alone, Class::Mode),
    bad("--help", Form::Equals, Class::Mode),
    bad("--target-help", Form::Alone, Class::Mode),
    bad("-dumpbase", Form::Next, Class::Beside),
    bad("-dumpbase-ext", Form::Next, Class::Beside),
    bad("-dumpdir", Form::Next, Class::Beside),
    bad("-dump", Form::Starts, Class::Mode),
    bad("-print-", Form::Starts, Class::Mode),
    bad("--print-", Form::Starts, Class::Mode),
    bad("-d", Form::Alone, Class::Mode),
    bad("-dM", Form::Alone, Class::Mode),
    bad("-dD", Form::Alone, Class::Mode),
    bad("-dN", Form::Alone, Class::Mode),
    bad("-dI", Form::Alone, Class::Mode),
    bad("-dU", Form::Alone, Class::Mode),
    bad("-M", Form::Alone, Class::Mode),
    bad("-MM", Form::Alone, Class::Mode),
    bad("--dependencies", Form::Alone, Class::Mode),
    bad("--user-dependencies", Form::Alone, Class::Mode),
    bad("-MD", Form::Alone, Class::Depfile),
    bad("-MMD", Form::Alone, Class::Depfile),
    bad("--write-dependencies", Form::Alone, Class::Depfile),
    bad("--write-user-dependencies", Form::Alone, Class::Depfile),
    bad("-MF", Form::Either, Class::Depfile),
    bad("-MT", Form::Either, Class::Depfile),
    bad("-MQ", Form::Either, Class::Depfile),
    bad("-MJ", Form::Either, Class::Depfile),
    bad("-MP", Form::Alone, Class::Depfile),
    bad("-MG", Form::Alone, Class::Depfile),
    bad("-MV", Form::Alone, Class::Depfile),
    bad("--output", Form::EqualsOrNext, Class::Output),
    bad("-o", Form::Either, Class::Output),
    bad("--language", Form::EqualsOrNext, Class::Language),
    bad("-x", Form::Either, Class::Language),
    bad("--save-temps", Form::Equals, Class::Beside),
    bad("-save-temps", Form::Equals, Class::Beside),
    bad("-gsplit-dwarf", Form::Equals, Class::Beside),
    bad("-ftest-coverage", Form::Alone, Class::Beside),
    bad("--coverage", Form::Alone, Class::Beside),
    bad("-coverage", Form::Alone, Class::Beside),
    bad("-fdump-", Form::Starts, Class::Beside),
    bad("-ftime-trace", Form::Equals, Class::Beside),
    bad("-fsave-optimization-record", Form::Equals, Class::Beside),
    bad("-aux-info", Form::Next, Class::Beside),
    // What is read.
    bad("--include-directory-after", Form::EqualsOrNext, Class::IncludeDir),
    bad("--include-directory", Form::EqualsOrNext, Class::IncludeDir),
    bad("-I", Form::Either, Class::IncludeDir),
    bad("-isystem-after", Form::Either, Class::IncludeDir),
    bad("-isystem", Form::Either, Class::IncludeDir),
    bad("-iquote", Form::Either, Class::IncludeDir),
    bad("-idirafter", Form::Either, Class::IncludeDir),
    bad("-iprefix", Form::Either, Class::IncludeDir),
    bad("-iwithprefixbefore", Form::Either, Class::IncludeDir),
    bad("-iwithprefix", Form::Either, Class::IncludeDir),
    bad("-iframework", Form::Either, Class::IncludeDir),
    bad("-cxx-isystem", Form::Either, Class::IncludeDir),
    bad("-F", Form::Either, Class::IncludeDir),
    bad("--embed-dir", Form::Equals, Class::IncludeDir),
    bad("-include-pch", Form::Next, Class::HiddenInput),
    bad("--include", Form::EqualsOrNext, Class::PreInclude),
    bad("-include", Form::Either, Class::PreInclude),
    bad("--imacros", Form::EqualsOrNext, Class::PreInclude),
    bad("-imacros", Form::Either, Class::PreInclude),
    bad("-fplugin-", Form::Starts, Class::HiddenInput),
    bad("-fplugin", Form::Equals, Class::HiddenInput),
    bad("-load", Form::Next, Class::HiddenInput),
    bad("-fpass-plugin", Form::Equals, Class::HiddenInput),
    bad("-fprofile-use", Form::Equals, Class::HiddenInput),
    bad("-fbranch-probabilities", Form::Alone, Class::HiddenInput),
    bad("-fprofile-instr-use", Form::Equals, Class::HiddenInput),
    bad("-fprofile-sample-use", Form::Equals, Class::HiddenInput),
    bad("-fauto-profile", Form::Equals, Class::HiddenInput),
    bad("-ivfsoverlay", Form::Either, Class::HiddenInput),
    bad("-fmodules", Form::Alone, Class::HiddenInput),
    bad("-fmodules-ts", Form::Alone, Class::HiddenInput),
    bad("-fmodule-file", Form::Equals, Class::HiddenInput),
    bad("-fmodule-map-file", Form::Equals, Class::HiddenInput),
    bad("-fmodule-mapper", Form::Equals, Class::HiddenInput),
    bad("-fprebuilt-module-path", Form::Equals, Class::HiddenInput),
    bad("--config", Form::EqualsOrNext, Class::HiddenInput),
    // Who makes it, and for what.
    bad("-specs", Form::Equals, Class::Parts),
    bad("--specs", Form::EqualsOrNext, Class::Parts),
    bad("-wrapper", Form::Next, Class::Parts),
    bad("--sysroot", Form::EqualsOrNext, Class::Parts),
    bad("-isysroot", Form::Either, Class::Parts),
    bad("--gcc-toolchain", Form::EqualsOrNext, Class::Parts),
    bad("--gcc-install-dir", Form::Equals, Class::Parts),
    bad("-resource-dir", Form::EqualsOrNext, Class::Parts),
    bad("-working-directory", Form::EqualsOrNext, Class::Parts),
    bad("-imultilib", Form::Next, Class::Parts),
    bad("-B", Form::Either, Class::Parts),
    bad("-target", Form::Next, Class::Platform),
    bad("--target", Form::EqualsOrNext, Class::Platform),
    bad("-m16", Form::Alone, Class::Platform),
    bad("-m32", Form::Alone, Class::Platform),
    bad("-mx32", Form::Alone, Class::Platform),
    bad("-flto-partition", Form::Equals, Class::LinkTime),
    bad("-flto", Form::Equals, Class::LinkTime),
    bad("-fwhole-program", Form::Alone, Class::LinkTime),
    // Of no use where nothing is linked.
    bad("-l", Form::Either, Class::Linker),
    bad("-L", Form::Either, Class::Linker),
    bad("-Wl,", Form::Starts, Class::Linker),
    bad("-Xlinker", Form::Next, Class::Linker),
    bad("-shared", Form::Alone, Class::Linker),
    bad("-static", Form::Alone, Class::Linker),
    bad("-rdynamic", Form::Alone, Class::Linker),
    bad("-pie", Form::Alone, Class::Linker),
    bad("-s", Form::Alone, Class::Linker),
    bad("-nostdlib", Form::Alone, Class::Linker),
    bad("-nodefaultlibs", Form::Alone, Class::Linker),
    bad("-fuse-ld", Form::Equals, Class::Linker),
    bad("-T", Form::Next, Class::Linker),
    bad("-u", Form::Next, Class::Linker),
    bad("-z", Form::Next, Class::Linker),
    // Fine, with a value.
    fine("-D", Form::Either),
    fine("-U", Form::Either),
    fine("-A", Form::Either),
    fine("-mllvm", Form::Next),
    fine("--param", Form::EqualsOrNext),
    fine("-arch", Form::Next),
    fine("-Xpreprocessor", Form::Next),
    fine("-Xassembler", Form::Next),
    fine("-Xclang", Form::Next),
    fine("-Xarch_host", Form::Next),
    fine("-Xarch_device", Form::Next),
    fine("-Xopenmp-target", Form::Next),
    fine("-Xsycl-target-", Form::Next),
    fine("-Xs", Form::Next),
];

/// Flags that nvcc reads in its own way; those of [`HOST`] that it shares are not repeated. A value may always stand in the next
/// argument, and most names have two spellings.
pub(super) const NVCC: &[Known] = &[
    bad("-cuda", Form::Alone, Class::Mode),
    bad("--cuda", Form::Alone, Class::Mode),
    bad("-cubin", Form::Alone, Class::Mode),
    bad("--cubin", Form::Alone, Class::Mode),
    bad("-fatbin", Form::Alone, Class::Mode),
    bad("--fatbin", Form::Alone, Class::Mode),
    bad("-ptx", Form::Alone, Class::Mode),
    bad("--ptx", Form::Alone, Class::Mode),
    bad("-optix-ir", Form::Alone, Class::Mode),
    bad("--optix-ir", Form::Alone, Class::Mode),
    bad("-ltoir", Form::Alone, Class::Mode),
    bad("--ltoir", Form::Alone, Class::Mode),
    bad("-dlink", Form::Alone, Class::Mode),
    bad("--device-link", Form::Alone, Class::Mode),
    bad("-dryrun", Form::Alone, Class::Mode),
    bad("--dryrun", Form::Alone, Class::Mode),
    bad("-run", Form::Alone, Class::Mode),
    bad("--run", Form::Alone, Class::Mode),
    bad("-lib", Form::Alone, Class::Mode),
    bad("--lib", Form::Alone, Class::Mode),
    bad("-link", Form::Alone, Class::Mode),
    bad("--link", Form::Alone, Class::Mode),
    bad("-h", Form::Alone, Class::Mode),
    bad("-V", Form::Alone, Class::Mode),
    bad("-arch-ls", Form::Alone, Class::Mode),
    bad("--list-gpu-arch", Form::Alone, Class::Mode),
    bad("--list-gpu-code", Form::Alone, Class::Mode),
    bad("--generate-dependencies", Form::Starts, Class::Mode),
    bad("--generate-nonsystem-dependencies", Form::Starts, Class::Mode),
    bad("-odir", Form::EqualsOrNext, Class::Output),
    bad("--output-directory", Form::EqualsOrNext, Class::Output),
    bad("--output-file", Form::EqualsOrNext, Class::Output),
    bad("-keep-dir", Form::EqualsOrNext, Class::Beside),
    bad("--keep-dir", Form::EqualsOrNext, Class::Beside),
    bad("-keep", Form::Alone, Class::Beside),
    bad("--keep", Form::Alone, Class::Beside),
    bad("-time", Form::EqualsOrNext, Class::Beside),
    bad("--time", Form::EqualsOrNext, Class::Beside),
    bad("-fdevice-time-trace", Form::EqualsOrNext, Class::Beside),
    bad("--fdevice-time-trace", Form::EqualsOrNext, Class::Beside),
    bad("-t", Form::NumberOrNext, Class::Jobs),
    bad("--threads", Form::EqualsOrNext, Class::Jobs),
    bad("-split-compile", Form::EqualsOrNext, Class::Jobs),
    bad("--split-compile", Form::EqualsOrNext, Class::Jobs),
    bad("--x", Form::EqualsOrNext, Class::Language),
    bad("--include-path", Form::EqualsOrNext, Class::IncludeDir),
    bad("--system-include", Form::EqualsOrNext, Class::IncludeDir),
    bad("--pre-include", Form::EqualsOrNext, Class::PreInclude),
    bad("-optf", Form::EqualsOrNext, Class::HiddenInput),
    bad("--options-file", Form::EqualsOrNext, Class::HiddenInput),
    bad("-ccbin", Form::EqualsOrNext, Class::Parts),
    bad("--compiler-bindir", Form::EqualsOrNext, Class::Parts),
    bad("-m32", Form::Alone, Class::Platform),
    bad("-target-dir", Form::EqualsOrNext, Class::Parts),
    bad("--target-directory", Form::EqualsOrNext, Class::Parts),
    bad("--library-path", Form::EqualsOrNext, Class::Linker),
    bad("--library", Form::EqualsOrNext, Class::Linker),
    bad("--linker-options", Form::EqualsOrNext, Class::Linker),
    bad("-Xnvlink", Form::EqualsOrNext, Class::Linker),
    // Fine, and like nothing of the tables above. (`-fdevice-..`, `-lineinfo` and others begin like host flags.)
    fine("-lineinfo", Form::Alone),
    fine("-dc", Form::Alone),
    fine("-dlto", Form::Alone),
    fine("-code", Form::EqualsOrNext),
    fine("-arch", Form::EqualsOrNext),
    fine("-gencode", Form::EqualsOrNext),
    fine("-maxrregcount", Form::EqualsOrNext),
    fine("-std", Form::EqualsOrNext),
    fine("--std", Form::EqualsOrNext),
    fine("-Xptxas", Form::EqualsOrNext),
    fine("-Xcudafe", Form::EqualsOrNext),
    fine("-Xfatbin", Form::EqualsOrNext),
    fine("-diag-suppress", Form::EqualsOrNext),
];

/// Flags that hand their value, split at commas, to the host compiler.
pub(super) const TO_HOST: &[&str] = &["-Xcompiler", "--compiler-options"];

/// Flags whose value another part of the compiler reads as a flag.
pub(super) const PASS: &[&str] = &["-Xclang", "-Xpreprocessor", "-Xarch_host", "-Xarch_device"];

/// Flags whose value `native` stands for the machine that compiles.
pub(super) const NATIVE: &[&str] = &[
    "-march",
    "-mtune",
    "-mcpu",
    "-arch",
    "--gpu-architecture",
    "-gencode",
    "--generate-code",
    "-code",
    "--gpu-code",
    "--offload-arch",
    "--amdgpu-target",
    "--cuda-gpu-arch",
];
