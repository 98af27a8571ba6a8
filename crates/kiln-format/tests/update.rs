//! Older files become current ones: byte by byte, in every way to write TOML, without losing a comment.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper that fails fails its test")]

use kiln_format::build::{self, ChangeKind, UpdateError};
use kiln_format::render;

/// The updated text; the file's faults where there are any.
fn updated(text: &str) -> String {
    match build::update("build.toml", text, Some("MIT")) {
        Ok(update) => {
            let again = build::update("build.toml", &update.text, None).unwrap();
            assert_eq!(again.text, update.text, "a second run changes nothing");
            assert!(again.changes.iter().all(|change| change.kind == ChangeKind::Kept), "{:?}", again.changes);
            let parsed = build::parse("build.toml", &update.text);
            assert!(!parsed.diagnostics.iter().any(|diagnostic| diagnostic.code == "old-edition"), "{}", update.text);
            update.text
        }
        Err(UpdateError::Refused(parsed)) => panic!("{}", render(&parsed.source, &parsed.diagnostics)),
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// What is told about the changes.
fn changes(text: &str) -> Vec<String> {
    build::update("build.toml", text, Some("MIT")).unwrap().changes.iter().map(ToString::to_string).collect()
}

const FIRST: &str = "# the first edition
[general]
name = \"old-one\" # for ever

[torch]
src = [
  # the binding
  \"torch-ext/torch_binding.cpp\",
]
universal = false # not yet

[kernel.plain]
src = [\"a.cu\"] # cuda by default
depends = [\"torch\"]

  [kernel.apple]
  language = 'metal' # not cuda
  src = [\"a.metal\"]
  depends = []

[kernel.both]
cuda-capabilities = [\"8.0\"] # stays
language = \"cuda-hipify\"
src = [
  \"b.cu\", # one source
]
rocm-archs = [\"gfx942\"] # moves
depends = [\"torch\"] # the last
# between

[kernel.odd]
language = \"cuda\"
rocm-archs = [\"gfx90a\"] # useless
src = []
depends = []
";

#[test]
fn edition_1() {
    insta::assert_snapshot!(updated(FIRST), @r#"
# the first edition
[general]
name = "old-one" # for ever
version = 1
edition = 5
license = "MIT"
backends = ["cuda", "metal", "rocm"]

[torch]
src = [
  # the binding
  "torch-ext/torch_binding.cpp",
]
# not yet

[kernel.plain]
backend = "cuda"
src = ["a.cu"] # cuda by default
depends = ["torch"]

  [kernel.apple]
  backend = 'metal' # not cuda
  src = ["a.metal"]
  depends = []

[kernel.both]
cuda-capabilities = ["8.0"] # stays
backend = "cuda"
src = [
  "b.cu", # one source
]
depends = ["torch"] # the last

[kernel.both_rocm]
backend = "rocm"
src = [
  "b.cu", # one source
]
rocm-archs = ["gfx942"] # moves
depends = ["torch"]
# between

[kernel.odd]
backend = "cuda"
# useless
src = []
depends = []
"#);
    insta::assert_snapshot!(changes(FIRST).join("\n"), @r#"
    added `general.version`: `1`
    added `general.edition`: `5`
    added `general.license`: `"MIT"`
    dropped `torch.universal`: `general.backends` says it
    added `general.backends`: `["cuda", "metal", "rocm"]`
    added `kernel.plain.backend`: `"cuda"`
    changed `kernel.apple.language`: is now `kernel.apple.backend`
    changed `kernel.both.language`: is now `kernel.both.backend`
    changed `kernel.both.language`: `"cuda-hipify"` became `"cuda"`
    added `kernel.both_rocm`: a copy of `kernel.both`
    changed `kernel.odd.language`: is now `kernel.odd.backend`
    dropped `kernel.odd.rocm-archs`: a cuda kernel has no such key
    "#);
}

#[test]
fn edition_1_written_in_other_ways() {
    let inline = "general.name = 'ab'\ntorch = { src = ['t.cpp'], universal = true }\n[kernel]\nk = { language = 'cuda-hipify', src = ['a.cu'], depends = [], rocm-archs = ['gfx942'] }\n";
    insta::assert_snapshot!(updated(inline), @r#"
    general.name = 'ab'
    general.version = 1
    general.edition = 5
    general.license = "MIT"
    general.backends = ["cann", "cpu", "cuda", "metal", "neuron", "rocm", "xpu"]
    torch = { src = ['t.cpp'] }
    [kernel]
    k = { backend = "cuda", src = ['a.cu'], depends = [] }
    k_rocm = { backend = "rocm", src = ['a.cu'], depends = [], rocm-archs = ['gfx942'] }
    "#);
    let dotted = "kernel.k.src = ['a.cu']\nkernel.k.depends = ['torch'] # x\nkernel.k.\"rocm-archs\" = ['gfx942'] # y\nkernel.k.language = \"cuda-hipify\"\ngeneral = { name = 'ab' }\ntorch.src = []";
    insta::assert_snapshot!(updated(dotted), @r#"
    kernel.k.src = ['a.cu']
    kernel.k.depends = ['torch'] # x
    # y
    kernel.k.backend = "cuda"
    kernel.k_rocm = { backend = "rocm", src = ['a.cu'], depends = ['torch'], rocm-archs = ['gfx942'] }
    general = { name = 'ab', version = 1, edition = 5, license = "MIT", backends = ["cuda", "rocm"] }
    torch.src = []
    "#);
    let without_language =
        "general = { name = 'ab' }\nkernel = { k = { src = ['a.cu'], depends = [] } }\ntorch = {}\n[kernel2]\n".replace("[kernel2]\n", "");
    insta::assert_snapshot!(updated(&without_language), @r#"
    general = { name = 'ab', version = 1, edition = 5, license = "MIT", backends = ["cuda"] }
    kernel = { k = { backend = "cuda", src = ['a.cu'], depends = [] } }
    torch = {}
    "#);
}

/// Kernels that are written in turns, and one whose name needs quotes: the copy stands where the old edition has it.
#[test]
fn edition_1_written_by_nobody() {
    let turns = "general.name = 'ab'\ntorch = {}\nkernel.k.src = []\nkernel.j.src = []\nkernel.k.depends = []\nkernel.k.language = 'cuda-hipify'\nkernel.j.depends = []\n";
    insta::assert_snapshot!(updated(turns), @r#"
    general.name = 'ab'
    general.version = 1
    general.edition = 5
    general.license = "MIT"
    general.backends = ["cuda", "rocm"]
    torch = {}
    kernel.k.src = []
    kernel.k_rocm = { backend = "rocm", src = [], depends = [] }
    kernel.j.backend = "cuda"
    kernel.j.src = []
    kernel.k.depends = []
    kernel.k.backend = "cuda"
    kernel.j.depends = []
    "#);
    let quotes = "[general]\nname = 'ab'\n[torch]\n[kernel.'a \"b\" \\ c']\nlanguage = 'cuda-hipify'\nsrc = []\ndepends = []\n";
    insta::assert_snapshot!(updated(quotes), @r#"
    [general]
    name = 'ab'
    version = 1
    edition = 5
    license = "MIT"
    backends = ["cuda", "rocm"]
    [torch]
    [kernel.'a "b" \ c']
    backend = "cuda"
    src = []
    depends = []

    [kernel."a \"b\" \\ c_rocm"]
    backend = "rocm"
    src = []
    depends = []
    "#);
}

#[test]
fn python_only_kernels_of_old() {
    let block = "[general]\nname = 'ab'\n\n[torch] # here\nuniversal = true # for all\nsrc = []\ninclude = [\n  'x', # why\n]\npyext = ['py', 'json']\n";
    insta::assert_snapshot!(updated(block), @r#"
    [general]
    name = 'ab'
    version = 1
    edition = 5
    license = "MIT"
    backends = ["cann", "cpu", "cuda", "metal", "neuron", "rocm", "xpu"]

    [torch-noarch] # here
    # for all
    # why
    pyext = ['py', 'json']
    "#);
    insta::assert_snapshot!(changes(block).join("\n"), @r#"
    added `general.version`: `1`
    added `general.edition`: `5`
    added `general.license`: `"MIT"`
    dropped `torch.universal`: `general.backends` says it
    added `general.backends`: `["cann", "cpu", "cuda", "metal", "neuron", "rocm", "xpu"]`
    dropped `torch.src`: a kernel in Python alone has no use for it
    dropped `torch.include`: a kernel in Python alone has no use for it
    changed `torch`: is now `torch-noarch`
    "#);
    insta::assert_snapshot!(updated("general = { name = 'ab', universal = true }\ntorch = { minver = '2.8', src = [], pyext = ['py'], maxver = '2.9' }\n"), @r#"
    general = { name = 'ab', version = 1, edition = 5, license = "MIT", backends = ["cann", "cpu", "cuda", "metal", "neuron", "rocm", "xpu"] }
    torch-noarch = { pyext = ['py'] }
    "#);
    insta::assert_snapshot!(updated("general.universal = true # all\r\ngeneral.name = 'ab'\r\ntorch.src = []\r\ntorch.pyext = []"), @r#"
    general.backends = ["cann", "cpu", "cuda", "metal", "neuron", "rocm", "xpu"] # all
    general.name = 'ab'
    general.version = 1
    general.edition = 5
    general.license = "MIT"
    torch-noarch.pyext = []
    "#);
    insta::assert_snapshot!(updated("general.universal = true\ngeneral.name = 'ab'\ntorch.src = [ # none\n]\ntorch.include = []"), @r#"
    general.backends = ["cann", "cpu", "cuda", "metal", "neuron", "rocm", "xpu"]
    general.name = 'ab'
    general.version = 1
    general.edition = 5
    general.license = "MIT"
    # none
    torch-noarch = {}
    "#);
}

const SECOND: &str = "[general]
name = \"old-two\"
universal = false # one at a time
cuda-minver = \"12\" # because
cuda-maxver = '13.0.0'
python-depends = [
  \"einops\", # fast
  \"nvidia-cutlass-dsl\", # for cuda
]

[general.hub]
repo-id = \"a/b\"

[torch]
minver = \"2.8.1\"
src = []

[kernel.k]
backend = \"rocm\"
src = [\"k.hip\"]
depends = []

[kernel.c]
backend = \"cuda\"
cuda-minver = \"12.8.0\"
src = [\"k.cu\"]
depends = []
";

#[test]
fn edition_2() {
    insta::assert_snapshot!(updated(SECOND), @r#"
    [general]
    name = "old-two"
    version = 1
    edition = 5
    license = "MIT"
    backends = ["cuda", "rocm"] # one at a time
    cuda.minver = "12.0" # because
    cuda.maxver = '13.0'
    python-depends = [
      "einops", # fast
       # for cuda
    ]
    cuda.python-depends = ["nvidia-cutlass-dsl"]

    [general.hub]
    repo-id = "a/b"

    [torch]
    minver = "2.8.1"
    src = []

    [kernel.k]
    backend = "rocm"
    src = ["k.hip"]
    depends = []

    [kernel.c]
    backend = "cuda"
    cuda-minver = "12.8"
    src = ["k.cu"]
    depends = []
    "#);
    insta::assert_snapshot!(changes(SECOND).join("\n"), @r#"
    added `general.version`: `1`
    added `general.edition`: `5`
    added `general.license`: `"MIT"`
    changed `general.universal`: is now `general.backends`
    changed `general.universal`: `false` became `["cuda", "rocm"]`
    changed `general.cuda-minver`: is now `general.cuda.minver`
    changed `general.cuda-maxver`: is now `general.cuda.maxver`
    changed `general.python-depends`: without `"nvidia-cutlass-dsl"`
    added `general.cuda.python-depends`: `["nvidia-cutlass-dsl"]`
    changed `general.cuda.minver`: `"12"` became `"12.0"`
    changed `general.cuda.maxver`: `'13.0.0'` became `'13.0'`
    kept `torch.minver`: `"2.8.1"` has three numbers, which kernel-builder from 0.17 on does not read
    changed `kernel.c.cuda-minver`: `"12.8.0"` became `"12.8"`
    "#);
    let inline = "general = { name = 'ab', python-depends = ['nvidia-cutlass-dsl', 'einops'], cuda-minver = '12.0' }\ntorch = {}\nkernel.k = { backend = 'cuda', src = [], depends = [] }";
    insta::assert_snapshot!(updated(inline), @r#"
    general = { name = 'ab', version = 1, edition = 5, license = "MIT", backends = ["cuda"], python-depends = ['einops'], cuda.python-depends = ["nvidia-cutlass-dsl"], cuda.minver = '12.0' }
    torch = {}
    kernel.k = { backend = 'cuda', src = [], depends = [] }
    "#);
    let alone = "[general]\nname = 'ab'\npython-depends = ['nvidia-cutlass-dsl'] # all\n[torch]\n[kernel.k]\nbackend = 'cuda'\nsrc = []\ndepends = []\n";
    insta::assert_snapshot!(updated(alone), @r#"
    [general]
    name = 'ab'
    version = 1
    edition = 5
    license = "MIT"
    backends = ["cuda"]
    cuda.python-depends = ['nvidia-cutlass-dsl'] # all
    [torch]
    [kernel.k]
    backend = 'cuda'
    src = []
    depends = []
    "#);
}

#[test]
fn edition_3() {
    insta::assert_snapshot!(updated("[general]\nname = 'ab'\nbackends = ['cpu']"), @r#"
[general]
name = 'ab'
version = 1
edition = 5
license = "MIT"
backends = ['cpu']

[torch-noarch]
"#);
    insta::assert_snapshot!(updated("[general]\r\nbackends = ['cpu']\r\nname = 'ab'\r\nedition = 3\r\nlicense = 'X'\r\n"), @r"
    [general]
    backends = ['cpu']
    name = 'ab'
    version = 1
    edition = 5
    license = 'X'

    [torch-noarch]
    ");
}

#[test]
fn edition_4() {
    let inline = "general = { name = 'ab', version = 3, license = \"MIT\", backends = [\"cuda\", \"cpu\", \"cuda\"] }\ntorch = { src = [], stable-abi = '2.10.0' }\n";
    insta::assert_snapshot!(updated(inline), @r#"
    general = { name = 'ab', version = 3, edition = 5, license = "MIT", backends = ["cuda", "cpu", "cuda"] }
    torch = { src = [], stable-abi = { cuda = '2.10', cpu = '2.10' } }
    "#);
    let dotted = "general.edition = 4\ngeneral.name = 'ab'\ngeneral.version = 3\ngeneral.license = \"MIT\"\ngeneral.backends = [\"xpu\"]\ntorch.stable-abi = \"3\"\n";
    insta::assert_snapshot!(updated(dotted), @r#"
    general.edition = 5
    general.name = 'ab'
    general.version = 3
    general.license = "MIT"
    general.backends = ["xpu"]
    torch.stable-abi = { xpu = "3.0" }
    "#);
}

#[test]
fn a_third_number_is_kept_and_told() {
    let text = "[general]\nname = 'ab'\nversion = 1\nedition = 5\nlicense = 'MIT'\nbackends = ['cpu']\ncuda = { minver = '12', maxver = '12.8.1' }\n[torch]\nstable-abi = '2.11'\n";
    assert_eq!(updated(text), text.replace("'12'", "'12.0'"));
    let update = build::update("build.toml", text, None).unwrap();
    let kinds: Vec<(ChangeKind, &str)> = update.changes.iter().map(|change| (change.kind, change.key.as_str())).collect();
    assert_eq!(kinds, [(ChangeKind::Changed, "general.cuda.minver"), (ChangeKind::Kept, "general.cuda.maxver")]);
}

#[test]
fn a_license_is_never_made_up_nor_overridden() {
    let without = "[general]\nname = 'ab'\nbackends = ['cpu']\n[torch]\n";
    let error = build::update("build.toml", without, None).unwrap_err();
    assert!(matches!(error, UpdateError::NoLicense) && error.hint().unwrap().contains("--license ID"));
    let odd = build::update("build.toml", without, Some("a \"b\"\\\u{7}")).unwrap().text;
    assert!(odd.contains("license = \"a \\\"b\\\"\\\\\\u0007\"\n"), "{odd}");
    let with = "[general]\nname = 'ab'\nbackends = ['cpu']\nlicense = 'X'\n[torch]\n";
    assert!(!updated(with).contains("MIT"));
}

#[test]
fn files_with_errors_are_refused() {
    for text in ["", "[general", "[general]\nname = 'ab'\nbackends = ['cpu']\n[torch]\nsrcs = []\n", "[general]\nedition = 9\n"] {
        assert!(matches!(build::update("build.toml", text, None), Err(UpdateError::Refused(_))), "{text}");
    }
    let taken = "[general]\nname = 'ab'\n[torch]\n[kernel.k]\nlanguage = 'cuda-hipify'\nsrc = []\ndepends = []\n[kernel.k_rocm]\nsrc = []\ndepends = []\n";
    let Err(UpdateError::Refused(parsed)) = build::update("build.toml", taken, Some("MIT")) else { panic!("not refused") };
    insta::assert_snapshot!(render(&parsed.source, &parsed.diagnostics), @r"
    warning[old-edition]: this file is written in edition 1 of the format; it is read as one of edition 5
      --> build.toml:1:1
      = there is no `edition`, and it has `language`
    hint: `kiln update-build .` brings it up to date

    error[invalid-name]: the ROCm half of `k` would be called `k_rocm`, and there is one already
      --> build.toml:5:12
      |
    5 | language = 'cuda-hipify'
      |            ^^^^^^^^^^^^^
    hint: rename one of the two
    ");
}
