//! Small projects that compile in a moment, and git repositories for them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::started::real_program;

/// A project under construction: `build.toml` of edition 5 for the cpu backend, a binding, and one component after the other.
pub struct ProjectBuilder {
    backends: Vec<&'static str>,
    torch: String,
    kernels: String,
    files: Vec<(String, String)>,
}

/// A binding that needs no header but the generated one.
pub const BINDING: &str = "#include <registration.h>\nREGISTER_EXTENSION(TORCH_EXTENSION_NAME)\n";

impl ProjectBuilder {
    /// A project called `tiny` whose only unit is [`BINDING`].
    pub fn new() -> Self {
        Self { backends: vec!["cpu"], torch: String::new(), kernels: String::new(), files: Vec::new() }
            .file("torch-ext/tiny/__init__.py", "from ._ops import ops\n")
            .file("binding.cpp", BINDING)
    }

    /// Keys of the `[torch]` table beside `src`.
    pub fn torch(mut self, lines: &str) -> Self {
        self.torch.push_str(lines);
        self.torch.push('\n');
        self
    }

    /// Adds a file.
    pub fn file(mut self, name: &str, content: &str) -> Self {
        self.files.push((name.to_owned(), content.to_owned()));
        self
    }

    /// Adds a component of the cpu backend: its dependencies and sources, and other keys as lines.
    pub fn kernel(self, name: &str, depends: &[&str], src: &[&str], lines: &str) -> Self {
        self.component("cpu", name, depends, src, lines)
    }

    /// The same project for cuda alone.
    pub fn for_cuda(self) -> Self {
        self.for_backend("cuda")
    }

    /// The same project for one backend alone.
    pub fn for_backend(mut self, backend: &'static str) -> Self {
        self.backends = vec![backend];
        self
    }

    /// Adds a component of the cuda backend that depends on nothing: its sources, and other keys as lines.
    pub fn cuda(self, name: &str, src: &[&str], lines: &str) -> Self {
        self.cuda_with(name, &[], src, lines)
    }

    /// Adds a component of the cuda backend: its dependencies and sources, and other keys as lines.
    pub fn cuda_with(self, name: &str, depends: &[&str], src: &[&str], lines: &str) -> Self {
        self.component("cuda", name, depends, src, lines)
    }

    /// Adds a component of a backend: its dependencies and sources, and other keys as lines.
    pub fn component(mut self, backend: &str, name: &str, depends: &[&str], src: &[&str], lines: &str) -> Self {
        self.kernels += &format!("\n[kernel.{name}]\nbackend = {backend:?}\ndepends = {depends:?}\nsrc = {src:?}\n{lines}\n");
        self
    }

    /// The text of `build.toml`.
    pub fn build_toml(&self) -> String {
        format!(
            "[general]\nname = \"tiny\"\nversion = 1\nedition = 5\nlicense = \"Apache-2.0\"\nbackends = {:?}\n\n\
             [torch]\nsrc = [\"binding.cpp\"]\n{}{}",
            self.backends, self.torch, self.kernels
        )
    }

    /// Writes the project into `dir`.
    pub fn write(&self, dir: &Path) -> PathBuf {
        for (name, content) in &self.files {
            write(dir, name, content);
        }
        write(dir, "build.toml", &self.build_toml());
        dir.to_owned()
    }
}

/// Something that keeps a linker from leaving out a unit that nobody uses: it calls `call` when the extension is loaded.
pub fn kept(call: &str) -> String {
    format!("__attribute__((constructor)) static void tiny_keep() {{ volatile auto result = {call}; (void)result; }}\n")
}

/// A project with a unit of each kind: a binding, a component without torch, one with the quick headers of torch's stable ABI whose
/// check macro knows its file and line, a header that both share, and one that `build.toml` does not list.
///
/// A start value uses both components: what nothing uses is left out of an extension.
pub fn usual() -> ProjectBuilder {
    ProjectBuilder::new()
        .torch("stable-abi = { cpu = \"2.11\" }")
        .file("include/shared.h", "#pragma once\n#define FACTOR 3\n")
        .file("include/only_plain.h", "#pragma once\n#define OFFSET 4\n")
        .file(
            "plain/plain.cpp",
            &format!(
                "#include \"shared.h\"\n#include \"only_plain.h\"\nint tiny_plain(int x) {{ return FACTOR * x + OFFSET; }}\n{}",
                kept("tiny_plain(1)")
            ),
        )
        .file(
            "checked/checked.cpp",
            &format!(
                "#include \"shared.h\"\n#include <torch/headeronly/util/Exception.h>\nint tiny_plain(int);\n\
                 int tiny_checked(int x) {{\n  STD_TORCH_CHECK(x > FACTOR, \"too small: \", x);\n  return tiny_plain(x);\n}}\n{}",
                kept("tiny_checked(9)")
            ),
        )
        .kernel("plain", &[], &["plain/plain.cpp", "include/shared.h"], "include = [\"include\"]")
        .kernel("checked", &["torch"], &["checked/checked.cpp", "include/shared.h"], "include = [\"include\"]")
}

/// Writes a file below `dir` with its directories.
pub fn write(dir: &Path, name: &str, content: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Makes `dir` a git repository with everything in it committed. The same content gives the same commit, whoever runs this.
pub fn commit_all(dir: &Path) {
    if !dir.join(".git").exists() {
        git(dir, &["-c", "init.defaultBranch=main", "init", "--quiet"]);
    }
    write(dir, ".git/info/exclude", "build\n.kiln\n");
    git(dir, &["add", "--all"]);
    git(dir, &["commit", "--quiet", "--no-gpg-sign", "--message", "all"]);
}

/// Runs git in `dir` with a fixed identity and time and nobody's settings.
pub fn git(dir: &Path, args: &[&str]) {
    let mut command = Command::new(real_program("git").expect("git is installed"));
    command.args(args).current_dir(dir).env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("LC_ALL", "C")]);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "Tiny").env(format!("GIT_{who}_EMAIL"), "tiny@example.com");
        command.env(format!("GIT_{who}_DATE"), "2020-01-01T00:00:00Z");
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", super::text(&output.stderr));
}
