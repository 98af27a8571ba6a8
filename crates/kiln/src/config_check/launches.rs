//! Kernels that are launched on the default stream: they run beside what torch has on its own, and order is lost in silence.

use kiln_format::build::{Framework, Kernel};
use kiln_format::{Build, Dependency, Diagnostic, ProjectPath, Spanned};

/// The place of the stream among the arguments of a launch.
const STREAM: usize = 4;

/// Where a unit that sees torch has its stream from.
const OF_TORCH: &str = "give the launch four arguments: `<<<blocks, threads, 0, kiln::current_stream(device)>>>` with `kiln_stream.h`, \
                        which Kiln generates, or a stream that the caller hands in";
/// Where a unit of a kernel of tvm-ffi has it from.
const OF_TVM_FFI: &str =
    "give the launch four arguments, with a stream that the binding hands in: `TVMFFIEnvGetStream` gives it for a device";
/// Where a unit that sees no framework has it from.
const OF_CALLER: &str = "give the launch four arguments, with a stream that the binding hands in";

/// The remark on a source of `kernel` whose text this is, which names the first launch.
pub(super) fn check(build: &Build, kernel: &Kernel, source: &Spanned<ProjectPath>, text: &str) -> Option<Diagnostic> {
    let line = without_stream(text)?;
    let message = format!("`{}:{line}` launches a kernel without a stream: it runs on the default one, not on the caller's", source.value);
    let hint = match &build.framework {
        Framework::TvmFfi(_) => OF_TVM_FFI,
        _ if kernel.depends.iter().any(|listed| listed.value == Dependency::Torch) => OF_TORCH,
        _ => OF_CALLER,
    };
    Some(Diagnostic::warning("default-stream", source.span, message).with_hint(hint.to_owned()))
}

/// The line of the first launch that names no stream.
fn without_stream(text: &str) -> Option<usize> {
    if !text.contains("<<<") {
        return None;
    }
    let code = code(text);
    let mut from = 0;
    while let Some(at) = code.get(from..)?.find("<<<").map(|at| from + at) {
        from = at + 3;
        let rest = code.get(from..)?;
        // What is no launch has no end of one.
        let Some(end) = rest.find(">>>").filter(|end| rest.get(..*end).is_some_and(|inside| !inside.contains([';', '{']))) else {
            continue;
        };
        if arguments(rest.get(..end)?) < STREAM {
            return Some(code.get(..at)?.matches('\n').count() + 1);
        }
    }
    None
}

/// How many arguments a list has.
fn arguments(list: &str) -> usize {
    let mut depth = 0_usize;
    let mut count = 1;
    for letter in list.chars() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => count += 1,
            _ => {}
        }
    }
    count
}

/// A text whose comments and strings are blank; lines stay where they are.
fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match rest.as_bytes() {
            [b'/', b'/', ..] => rest.find('\n').unwrap_or(rest.len()),
            [b'/', b'*', ..] => rest.find("*/").map_or(rest.len(), |end| end + 2),
            [b'"', ..] => string(rest),
            _ => {
                code.push(first);
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
                continue;
            }
        };
        let (blank, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
        code.extend(blank.chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
        rest = behind;
    }
    code
}

/// The length of a string with its quotes.
fn string(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '"' => return at + 1,
            '\n' => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::device_sources;
    use super::super::testing::Project;
    use super::*;

    const CPU: &str = "[kernel.c]\nbackend = \"cpu\"\ndepends = []\nsrc = []\n";

    #[test]
    fn the_stream_is_had_from_what_the_kernel_sees() {
        let hint = |framework: &str, depends: &str| {
            let kernel = format!("[kernel.k]\nbackend = \"cuda\"\ndepends = [{depends}]\nsrc = [\"k.cu\"]\n");
            let project = Project::new(&format!("[{framework}]\nsrc = [\"b.cpp\"]\n{kernel}{CPU}"), &["k.cu"]);
            fs::write(project.root().join("k.cu"), "void f() { k<<<1, 1>>>(); }").unwrap();
            device_sources::check(project.root(), &project.build).remove(0).hint.unwrap()
        };
        assert_eq!(hint("torch", "\"torch\""), OF_TORCH);
        assert_eq!(hint("torch", ""), OF_CALLER);
        assert_eq!(hint("tvm-ffi", ""), OF_TVM_FFI);
    }

    #[test]
    fn launches_without_a_stream() {
        assert_eq!(without_stream("void f() {\n  k<<<1, 1>>>(p);\n}"), Some(2));
        assert_eq!(without_stream("k<<<dim3(1, 2, 3), 4, 0>>>(p);"), Some(1));
        assert_eq!(without_stream("a<<<1, 1, 0, s>>>(p);\n\nk<T>\n<<<n,\n m>>>(p);"), Some(4));
        for fine in [
            "k<<<1, 1, 0, stream>>>(p);",
            "k<<<dim3(1, 2), 1, f(a, b), s>>>();",
            "// k<<<1, 1>>>(p);\n/* k<<<1, 1>>>(p);\n*/ \"k<<<1, 1>>>(p)\"",
            "x = 1 <<< y; { } a >>> b",
            "",
            "\"\\\"<<<1>>>\"",
        ] {
            assert_eq!(without_stream(fine), None, "{fine}");
        }
    }
}
