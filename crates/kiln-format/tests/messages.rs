//! Whole messages for every kind of wrong value in `build.toml`.

mod follow;

use kiln_format::{build, render};

/// Everything said about `text`. What its hints say to write helps.
fn said(text: &str) -> String {
    let parsed = build::parse("build.toml", text);
    follow::follow_hints(&parsed);
    assert_eq!(parsed.build.is_some(), parsed.errors().count() == 0);
    render(&parsed.source, &parsed.diagnostics)
}

/// A right file with `from` replaced by `to`; `from` stands in it once.
fn but(from: &str, to: &str) -> String {
    let right = r#"[general]
name = "relu"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cuda"]

[torch]
src = ["torch-ext/torch_binding.cpp"]

[kernel.k]
backend = "cuda"
depends = ["torch"]
src = ["cuda/k.cu"]
"#;
    assert_eq!(said(right), "");
    assert_eq!(right.matches(from).count(), 1, "{from}");
    said(&right.replace(from, to))
}

#[test]
fn syntax() {
    insta::assert_snapshot!(said("[general\nname = \"relu\"\nversion = = 1\n"), @"
    error[syntax]: unclosed table, expected `]`
      --> build.toml:1:9
      |
    1 | [general
      |         ^

    error[syntax]: extra `=`, expected nothing
      --> build.toml:3:11
      |
    3 | version = = 1
      |           ^
    ");
    insta::assert_snapshot!(said("[general]\nname = \"re\u{1}lu\"\n"), @r#"
    error[syntax]: invalid basic string, expected non-double-quote visible characters, `\`
      --> build.toml:2:11
      |
    2 | name = "re�lu"
      |           ^
    "#);
    insta::assert_snapshot!(said("a = [1, 2\n"), @"
    error[syntax]: unclosed array, expected `]`
      --> build.toml:1:10
      |
    1 | a = [1, 2
      |          ^
    ");
}

#[test]
fn duplicate_keys_hide_nothing_else() {
    insta::assert_snapshot!(but("version = 1\n", "version = 1\nversion = 2\nlicence = \"MIT\"\n"), @r#"
    error[duplicate-key]: duplicate key `version`
      --> build.toml:4:1
      |
    4 | version = 2
      | ^^^^^^^

    error[unknown-key]: unknown key `licence` in [general]
      --> build.toml:5:1
      |
    5 | licence = "MIT"
      | ^^^^^^^
      = allowed here: `name`, `version`, `edition`, `license`, `upstream`, `source`, `backends`, `python-depends`, `kernel-depends`, `cuda`, `neuron`, `tpu`, `xpu`, `hub`
    hint: did you mean `license`? it is there already
    "#);
    insta::assert_snapshot!(but("[kernel.k]\n", "[torch]\ninclud = []\n\n[kernel.k]\n"), @"
    error[duplicate-key]: duplicate key `torch`
       --> build.toml:11:2
       |
    11 | [torch]
       |  ^^^^^

    error[unknown-key]: unknown key `includ` in [torch]
       --> build.toml:12:1
       |
    12 | includ = []
       | ^^^^^^
       = allowed here: `src`, `include`, `pyext`, `minver`, `maxver`, `cxx-flags`, `stable-abi`
    hint: did you mean `include`?
    ");
}

#[test]
fn unknown_keys() {
    insta::assert_snapshot!(but("[torch]\nsrc", "[torch]\nsrcs"), @r#"
    error[unknown-key]: unknown key `srcs` in [torch]
      --> build.toml:9:1
      |
    9 | srcs = ["torch-ext/torch_binding.cpp"]
      | ^^^^
      = allowed here: `src`, `include`, `pyext`, `minver`, `maxver`, `cxx-flags`, `stable-abi`
    hint: did you mean `src`?
    "#);
    insta::assert_snapshot!(but("src = [\"torch-ext/torch_binding.cpp\"]", "branch = \"main\""), @r#"
    error[unknown-key]: unknown key `branch` in [torch]
      --> build.toml:9:1
      |
    9 | branch = "main"
      | ^^^^^^
      = allowed here: `src`, `include`, `pyext`, `minver`, `maxver`, `cxx-flags`, `stable-abi`
    hint: `branch` belongs to `[general.hub]`
    "#);
    insta::assert_snapshot!(but("src = [\"torch-ext/torch_binding.cpp\"]", "cuda_flag = []"), @"
    error[unknown-key]: unknown key `cuda_flag` in [torch]
      --> build.toml:9:1
      |
    9 | cuda_flag = []
      | ^^^^^^^^^
      = allowed here: `src`, `include`, `pyext`, `minver`, `maxver`, `cxx-flags`, `stable-abi`
    hint: did you mean `cuda-flags`, a key of cuda kernels?
    ");
    insta::assert_snapshot!(but("[torch]\nsrc = [\"torch-ext/torch_binding.cpp\"]", "[torch]\n\n[kernels.x]"), @"
    error[unknown-key]: unknown key `kernels`
       --> build.toml:10:2
       |
    10 | [kernels.x]
       |  ^^^^^^^
       = allowed here: `general`, `torch`, `torch-noarch`, `tvm-ffi`, `kernel`
    hint: did you mean `kernel`?
    ");
    insta::assert_snapshot!(but("[kernel.k]\n", "[general.rocm]\nminver = \"7.0\"\n\n[kernel.k]\n"), @"
    error[unknown-key]: unknown key `rocm` in [general]
       --> build.toml:11:10
       |
    11 | [general.rocm]
       |          ^^^^
       = allowed here: `name`, `version`, `edition`, `license`, `upstream`, `source`, `backends`, `python-depends`, `kernel-depends`, `cuda`, `neuron`, `tpu`, `xpu`, `hub`
    ");
    insta::assert_snapshot!(but("[kernel.k]\n", "[general.hub]\nrepo_id = \"a/b\"\nzzz = 1\n\n[kernel.k]\n"), @r#"
    error[unknown-key]: unknown key `repo_id` in [general.hub]
       --> build.toml:12:1
       |
    12 | repo_id = "a/b"
       | ^^^^^^^
       = allowed here: `repo-id`, `branch`
    hint: did you mean `repo-id`?

    error[unknown-key]: unknown key `zzz` in [general.hub]
       --> build.toml:13:1
       |
    13 | zzz = 1
       | ^^^
       = allowed here: `repo-id`, `branch`
    "#);
}

#[test]
fn keys_of_other_kernels() {
    insta::assert_snapshot!(but("depends = [\"torch\"]", "depends = [\"torch\"]\nhip-flags = []\nrocm-archs = []\nsycl_flags = []\nminver = \"1.0\""), @r#"
    error[unknown-key]: `hip-flags` belongs to rocm kernels, and [kernel.k] is a cuda kernel
       --> build.toml:14:1
       |
    14 | hip-flags = []
       | ^^^^^^^^^
       = allowed here: `backend`, `src`, `depends`, `include`, `cxx-flags`, `cuda-flags`, `cuda-capabilities`, `cuda-minver`
    hint: use `cuda-flags`

    error[unknown-key]: `rocm-archs` belongs to rocm kernels, and [kernel.k] is a cuda kernel
       --> build.toml:15:1
       |
    15 | rocm-archs = []
       | ^^^^^^^^^^
       = allowed here: `backend`, `src`, `depends`, `include`, `cxx-flags`, `cuda-flags`, `cuda-capabilities`, `cuda-minver`
    hint: use `cuda-capabilities`

    error[unknown-key]: unknown key `sycl_flags` in [kernel.k]
       --> build.toml:16:1
       |
    16 | sycl_flags = []
       | ^^^^^^^^^^
       = allowed here: `backend`, `src`, `depends`, `include`, `cxx-flags`, `cuda-flags`, `cuda-capabilities`, `cuda-minver`
    hint: did you mean `sycl-flags`, a key of xpu kernels?

    error[unknown-key]: unknown key `minver` in [kernel.k]
       --> build.toml:17:1
       |
    17 | minver = "1.0"
       | ^^^^^^
       = allowed here: `backend`, `src`, `depends`, `include`, `cxx-flags`, `cuda-flags`, `cuda-capabilities`, `cuda-minver`
    hint: `minver` belongs to `[general.cuda]` or `[torch]`
    "#);
    insta::assert_snapshot!(but("backend = \"cuda\"\n", "backend = \"rocm\"\ncuda-flags = []\ncuda-minver = \"12.0\"\n"), @r#"
    note[noarch-backend]: no kernel is for backend `cuda`: it gets a variant in Python only
      --> build.toml:6:13
      |
    6 | backends = ["cuda"]
      |             ^^^^^^

    warning[unused-kernel]: component ignored: kernel `k` is for `rocm`, which `backends` does not list
       --> build.toml:12:11
       |
    12 | backend = "rocm"
       |           ^^^^^^
    hint: add `"rocm"` to `backends` in `[general]`

    error[unknown-key]: `cuda-flags` belongs to cuda kernels, and [kernel.k] is a rocm kernel
       --> build.toml:13:1
       |
    13 | cuda-flags = []
       | ^^^^^^^^^^
       = allowed here: `backend`, `src`, `depends`, `include`, `cxx-flags`, `hip-flags`, `rocm-archs`
    hint: use `hip-flags`

    error[unknown-key]: `cuda-minver` belongs to cuda kernels, and [kernel.k] is a rocm kernel
       --> build.toml:14:1
       |
    14 | cuda-minver = "12.0"
       | ^^^^^^^^^^^
       = allowed here: `backend`, `src`, `depends`, `include`, `cxx-flags`, `hip-flags`, `rocm-archs`
    "#);
    insta::assert_snapshot!(but("backend = \"cuda\"\n", "backend = \"metal\"\ncuda-capabilities = []\nasc-flags = []\n"), @r#"
    note[noarch-backend]: no kernel is for backend `cuda`: it gets a variant in Python only
      --> build.toml:6:13
      |
    6 | backends = ["cuda"]
      |             ^^^^^^

    warning[unused-kernel]: component ignored: kernel `k` is for `metal`, which `backends` does not list
       --> build.toml:12:11
       |
    12 | backend = "metal"
       |           ^^^^^^^
    hint: add `"metal"` to `backends` in `[general]`

    error[unknown-key]: `cuda-capabilities` belongs to cuda kernels, and [kernel.k] is a metal kernel
       --> build.toml:13:1
       |
    13 | cuda-capabilities = []
       | ^^^^^^^^^^^^^^^^^
       = allowed here: `backend`, `src`, `depends`, `include`, `cxx-flags`

    error[unknown-key]: `asc-flags` belongs to cann kernels, and [kernel.k] is a metal kernel
       --> build.toml:14:1
       |
    14 | asc-flags = []
       | ^^^^^^^^^
       = allowed here: `backend`, `src`, `depends`, `include`, `cxx-flags`
    hint: use `cxx-flags`
    "#);
}

#[test]
fn missing_keys() {
    insta::assert_snapshot!(said("[general]\nedition = 5\n\n[tvm-ffi]\n\n[ kernel.k ]\n"), @r#"
    error[missing-key]: `name` is required in [general]
      --> build.toml:1:2
      |
    1 | [general]
      |  ^^^^^^^
    hint: add `name = "my-kernel"`

    error[missing-key]: `version` is required in [general]
      --> build.toml:1:2
      |
    1 | [general]
      |  ^^^^^^^
    hint: add `version = 1`

    error[missing-key]: `license` is required in [general]
      --> build.toml:1:2
      |
    1 | [general]
      |  ^^^^^^^
    hint: add `license = "Apache-2.0"`

    error[missing-key]: `backends` is required in [general]
      --> build.toml:1:2
      |
    1 | [general]
      |  ^^^^^^^
    hint: add `backends = ["cpu"]`

    error[missing-key]: `src` is required in [tvm-ffi]
      --> build.toml:4:2
      |
    4 | [tvm-ffi]
      |  ^^^^^^^
    hint: add `src = ["tvm-ffi-ext/binding.cpp"]`

    error[missing-key]: `backend` is required in [kernel.k]
      --> build.toml:6:3
      |
    6 | [ kernel.k ]
      |   ^^^^^^^^
    hint: add `backend = "cpu"`

    error[missing-key]: `src` is required in [kernel.k]
      --> build.toml:6:3
      |
    6 | [ kernel.k ]
      |   ^^^^^^^^
    hint: add `src = ["kernel.cpp"]`

    error[missing-key]: `depends` is required in [kernel.k]
      --> build.toml:6:3
      |
    6 | [ kernel.k ]
      |   ^^^^^^^^
    hint: add `depends = ["torch"]`
    "#);
    insta::assert_snapshot!(said(""), @"
    error[missing-key]: `general` is required
      --> build.toml:1:1
    hint: add `[general]`

    error[framework]: one of `torch`, `torch-noarch`, `tvm-ffi` is needed
      --> build.toml:1:1
    hint: add `[torch]` for a compiled kernel, `[torch-noarch]` for one in Python
    ");
}

#[test]
fn wrong_types() {
    insta::assert_snapshot!(but("name = \"relu\"", "name = 5"), @"
    error[wrong-type]: `name` must be a string, found an integer
      --> build.toml:2:8
      |
    2 | name = 5
      |        ^
    ");
    insta::assert_snapshot!(but("version = 1\n", "version = \"1\"\n"), @r#"
    error[wrong-type]: `version` must be an integer, found a string
      --> build.toml:3:11
      |
    3 | version = "1"
      |           ^^^
    hint: write `version = 1`
    "#);
    insta::assert_snapshot!(but("version = 1\n", "version = 1.0\n"), @"
    error[wrong-type]: `version` must be an integer, found a float
      --> build.toml:3:11
      |
    3 | version = 1.0
      |           ^^^
    hint: write `version = 1`
    ");
    insta::assert_snapshot!(but("version = 1\n", "version = true\n"), @"
    error[wrong-type]: `version` must be an integer, found a boolean
      --> build.toml:3:11
      |
    3 | version = true
      |           ^^^^
    ");
    insta::assert_snapshot!(but("license = \"Apache-2.0\"", "license = 2004-01-01"), @r#"
    error[wrong-type]: `license` must be a string, found a date or time
      --> build.toml:5:11
      |
    5 | license = 2004-01-01
      |           ^^^^^^^^^^
    hint: write `license = "2004-01-01"`
    "#);
    insta::assert_snapshot!(but("backends = [\"cuda\"]", "backends = \"cuda\""), @r#"
    error[wrong-type]: `backends` must be a list of strings, found a string
      --> build.toml:6:12
      |
    6 | backends = "cuda"
      |            ^^^^^^
    hint: write `backends = ["cuda"]`
    "#);
    insta::assert_snapshot!(but("backends = [\"cuda\"]", "backends = { cuda = true }"), @r#"
    error[wrong-type]: `backends` must be a list of strings, found a table
      --> build.toml:6:12
      |
    6 | backends = { cuda = true }
      |            ^^^^^^^^^^^^^^^
    hint: write `backends = ["cpu"]`
    "#);
    insta::assert_snapshot!(but("backends = [\"cuda\"]", "backends = [\"cuda\", 1, [\"cpu\"]]"), @r#"
    error[wrong-type]: every element of this list must be a string, found an integer
      --> build.toml:6:21
      |
    6 | backends = ["cuda", 1, ["cpu"]]
      |                     ^

    error[wrong-type]: every element of this list must be a string, found a list
      --> build.toml:6:24
      |
    6 | backends = ["cuda", 1, ["cpu"]]
      |                        ^^^^^^^
    "#);
    insta::assert_snapshot!(but("src = [\"torch-ext/torch_binding.cpp\"]", "minver = 2.9\nstable-abi = 2.11\nmaxver = []"), @r#"
    error[wrong-type]: `minver` must be a quoted version, found a float
      --> build.toml:9:10
      |
    9 | minver = 2.9
      |          ^^^
    hint: write `minver = "2.9"`

    error[wrong-type]: `stable-abi` must be a quoted version or a table, found a float
       --> build.toml:10:14
       |
    10 | stable-abi = 2.11
       |              ^^^^
    hint: write `stable-abi = "2.11"`

    error[wrong-type]: `maxver` must be a quoted version, found a list
       --> build.toml:11:10
       |
    11 | maxver = []
       |          ^^
    "#);
    insta::assert_snapshot!(but("[torch]\nsrc = [\"torch-ext/torch_binding.cpp\"]\n", "[[torch]]\n"), @"
    error[wrong-type]: `torch` must be a table, found a list
      --> build.toml:8:3
      |
    8 | [[torch]]
      |   ^^^^^
    ");
    insta::assert_snapshot!(but("[kernel.k]\nbackend = \"cuda\"\ndepends = [\"torch\"]\nsrc = [\"cuda/k.cu\"]\n", "[kernel]\nk = \"cuda\"\nj.backend = [\"cuda\"]\n"), @r#"
    error[wrong-type]: `k` must be a table, found a string
       --> build.toml:12:5
       |
    12 | k = "cuda"
       |     ^^^^^^

    error[missing-key]: `src` is required in [kernel.j]
       --> build.toml:13:1
       |
    13 | j.backend = ["cuda"]
       | ^
    hint: add `src = ["kernel.cpp"]`

    error[missing-key]: `depends` is required in [kernel.j]
       --> build.toml:13:1
       |
    13 | j.backend = ["cuda"]
       | ^
    hint: add `depends = ["torch"]`

    error[wrong-type]: `backend` must be a string, found a list
       --> build.toml:13:13
       |
    13 | j.backend = ["cuda"]
       |             ^^^^^^^^
    "#);
    insta::assert_snapshot!(but("[torch]\nsrc = [\"torch-ext/torch_binding.cpp\"]\n", "[general.name.first]\n[torch]\n").lines().next().unwrap_or_default(), @"error[syntax]: cannot extend value of type string with a dotted key");
    insta::assert_snapshot!(said("general = [\"x\"]\n"), @r#"
    error[wrong-type]: `general` must be a table, found a list
      --> build.toml:1:11
      |
    1 | general = ["x"]
      |           ^^^^^
    "#);
    insta::assert_snapshot!(said("kernel = 1\n[general]\nedition = 5\nhub = 1\ncuda = \"12.0\"\nkernel-depends = 1\nname = '''a\nb'''\nbackends = ['cpu']\nversion = 0x1\nlicense = [ ]\n"), @r#"
    error[framework]: one of `torch`, `torch-noarch`, `tvm-ffi` is needed
      --> build.toml:1:1
    hint: add `[torch]` for a compiled kernel, `[torch-noarch]` for one in Python

    error[wrong-type]: `kernel` must be a table, found an integer
      --> build.toml:1:10
      |
    1 | kernel = 1
      |          ^

    error[wrong-type]: `hub` must be a table, found an integer
      --> build.toml:4:7
      |
    4 | hub = 1
      |       ^

    error[wrong-type]: `cuda` must be a table, found a string
      --> build.toml:5:8
      |
    5 | cuda = "12.0"
      |        ^^^^^^

    error[wrong-type]: `kernel-depends` must be a list of tables, found an integer
      --> build.toml:6:18
      |
    6 | kernel-depends = 1
      |                  ^

    error[invalid-name]: kernel name `a\nb` contains `\n`: only lower-case letters, digits and dashes are allowed
      --> build.toml:7:8
      |
    7 | name = '''a
      |        ^^^^
    hint: did you mean `ab`?

    error[wrong-type]: `license` must be a string, found a list
       --> build.toml:11:11
       |
    11 | license = [ ]
       |           ^^^
    "#);
}

#[test]
fn editions() {
    insta::assert_snapshot!(but("edition = 5", "edition = \"5\"\nname_ = 1"), @r#"
    error[wrong-type]: `edition` must be an integer, found a string
      --> build.toml:4:11
      |
    4 | edition = "5"
      |           ^^^
    hint: write `edition = 5`

    error[unknown-key]: unknown key `name_` in [general]
      --> build.toml:5:1
      |
    5 | name_ = 1
      | ^^^^^
      = allowed here: `name`, `version`, `edition`, `license`, `upstream`, `source`, `backends`, `python-depends`, `kernel-depends`, `cuda`, `neuron`, `tpu`, `xpu`, `hub`
    hint: did you mean `name`? it is there already
    "#);
    insta::assert_snapshot!(but("edition = 5", "edition = 5.0"), @"
    error[wrong-type]: `edition` must be an integer, found a float
      --> build.toml:4:11
      |
    4 | edition = 5.0
      |           ^^^
    hint: write `edition = 5`
    ");
    insta::assert_snapshot!(but("edition = 5", "edition = 6"), @"
    error[edition]: edition 6 is newer than this version of Kiln reads (5)
      --> build.toml:4:11
      |
    4 | edition = 6
      |           ^
    ");
    insta::assert_snapshot!(but("edition = 5", "edition = 99999999999999999999999999999999999999999999"), @"
    error[edition]: edition 99999999999999999999999999999999999999999999 is newer than this version of Kiln reads (5)
      --> build.toml:4:11
      |
    4 | edition = 99999999999999999999999999999999999999999999
      |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    ");
    insta::assert_snapshot!(but("edition = 5", "edition = 0"), @"
    error[edition]: there is no edition 0
      --> build.toml:4:11
      |
    4 | edition = 0
      |           ^
    hint: write `edition = 5`
    ");
    insta::assert_snapshot!(but("edition = 5", "edition = -1"), @"
    error[edition]: there is no edition -1
      --> build.toml:4:11
      |
    4 | edition = -1
      |           ^^
    hint: write `edition = 5`
    ");
    insta::assert_snapshot!(but("edition = 5", "edition = 3"), @"
    warning[old-edition]: this file is written in edition 3 of the format; it is read as one of edition 5
      --> build.toml:4:11
      |
    4 | edition = 3
      |           ^
    hint: `kiln update-build .` brings it up to date
    ");
    insta::assert_snapshot!(but("edition = 5\n", ""), @"
    warning[old-edition]: this file is written in edition 4 of the format; it is read as one of edition 5
      --> build.toml:1:1
      = there is no `edition`, and it has `general.version`, `general.license`
    hint: `kiln update-build .` brings it up to date
    ");
    insta::assert_snapshot!(but("edition = 5\n", "kernel-depends = []\ntpu = {}\nxpu = { kernel-depends = [] }\n"), @"
    error[edition]: `kernel-depends` in [general] needs edition 5
      --> build.toml:4:1
      |
    4 | kernel-depends = []
      | ^^^^^^^^^^^^^^
    hint: this key needs edition 5; add `edition = 5` under `[general]`

    error[edition]: `tpu` in [general] needs edition 5
      --> build.toml:5:1
      |
    5 | tpu = {}
      | ^^^
    hint: this key needs edition 5; add `edition = 5` under `[general]`

    error[edition]: `kernel-depends` in [general.xpu] needs edition 5
      --> build.toml:6:9
      |
    6 | xpu = { kernel-depends = [] }
      |         ^^^^^^^^^^^^^^
    hint: this key needs edition 5; add `edition = 5` under `[general]`
    ");
    insta::assert_snapshot!(but("edition = 5\nlicense = \"Apache-2.0\"\nbackends = [\"cuda\"]\n\n[torch]\n", "license = \"Apache-2.0\"\nbackends = [\"cuda\"]\n\n[torch]\nstable-abi = { cuda = \"2.11\" }\n"), @r#"
    error[edition]: a `stable-abi` table needs edition 5
      --> build.toml:8:14
      |
    8 | stable-abi = { cuda = "2.11" }
      |              ^^^^^^^^^^^^^^^^^
    hint: this key needs edition 5; add `edition = 5` under `[general]`
    "#);
}

#[test]
fn names() {
    insta::assert_snapshot!(but("name = \"relu\"", "name = \"My_Relu\""), @r#"
    error[invalid-name]: kernel name `My_Relu` contains `M`: only lower-case letters, digits and dashes are allowed
      --> build.toml:2:8
      |
    2 | name = "My_Relu"
      |        ^^^^^^^^^
    hint: did you mean `my-relu`?
    "#);
    insta::assert_snapshot!(but("name = \"relu\"", "name = \"\""), @r#"
    error[invalid-name]: a kernel name cannot be empty
      --> build.toml:2:8
      |
    2 | name = ""
      |        ^^
    "#);
    insta::assert_snapshot!(but("[kernel.k]", "[kernel.\"\"]"), @r#"
    error[invalid-name]: the name of a kernel's table cannot be empty
       --> build.toml:11:9
       |
    11 | [kernel.""]
       |         ^^
    "#);
}

#[test]
fn numbers_and_versions() {
    insta::assert_snapshot!(but("version = 1\n", "version = -1\n"), @"
    error[invalid-value]: `version` must be 0 or more
      --> build.toml:3:11
      |
    3 | version = -1
      |           ^^
    ");
    insta::assert_snapshot!(but("version = 1\n", "version = 99999999999999999999\n"), @"
    error[invalid-value]: `version` is too large
      --> build.toml:3:11
      |
    3 | version = 99999999999999999999
      |           ^^^^^^^^^^^^^^^^^^^^
    ");
    insta::assert_snapshot!(but("src = [\"torch-ext/torch_binding.cpp\"]", "minver = \"2.x\"\nmaxver = \"\""), @r#"
    error[invalid-version]: malformed version `2.x`: numbers separated by dots are expected, such as `2.11`
      --> build.toml:9:10
      |
    9 | minver = "2.x"
      |          ^^^^^

    error[invalid-version]: a version cannot be empty
       --> build.toml:10:10
       |
    10 | maxver = ""
       |          ^^
    "#);
    insta::assert_snapshot!(but("src = [\"torch-ext/torch_binding.cpp\"]", "minver = \"2.14\"\nmaxver = \"2.12\""), @r#"
    error[empty-range]: `minver` 2.14 is above `maxver` 2.12
      --> build.toml:9:10
      |
    9 | minver = "2.14"
      |          ^^^^^^
    "#);
    insta::assert_snapshot!(but("[torch]\n", "[general.cuda]\nminver = \"13\"\nmaxver = \"12.6.1\"\n\n[torch]\n"), @r#"
    note[not-portable]: version `13` is not readable by kernel-builder from 0.17 on, which wants exactly two numbers
      --> build.toml:9:10
      |
    9 | minver = "13"
      |          ^^^^
    hint: write `"13.0"`

    error[empty-range]: `minver` 13 is above `maxver` 12.6.1
      --> build.toml:9:10
      |
    9 | minver = "13"
      |          ^^^^

    note[not-portable]: version `12.6.1` is not readable by kernel-builder from 0.17 on, which wants exactly two numbers
       --> build.toml:10:10
       |
    10 | maxver = "12.6.1"
       |          ^^^^^^^^
    "#);
    insta::assert_snapshot!(but("[torch]\n", "[torch]\nstable-abi = \"2.11.0\"\n"), @r#"
    note[not-portable]: version `2.11.0` is not readable by kernel-builder from 0.17 on, which wants exactly two numbers
      --> build.toml:9:14
      |
    9 | stable-abi = "2.11.0"
      |              ^^^^^^^^
    hint: write `"2.11"`
    "#);
    insta::assert_snapshot!(but("[kernel.k]\n", "[torch.stable-abi]\ngpu = \"2.11\"\ncpu = \"two\"\ncuda = 2.11\n\n[kernel.k]\n"), @r#"
    error[unknown-backend]: unknown backend `gpu`
       --> build.toml:12:1
       |
    12 | gpu = "2.11"
       | ^^^
       = known backends: `cann`, `cpu`, `cuda`, `metal`, `neuron`, `rocm`, `tpu`, `xpu`
    hint: did you mean `cuda`? it is there already

    error[invalid-version]: malformed version `two`: numbers separated by dots are expected, such as `2.11`
       --> build.toml:13:7
       |
    13 | cpu = "two"
       |       ^^^^^

    error[wrong-type]: `cuda` must be a quoted version, found a float
       --> build.toml:14:8
       |
    14 | cuda = 2.11
       |        ^^^^
    hint: write `cuda = "2.11"`
    "#);
}

#[test]
fn texts() {
    insta::assert_snapshot!(but("license = \"Apache-2.0\"", "license = \" \""), @r#"
    error[invalid-value]: `license` is empty
      --> build.toml:5:11
      |
    5 | license = " "
      |           ^^^
    "#);
    insta::assert_snapshot!(but("license = \"Apache-2.0\"", "license = \"MIT\"\nupstream = \"ftp://example.org/x\"\nsource = \"example.org\""), @r#"
    error[invalid-url]: `upstream`: scheme `ftp` is not one that git repositories are read from
      --> build.toml:6:12
      |
    6 | upstream = "ftp://example.org/x"
      |            ^^^^^^^^^^^^^^^^^^^^^
      = known schemes: `https`, `http`, `git`, `ssh`, `git+ssh`, `git+https`, `git+http`; or `host:path`

    error[invalid-url]: `source`: `example.org` is neither a git URL nor of the form `host:path`
      --> build.toml:7:10
      |
    7 | source = "example.org"
      |          ^^^^^^^^^^^^^
      = known schemes: `https`, `http`, `git`, `ssh`, `git+ssh`, `git+https`, `git+http`; or `host:path`
    "#);
    insta::assert_snapshot!(but("[torch]\n", "[general.hub]\nrepo-id = \"justname\"\nbranch = \"\"\n\n[torch]\n"), @r#"
    error[invalid-repo-id]: `repo-id` must be `owner/name`, found `justname`
      --> build.toml:9:11
      |
    9 | repo-id = "justname"
      |           ^^^^^^^^^^

    error[invalid-value]: `branch` is empty
       --> build.toml:10:10
       |
    10 | branch = ""
       |          ^^
    "#);
    insta::assert_snapshot!(but("src = [\"torch-ext/torch_binding.cpp\"]", "pyext = [\".py\", \".\", \"a/b\"]"), @r#"
    warning[leading-dot]: extension `.py` is written with a dot, which is ignored
      --> build.toml:9:10
      |
    9 | pyext = [".py", ".", "a/b"]
      |          ^^^^^
    hint: write `"py"`

    error[invalid-value]: `.` is no extension of a file
      --> build.toml:9:17
      |
    9 | pyext = [".py", ".", "a/b"]
      |                 ^^^

    error[invalid-value]: `a/b` is no extension of a file
      --> build.toml:9:22
      |
    9 | pyext = [".py", ".", "a/b"]
      |                      ^^^^^
    "#);
}

#[test]
fn addresses_that_loaders_misread() {
    insta::assert_snapshot!(but("license = \"Apache-2.0\"", "license = \"MIT\"\nupstream = \"example.org:team/repo\""), @r#"
    warning[not-loadable]: `upstream`: loaders take `example.org:team/repo` for a URL of an unknown scheme and refuse the kernel
      --> build.toml:6:12
      |
    6 | upstream = "example.org:team/repo"
      |            ^^^^^^^^^^^^^^^^^^^^^^^
    hint: write `"git@example.org:team/repo"` or `"ssh://example.org/team/repo"`
    "#);
}

#[test]
fn paths() {
    insta::assert_snapshot!(but("src = [\"cuda/k.cu\"]", "src = [\n  \"/etc/hosts.cu\",\n  \"../secret.cu\",\n  'cuda\\k.cu',\n  \"\",\n  \"日本/../../x.cu\",\n]"), @r#"
    error[invalid-path]: `/etc/hosts.cu` is an absolute path: paths are relative to the project
       --> build.toml:15:3
       |
    15 |   "/etc/hosts.cu",
       |   ^^^^^^^^^^^^^^^

    error[invalid-path]: path `../secret.cu` leaves the project
       --> build.toml:16:3
       |
    16 |   "../secret.cu",
       |   ^^^^^^^^^^^^^^

    error[invalid-path]: `cuda\k.cu` contains a backslash: `/` separates the parts of a path on every platform
       --> build.toml:17:3
       |
    17 |   'cuda\k.cu',
       |   ^^^^^^^^^^^
    hint: write `"cuda/k.cu"`

    error[invalid-path]: a path cannot be empty
       --> build.toml:18:3
       |
    18 |   "",
       |   ^^

    error[invalid-path]: path `日本/../../x.cu` leaves the project
       --> build.toml:19:3
       |
    19 |   "日本/../../x.cu",
       |   ^^^^^^^^^^^^^^^^^
    "#);
}

#[test]
fn backends() {
    insta::assert_snapshot!(but("backends = [\"cuda\"]", "backends = []"), @"
    error[invalid-value]: `backends` is empty
      --> build.toml:6:12
      |
    6 | backends = []
      |            ^^
    hint: name at least one backend
    ");
    insta::assert_snapshot!(but("backends = [\"cuda\"]", "backends = [\"cudaa\", \"npu\"]"), @r#"
    error[unknown-backend]: unknown backend `cudaa`
      --> build.toml:6:13
      |
    6 | backends = ["cudaa", "npu"]
      |             ^^^^^^^
      = known backends: `cann`, `cpu`, `cuda`, `metal`, `neuron`, `rocm`, `tpu`, `xpu`
    hint: did you mean `cuda`?

    error[unknown-backend]: unknown backend `npu`
      --> build.toml:6:22
      |
    6 | backends = ["cudaa", "npu"]
      |                      ^^^^^
      = known backends: `cann`, `cpu`, `cuda`, `metal`, `neuron`, `rocm`, `tpu`, `xpu`
    hint: did you mean `cann`?
    "#);
    insta::assert_snapshot!(but("backends = [\"cuda\"]", "backends = [\"cuda\", \"cpu\", \"cuda\"]"), @r#"
    note[noarch-backend]: no kernel is for backend `cpu`: it gets a variant in Python only
      --> build.toml:6:21
      |
    6 | backends = ["cuda", "cpu", "cuda"]
      |                     ^^^^^

    warning[duplicate-backend]: backend `cuda` is listed twice; the first counts
      --> build.toml:6:28
      |
    6 | backends = ["cuda", "cpu", "cuda"]
      |                            ^^^^^^
    "#);
    insta::assert_snapshot!(but("backend = \"cuda\"", "backend = \"can\""), @r#"
    error[unknown-backend]: unknown backend `can`
       --> build.toml:12:11
       |
    12 | backend = "can"
       |           ^^^^^
       = allowed here: `cann`, `cpu`, `cuda`, `metal`, `rocm`, `xpu`
    hint: did you mean `cann`?
    "#);
    insta::assert_snapshot!(but("backend = \"cuda\"", "backend = \"tpu\""), @r#"
    error[unknown-backend]: there are no kernels to compile for backend `tpu`
       --> build.toml:12:11
       |
    12 | backend = "tpu"
       |           ^^^^^
       = allowed here: `cann`, `cpu`, `cuda`, `metal`, `rocm`, `xpu`
    "#);
    insta::assert_snapshot!(but("backend = \"cuda\"", "backend = \"rocm\""), @r#"
    note[noarch-backend]: no kernel is for backend `cuda`: it gets a variant in Python only
      --> build.toml:6:13
      |
    6 | backends = ["cuda"]
      |             ^^^^^^

    warning[unused-kernel]: component ignored: kernel `k` is for `rocm`, which `backends` does not list
       --> build.toml:12:11
       |
    12 | backend = "rocm"
       |           ^^^^^^
    hint: add `"rocm"` to `backends` in `[general]`
    "#);
}

#[test]
fn dependencies() {
    insta::assert_snapshot!(but("depends = [\"torch\"]", "depends = [\"cutlass_9_9\", \"Torch\", \"sycl_tla\"]"), @r#"
    error[unknown-dependency]: unknown dependency `cutlass_9_9`
       --> build.toml:13:12
       |
    13 | depends = ["cutlass_9_9", "Torch", "sycl_tla"]
       |            ^^^^^^^^^^^^^
       = known dependencies: `torch`, `cutlass_2_10`, `cutlass_3_5`, `cutlass_3_6`, `cutlass_3_8`, `cutlass_3_9`, `cutlass_4_0`, `cutlass_4_4`, `cutlass_4_5`, `sycl_tla`, `metal-cpp`
    hint: did you mean `cutlass_3_9`?

    error[unknown-dependency]: unknown dependency `Torch`
       --> build.toml:13:27
       |
    13 | depends = ["cutlass_9_9", "Torch", "sycl_tla"]
       |                           ^^^^^^^
       = known dependencies: `torch`, `cutlass_2_10`, `cutlass_3_5`, `cutlass_3_6`, `cutlass_3_8`, `cutlass_3_9`, `cutlass_4_0`, `cutlass_4_4`, `cutlass_4_5`, `sycl_tla`, `metal-cpp`
    hint: did you mean `torch`?

    warning[unused-dependency]: dependency `sycl_tla` has no effect in a cuda kernel: it is for xpu kernels
       --> build.toml:13:36
       |
    13 | depends = ["cutlass_9_9", "Torch", "sycl_tla"]
       |                                    ^^^^^^^^^^
    "#);
    insta::assert_snapshot!(but("[torch]\n", "[general.xpu]\npython-depends = [\"einops\", \"onedn\", \"nki\"]\n\n[torch]\n"), @r#"
    error[unknown-python-dependency]: unknown Python dependency `onedn` in [general.xpu]
      --> build.toml:9:29
      |
    9 | python-depends = ["einops", "onedn", "nki"]
      |                             ^^^^^^^
      = allowed here: `einops`, `helion`, `tvm-ffi`, `onednn`
    hint: did you mean `onednn`?

    error[unknown-python-dependency]: unknown Python dependency `nki` in [general.xpu]
      --> build.toml:9:38
      |
    9 | python-depends = ["einops", "onedn", "nki"]
      |                                      ^^^^^
      = allowed here: `einops`, `helion`, `tvm-ffi`, `onednn`
    hint: `nki` belongs into `python-depends` of `[general.neuron]`
    "#);
    insta::assert_snapshot!(but("license", "kernel-depends = [{ repo-id = \"a\", version = 1 }, { version = \"1\" }, { repo-id = \"a/b\" }, \"a/b\"]\nlicense"), @r#"
    error[invalid-repo-id]: `repo-id` must be `owner/name`, found `a`
      --> build.toml:5:31
      |
    5 | kernel-depends = [{ repo-id = "a", version = 1 }, { version = "1" }, { repo-id = "a/b" }, "a/b"]
      |                               ^^^

    error[missing-key]: `repo-id` is required in an entry of `kernel-depends`
      --> build.toml:5:51
      |
    5 | kernel-depends = [{ repo-id = "a", version = 1 }, { version = "1" }, { repo-id = "a/b" }, "a/b"]
      |                                                   ^^^^^^^^^^^^^^^^^
    hint: add `repo-id = "owner/name"`

    error[wrong-type]: `version` must be an integer, found a string
      --> build.toml:5:63
      |
    5 | kernel-depends = [{ repo-id = "a", version = 1 }, { version = "1" }, { repo-id = "a/b" }, "a/b"]
      |                                                               ^^^
    hint: write `version = 1`

    error[invalid-kernel-dependency]: `version` or `revision` is needed in an entry of `kernel-depends`
      --> build.toml:5:70
      |
    5 | kernel-depends = [{ repo-id = "a", version = 1 }, { version = "1" }, { repo-id = "a/b" }, "a/b"]
      |                                                                      ^^^^^^^^^^^^^^^^^^^
    hint: add `version = 1`

    error[wrong-type]: every element of this list must be a table, found a string
      --> build.toml:5:91
      |
    5 | kernel-depends = [{ repo-id = "a", version = 1 }, { version = "1" }, { repo-id = "a/b" }, "a/b"]
      |                                                                                           ^^^^^
    "#);
    insta::assert_snapshot!(but("[torch]\n", "[[general.kernel-depends]]\nrepo-id = \"a/b\"\nversion = 1\nrevision = \"x\"\nrev = 1\n\n[torch]\n"), @"
    error[invalid-kernel-dependency]: `version` and `revision` exclude each other
      --> build.toml:8:3
      |
    8 | [[general.kernel-depends]]
      |   ^^^^^^^^^^^^^^^^^^^^^^
    hint: keep one of them

    error[unknown-key]: unknown key `rev` in an entry of `kernel-depends`
       --> build.toml:12:1
       |
    12 | rev = 1
       | ^^^
       = allowed here: `repo-id`, `version`, `revision`
    ");
}

#[test]
fn architectures() {
    insta::assert_snapshot!(but("depends = [\"torch\"]", "depends = [\"torch\"]\ncuda-capabilities = [ \"sm_90\", \"9.0\", 9.0]"), @r#"
    error[invalid-arch]: capability `sm_90` is not of the form `9.0`, `9.0a` or `9.0+PTX`
       --> build.toml:14:23
       |
    14 | cuda-capabilities = [ "sm_90", "9.0", 9.0]
       |                       ^^^^^^^

    error[wrong-type]: every element of this list must be a string, found a float
       --> build.toml:14:39
       |
    14 | cuda-capabilities = [ "sm_90", "9.0", 9.0]
       |                                       ^^^
    hint: write `"9.0"`
    "#);
    insta::assert_snapshot!(but("backend = \"cuda\"\n", "backend = \"rocm\"\nrocm-archs = [\"mi300\"]\n").lines().take(5).collect::<Vec<_>>().join("\n"), @r#"
    note[noarch-backend]: no kernel is for backend `cuda`: it gets a variant in Python only
      --> build.toml:6:13
      |
    6 | backends = ["cuda"]
      |             ^^^^^^
    "#);
    insta::assert_snapshot!(but("backend = \"cuda\"\n", "backend = \"cann\"\nnpu-archs = [\"910b\"]\n"), @r#"
    note[noarch-backend]: no kernel is for backend `cuda`: it gets a variant in Python only
      --> build.toml:6:13
      |
    6 | backends = ["cuda"]
      |             ^^^^^^

    note[not-portable]: a `cann` kernel is not readable by kernel-builder
       --> build.toml:12:11
       |
    12 | backend = "cann"
       |           ^^^^^^

    warning[unused-kernel]: component ignored: kernel `k` is for `cann`, which `backends` does not list
       --> build.toml:12:11
       |
    12 | backend = "cann"
       |           ^^^^^^
    hint: add `"cann"` to `backends` in `[general]`

    error[invalid-arch]: architecture `910b` is not of the form `dav-2201`
       --> build.toml:13:14
       |
    13 | npu-archs = ["910b"]
       |              ^^^^^^
    "#);
    insta::assert_snapshot!(but("[torch]\nsrc = [\"torch-ext/torch_binding.cpp\"]\n\n[kernel.k]\nbackend = \"cuda\"\ndepends = [\"torch\"]\nsrc = [\"cuda/k.cu\"]\n", "[torch-noarch]\ncuda-capabilities = [\"9\"]\nrocm_archs = [\"gfx\"]\nrocm-archs = []\n"), @r#"
    note[not-portable]: `cuda-capabilities` is not readable by kernel-builder in [torch-noarch]
      --> build.toml:9:1
      |
    9 | cuda-capabilities = ["9"]
      | ^^^^^^^^^^^^^^^^^
    hint: it reads the spelling `cuda_capabilities`

    error[invalid-arch]: capability `9` is not of the form `9.0`, `9.0a` or `9.0+PTX`
      --> build.toml:9:22
      |
    9 | cuda-capabilities = ["9"]
      |                      ^^^

    error[duplicate-key]: `rocm-archs` and `rocm_archs` are one key
       --> build.toml:11:1
       |
    11 | rocm-archs = []
       | ^^^^^^^^^^
    hint: keep `rocm_archs`, which kernel-builder reads as well
    "#);
    insta::assert_snapshot!(but("depends = [\"torch\"]", "depends = [\"torch\"]\ncuda-flags = [\"-O3\", \"-gencode=arch=compute_90,code=sm_90\", \"-archx\"]"), @r#"
    warning[arch-flag]: `-gencode=arch=compute_90,code=sm_90` chooses an architecture that the metadata will not list, so loaders may refuse the device
       --> build.toml:14:22
       |
    14 | cuda-flags = ["-O3", "-gencode=arch=compute_90,code=sm_90", "-archx"]
       |                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: use `cuda-capabilities`
    "#);
}

#[test]
fn frameworks() {
    insta::assert_snapshot!(but("[torch]\nsrc = [\"torch-ext/torch_binding.cpp\"]\n", ""), @"
    error[framework]: one of `torch`, `torch-noarch`, `tvm-ffi` is needed
      --> build.toml:1:1
    hint: add `[torch]` for a compiled kernel, `[torch-noarch]` for one in Python
    ");
    insta::assert_snapshot!(but("[kernel.k]\n", "[tvm-ffi]\nsrc = []\nminver = \"1.0\"\n\n[torch-noarch]\n\n[kernel.k]\n"), @r#"
    error[framework]: `[torch]` and `[tvm-ffi]` are both present, but a file has one framework
       --> build.toml:11:2
       |
    11 | [tvm-ffi]
       |  ^^^^^^^
    hint: remove one of `[torch]` and `[tvm-ffi]`

    error[unknown-key]: unknown key `minver` in [tvm-ffi]
       --> build.toml:13:1
       |
    13 | minver = "1.0"
       | ^^^^^^
       = allowed here: `src`, `include`, `pyext`, `cxx-flags`
    hint: `minver` belongs to `[general.cuda]` or `[torch]`

    error[framework]: `[torch]` and `[torch-noarch]` are both present, but a file has one framework
       --> build.toml:15:2
       |
    15 | [torch-noarch]
       |  ^^^^^^^^^^^^
    hint: remove one of `[torch]` and `[torch-noarch]`
    "#);
    insta::assert_snapshot!(but("[torch]\n", "[torch-noarch]\n"), @r#"
    error[unknown-key]: unknown key `src` in [torch-noarch]
      --> build.toml:9:1
      |
    9 | src = ["torch-ext/torch_binding.cpp"]
      | ^^^
      = allowed here: `pyext`, `cuda-capabilities`, `rocm-archs`, `cuda_capabilities`, `rocm_archs`
    hint: `src` belongs to `[torch]` or `[tvm-ffi]` or `[kernel.*]`

    warning[unused-kernel]: kernel `k` is ignored: `[torch-noarch]` compiles nothing
       --> build.toml:11:9
       |
    11 | [kernel.k]
       |         ^
    hint: use `[torch]` to compile it
    "#);
    insta::assert_snapshot!(but("[torch]\nsrc = [\"torch-ext/torch_binding.cpp\"]\n\n[kernel.k]\nbackend = \"cuda\"", "[tvm-ffi]\nsrc = [\"a.cpp\"]\n\n[kernel.k]\nbackend = \"cpu\""), @r#"
    error[missing-component]: no kernel is for backend `cuda`, and [tvm-ffi] has no form without one
      --> build.toml:6:13
      |
    6 | backends = ["cuda"]
      |             ^^^^^^
      = the framework is `tvm-ffi`, whose variants always hold compiled code
    hint: add a kernel with `backend = "cuda"`, or remove the backend

    warning[unused-kernel]: component ignored: kernel `k` is for `cpu`, which `backends` does not list
       --> build.toml:12:11
       |
    12 | backend = "cpu"
       |           ^^^^^
    hint: add `"cpu"` to `backends` in `[general]`

    warning[unused-dependency]: dependency `torch` has no effect: under `[tvm-ffi]` nothing is compiled with torch's headers
       --> build.toml:13:12
       |
    13 | depends = ["torch"]
       |            ^^^^^^^
    hint: leave it out: the headers of tvm-ffi are there for every kernel
    "#);
}

/// Errors in every part of one file are all said, in the order of the file.
#[test]
fn all_at_once() {
    let text = r#"[kernel.g]
backend = "cud"
src = ["/a.cu"]

[general]
name = "A"
edition = 5
version = "1"
backends = ["cpu", "gpu"]

[torch]
minver = 2.9

[torch.stable-abi]
cpu = 2

[kernel.k]
backend = "cpu"
depends = "torch"
"#;
    let parsed = build::parse("build.toml", text);
    let places: Vec<String> = parsed
        .diagnostics
        .iter()
        .map(|diagnostic| {
            let report = parsed.source.report(diagnostic);
            format!("{}:{} {}", report.line, report.column, report.code)
        })
        .collect();
    insta::assert_snapshot!(places.join("\n"), @"
    1:2 missing-key
    2:11 unknown-backend
    3:8 invalid-path
    5:2 missing-key
    6:8 invalid-name
    8:11 wrong-type
    9:20 unknown-backend
    12:10 wrong-type
    15:7 wrong-type
    17:2 missing-key
    19:11 wrong-type
    ");
}
