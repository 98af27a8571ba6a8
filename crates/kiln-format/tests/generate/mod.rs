//! Random `build.toml` files of every edition, with what they mean: written in every way that TOML has, with comments in every place.
//!
//! Everything follows from a number, so that a file that fails can be made again.
#![allow(dead_code, unreachable_pub, reason = "two crates use it, neither of them all of it")]

use std::collections::BTreeMap;

/// A file and what it means.
pub struct Generated {
    /// The edition.
    pub edition: u8,
    /// The file.
    pub text: String,
    /// What the model must say, a fact a line.
    pub meaning: Vec<String>,
    /// Listed backends, each once.
    pub backends: Vec<&'static str>,
    /// `owner/name@version` of what a kernel depends on, for each listed backend.
    pub kernel_depends: BTreeMap<&'static str, Vec<String>>,
    /// How many comments it has; they are `# c0`, `# c1` and so on.
    pub comments: usize,
    /// What was used: keys as `table.key`, ways to write, places of comments.
    pub used: Vec<String>,
}

/// Numbers that look random.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).unwrap()
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Some of them, at least `least`, in their order.
    fn some<T: Copy>(&mut self, from: &[T], least: usize) -> Vec<T> {
        loop {
            let picked: Vec<T> = from.iter().copied().filter(|_| self.one_in(2)).collect();
            if picked.len() >= least {
                return picked;
            }
        }
    }
}

#[derive(Clone)]
enum Value {
    Text(String),
    Number(u64),
    Bool(bool),
    List(Vec<String>),
    /// Written as it is.
    Raw(String),
}

fn list(items: &[&str]) -> Value {
    Value::List(items.iter().map(|&item| item.to_owned()).collect())
}

#[derive(Clone)]
struct Table {
    /// The keys of its header.
    path: Vec<String>,
    entries: Vec<(&'static str, Value)>,
}

fn table(path: &[&str]) -> Table {
    Table { path: path.iter().map(|&key| key.to_owned()).collect(), entries: Vec::new() }
}

impl Table {
    fn add(&mut self, key: &'static str, value: Value) {
        self.entries.push((key, value));
    }
}

const VERSIONS: [&str; 6] = ["12.0", "12.8", "13.0", "2.9", "2.12", "3.0"];
const ODD_VERSIONS: [&str; 4] = ["12", "13.0.0", "12.8.1", "3"];
const STABLE: [&str; 3] = ["2.10", "2.11", "2.12"];

struct Maker {
    rng: Rng,
    edition: u8,
    /// Whether versions that `kernel-builder` does not read may be written.
    odd_versions: bool,
    meaning: Vec<String>,
    kernel_depends: BTreeMap<&'static str, Vec<String>>,
}

/// The file that `seed` makes, of `edition`. With `portable`, nothing in it is beyond `kernel-builder`.
pub fn generate(seed: u64, edition: u8, portable: bool) -> Generated {
    make(seed, edition, portable, |_, _| true).unwrap()
}

/// How many portable files of an edition are held against the loader's own parser.
const COMPARED: u64 = 400;

/// The files of editions 4 and 5 that are held against the loader's own parser.
pub fn compared() -> Vec<Generated> {
    (0..COMPARED).flat_map(|seed| [generate(seed, 4, true), generate(seed, 5, true)]).collect()
}

/// A portable file with one of [`MUTATIONS`]; none where that cannot be done to the file of this `seed`.
pub fn generate_bad(seed: u64, edition: u8, mutation: &Mutation) -> Option<Generated> {
    make(seed, edition, true, mutation.apply)
}

fn make(seed: u64, edition: u8, portable: bool, change: impl Fn(&mut Vec<Table>, &mut Rng) -> bool) -> Option<Generated> {
    let mut maker = Maker {
        rng: Rng::new(seed.wrapping_mul(31).wrapping_add(u64::from(edition))),
        edition,
        odd_versions: !portable,
        meaning: Vec::new(),
        kernel_depends: BTreeMap::new(),
    };
    let (mut tables, backends) = if edition <= 2 { maker.first_two() } else { maker.later(portable) };
    let Maker { mut rng, mut meaning, kernel_depends, .. } = maker;
    if !change(&mut tables, &mut rng) {
        return None;
    }
    meaning.push(format!("backends {}", backends.join(" ")));
    meaning.sort();
    let mut writer = Writer { rng, text: String::new(), comments: 0, used: Vec::new(), newline: "\n" };
    writer.file(&tables);
    let Writer { text, comments, mut used, .. } = writer;
    for table in &tables {
        let name = if table.path[0] == "kernel" { "kernel".to_owned() } else { table.path.join(".") };
        used.extend(table.entries.iter().map(|(key, _)| format!("{name}.{key}")));
    }
    let kernel_depends = backends.iter().map(|&backend| (backend, kernel_depends.get(backend).cloned().unwrap_or_default())).collect();
    Some(Generated { edition, text, meaning, backends, kernel_depends, comments, used })
}

/// A mistake in a file.
pub struct Mutation {
    pub name: &'static str,
    /// Whether it leaves a file without `edition` in its edition, so that it may be made in one.
    pub also_in_4: bool,
    /// Why `kernel-builder` takes such a file all the same, where it does.
    pub taken_by_peer: Option<&'static str>,
    apply: fn(&mut Vec<Table>, &mut Rng) -> bool,
}

/// Sets a key of the first table at `path`.
fn set(tables: &mut [Table], path: &[&str], key: &'static str, value: Value) -> bool {
    let Some(table) = tables.iter_mut().find(|table| table.path == path) else { return false };
    table.entries.retain(|(other, _)| *other != key);
    table.entries.push((key, value));
    true
}

/// Removes a key of the first table at `path`.
fn unset(tables: &mut [Table], path: &[&str], key: &str) -> bool {
    let Some(table) = tables.iter_mut().find(|table| table.path == path) else { return false };
    let before = table.entries.len();
    table.entries.retain(|(other, _)| *other != key);
    table.entries.len() < before
}

/// The path of the first kernel.
fn kernel(tables: &[Table]) -> Option<Vec<String>> {
    tables.iter().find(|table| table.path[0] == "kernel").map(|table| table.path.clone())
}

fn in_kernel(tables: &mut [Table], change: impl Fn(&mut [Table], &[&str]) -> bool) -> bool {
    let Some(path) = kernel(tables) else { return false };
    change(tables, &path.iter().map(String::as_str).collect::<Vec<_>>())
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn raw(text: &str) -> Value {
    Value::Raw(text.to_owned())
}

const fn refused(name: &'static str, also_in_4: bool, apply: fn(&mut Vec<Table>, &mut Rng) -> bool) -> Mutation {
    Mutation { name, also_in_4, taken_by_peer: None, apply }
}

const fn stricter(name: &'static str, why: &'static str, apply: fn(&mut Vec<Table>, &mut Rng) -> bool) -> Mutation {
    Mutation { name, also_in_4: true, taken_by_peer: Some(why), apply }
}

/// Every kind of mistake.
pub const MUTATIONS: &[Mutation] = &[
    refused("an unknown key", true, |tables, rng| {
        let at = rng.below(tables.len());
        tables[at].entries.push(("nonsense", text("x")));
        true
    }),
    refused("an unknown table", true, |tables, _| {
        let mut other = table(&["nonsense"]);
        other.add("a", Value::Number(1));
        tables.push(other);
        true
    }),
    refused("no name", true, |tables, _| unset(tables, &["general"], "name")),
    refused("no version", false, |tables, _| unset(tables, &["general"], "version")),
    refused("no license", false, |tables, _| unset(tables, &["general"], "license")),
    refused("no backends", false, |tables, _| unset(tables, &["general"], "backends")),
    refused("an unknown backend", true, |tables, _| set(tables, &["general"], "backends", list(&["cpu", "cudaa"]))),
    refused("a bad name", true, |tables, rng| {
        let name = rng.pick(&["My", "a", "1a", "my_kernel", "a-", ""]);
        set(tables, &["general"], "name", text(name))
    }),
    refused("a negative version", true, |tables, _| set(tables, &["general"], "version", raw("-1"))),
    refused("a version in quotes", true, |tables, _| set(tables, &["general"], "version", text("1"))),
    refused("an edition in quotes", false, |tables, _| set(tables, &["general"], "edition", text("5"))),
    refused("a newer edition", false, |tables, _| set(tables, &["general"], "edition", Value::Number(6))),
    refused("a bound that is a float", true, |tables, _| set(tables, &["torch"], "minver", raw("2.9"))),
    refused("a bound that is a word", true, |tables, _| set(tables, &["torch"], "maxver", text("two"))),
    refused("an address of no scheme", true, |tables, _| set(tables, &["general"], "upstream", text("ftp://example.org/x"))),
    refused("a list that is a string", true, |tables, _| set(tables, &["general"], "backends", text("cpu"))),
    refused("a date", true, |tables, _| set(tables, &["general"], "license", raw("1979-05-27"))),
    refused("two frameworks", true, |tables, _| {
        let has = |tables: &[Table], name: &str| tables.iter().any(|table| table.path == [name]);
        let other = if has(tables, "torch") { "torch-noarch" } else { "torch" };
        tables.push(table(&[other]));
        true
    }),
    refused("no framework", false, |tables, _| {
        tables.retain(|table| !matches!(table.path[0].as_str(), "torch" | "torch-noarch" | "tvm-ffi"));
        true
    }),
    refused("a kernel without a backend", true, |tables, _| in_kernel(tables, |tables, path| unset(tables, path, "backend"))),
    refused("a kernel without sources", true, |tables, _| in_kernel(tables, |tables, path| unset(tables, path, "src"))),
    refused("a kernel without dependencies", true, |tables, _| in_kernel(tables, |tables, path| unset(tables, path, "depends"))),
    refused("an unknown dependency", true, |tables, _| {
        in_kernel(tables, |tables, path| set(tables, path, "depends", list(&["cutlass_9_9"])))
    }),
    refused("a kernel for a backend without kernels", true, |tables, _| {
        in_kernel(tables, |tables, path| set(tables, path, "backend", text("tpu")))
    }),
    refused("a table of a backend that has none", true, |tables, _| {
        tables.push(table(&["general", "rocm"]));
        true
    }),
    refused("kernels for tpu to depend on", false, |tables, _| set(tables, &["general", "tpu"], "kernel-depends", list(&[]))),
    refused("a dependency with version and revision", false, |tables, _| {
        set(tables, &["general"], "kernel-depends", raw("[{ repo-id = 'a/b', version = 1, revision = 'x' }]"))
    }),
    refused("a dependency with neither", false, |tables, _| set(tables, &["general"], "kernel-depends", raw("[{ repo-id = 'a/b' }]"))),
    refused("a stable ABI that is a float", true, |tables, _| set(tables, &["torch"], "stable-abi", raw("2.11"))),
    refused("a stable ABI that is a word", true, |tables, _| set(tables, &["torch"], "stable-abi", text("new"))),
    refused("a stable ABI of an unknown backend", false, |tables, _| set(tables, &["torch"], "stable-abi", raw("{ gpu = '2.11' }"))),
    refused("tvm-ffi without sources", true, |tables, _| unset(tables, &["tvm-ffi"], "src")),
    stricter("no backend at all", "nothing would be built", |tables, _| set(tables, &["general"], "backends", list(&[]))),
    stricter("an unknown Python dependency", "loaders refuse the kernel", |tables, _| {
        set(tables, &["general"], "python-depends", list(&["numpy"]))
    }),
    stricter("a repository that is none", "nothing could be uploaded", |tables, _| {
        let mut hub = table(&["general", "hub"]);
        hub.add("repo-id", text("nobody"));
        tables.retain(|table| table.path != ["general", "hub"]);
        tables.push(hub);
        true
    }),
    stricter("a bound above the other", "no torch is between them", |tables, _| {
        set(tables, &["torch"], "minver", text("2.14")) && set(tables, &["torch"], "maxver", text("2.12"))
    }),
    stricter("a path out of the project", "others do not have that file", |tables, _| set(tables, &["torch"], "src", list(&["../a.cpp"]))),
    stricter("a capability that is none", "no compiler takes it", |tables, _| {
        set(tables, &["torch-noarch"], "cuda_capabilities", list(&["sm_90"]))
    }),
];

const BACKENDS: [&str; 8] = ["cann", "cpu", "cuda", "metal", "neuron", "rocm", "tpu", "xpu"];
const COMPILED: [&str; 5] = ["cpu", "cuda", "metal", "rocm", "xpu"];

impl Maker {
    fn mean(&mut self, fact: String) {
        self.meaning.push(fact);
    }

    fn version(&mut self, fact: &str) -> Value {
        let version = if self.odd_versions && self.rng.one_in(4) { self.rng.pick(&ODD_VERSIONS) } else { self.rng.pick(&VERSIONS) };
        let text = if self.rng.one_in(10) { format!(" {version} ") } else { version.to_owned() };
        let significant = version.trim_end_matches(".0").trim_end_matches(".0");
        self.mean(format!("{fact} {significant}"));
        Value::Text(text)
    }

    fn framework_keys(&mut self, table: &mut Table, src_needed: bool) {
        if src_needed || self.rng.one_in(2) {
            let some = self.rng.below(3);
            table.add("src", list(&["ext/binding.cpp", "ext/binding.h"][..some]));
        }
        if self.rng.one_in(3) {
            table.add("include", list(&["inc"]));
        }
        if self.rng.one_in(3) {
            table.add("pyext", list(&["py", "json"]));
            self.mean("ships py json".to_owned());
        }
    }

    fn later(&mut self, portable: bool) -> (Vec<Table>, Vec<&'static str>) {
        let edition = self.edition;
        let kind = match (edition, self.rng.below(4)) {
            (_, 0 | 1) => "torch",
            (3, 2) => "none",
            (_, 2) => "torch-noarch",
            _ => "tvm-ffi",
        };
        let mut backends = self.rng.some(&BACKENDS, 1);
        if kind == "tvm-ffi" {
            backends.retain(|backend| COMPILED.contains(backend));
            if backends.is_empty() {
                backends.push("cuda");
            }
        }
        if self.rng.one_in(2) {
            backends.reverse();
        }
        let mut general = table(&["general"]);
        general.add("name", Value::Text("my-kernel".to_owned()));
        self.mean("name my-kernel".to_owned());
        if edition > 3 || self.rng.one_in(2) {
            let version = self.rng.below(5) as u64;
            general.add("version", Value::Number(version));
            self.mean(format!("version {version}"));
        } else {
            self.mean("version 1".to_owned());
        }
        if edition == 5 {
            general.add("edition", Value::Number(5));
        }
        if edition > 3 || self.rng.one_in(2) {
            general.add("license", Value::Text("Apache-2.0".to_owned()));
            self.mean("license Apache-2.0".to_owned());
        }
        if self.rng.one_in(3) {
            general.add("upstream", Value::Text("https://example.org/up".to_owned()));
            self.mean("upstream https://example.org/up".to_owned());
        }
        if edition > 3 && self.rng.one_in(3) {
            general.add("source", Value::Text("git@example.org:a/b.git".to_owned()));
            self.mean("source git@example.org:a/b.git".to_owned());
        }
        let mut listed: Vec<String> = backends.iter().map(|&backend| backend.to_owned()).collect();
        if !portable && self.rng.one_in(8) {
            listed.push(listed[0].clone());
        }
        general.add("backends", Value::List(listed));
        if self.rng.one_in(3) {
            general.add("python-depends", list(&["einops"]));
            self.mean("python einops".to_owned());
        }
        let mut general_depends = Vec::new();
        if edition == 5 && self.rng.one_in(3) {
            let raw = self.kernel_depends(&mut general_depends);
            general.add("kernel-depends", raw);
        }
        let mut tables = Vec::new();
        let mut of_backends: Vec<Table> = Vec::new();
        for backend in ["cuda", "neuron", "tpu", "xpu"] {
            let known = backend != "tpu" || edition == 5;
            let mut depends = general_depends.clone();
            if known && self.rng.one_in(3) {
                let mut own = table(&["general", backend]);
                if backend == "cuda" {
                    if self.rng.one_in(2) {
                        let version = self.rng.pick(&["12.0", "12.6"]);
                        let version = if self.odd_versions && self.rng.one_in(3) { "12" } else { version };
                        self.mean(format!("cuda minver {}", version.trim_end_matches(".0")));
                        own.add("minver", Value::Text(version.to_owned()));
                    }
                    if self.rng.one_in(2) {
                        let version = if self.odd_versions && self.rng.one_in(3) { "13.2.1" } else { "13.2" };
                        self.mean(format!("cuda maxver {version}"));
                        own.add("maxver", Value::Text(version.to_owned()));
                    }
                }
                if self.rng.one_in(2) {
                    let name = match backend {
                        "cuda" => "nvidia-cutlass-dsl",
                        "neuron" => "nki",
                        "xpu" => "onednn",
                        _ => "einops",
                    };
                    // `kernel-builder` takes general names here as little as it takes tpu's.
                    if !(portable && backend == "tpu") {
                        own.add("python-depends", list(&[name]));
                        self.mean(format!("python {backend} {name}"));
                    }
                }
                if edition == 5 && backend != "tpu" && self.rng.one_in(2) {
                    let raw = self.kernel_depends(&mut depends);
                    own.add("kernel-depends", raw);
                }
                of_backends.push(own);
            }
            self.kernel_depends.insert(backend, depends);
        }
        for backend in BACKENDS {
            self.kernel_depends.entry(backend).or_insert_with(|| general_depends.clone());
        }
        tables.push(general);
        tables.append(&mut of_backends);
        if self.rng.one_in(3) {
            let mut hub = table(&["general", "hub"]);
            if self.rng.one_in(2) {
                hub.add("repo-id", Value::Text("team/kernel".to_owned()));
                self.mean("repo team/kernel".to_owned());
            }
            if self.rng.one_in(2) {
                hub.add("branch", Value::Text("next".to_owned()));
                self.mean("branch next".to_owned());
            }
            tables.push(hub);
        }
        let compiled: Vec<&'static str> = COMPILED.into_iter().filter(|backend| backends.contains(backend)).collect();
        let kernels = match kind {
            "tvm-ffi" => compiled.clone(),
            "torch" => self.rng.some(&compiled, 0),
            _ => Vec::new(),
        };
        match kind {
            "torch" => {
                let mut torch = table(&["torch"]);
                self.framework_keys(&mut torch, false);
                if self.rng.one_in(3) {
                    let value = self.version("torch minver");
                    // Nothing may be above the upper bound: each is written alone.
                    torch.add("minver", value);
                } else if self.rng.one_in(2) {
                    let value = self.version("torch maxver");
                    torch.add("maxver", value);
                }
                if edition > 3 && self.rng.one_in(3) {
                    torch.add("cxx-flags", list(&["-DX", "-O2"]));
                }
                if edition > 3 && self.rng.one_in(2) {
                    let stable = self.stable_abi(&backends);
                    torch.add("stable-abi", stable);
                }
                self.mean("framework torch".to_owned());
                tables.push(torch);
            }
            "torch-noarch" | "none" => {
                self.mean("framework torch-noarch".to_owned());
                if kind == "torch-noarch" {
                    let mut noarch = table(&["torch-noarch"]);
                    if self.rng.one_in(3) {
                        noarch.add("pyext", list(&["py", "json"]));
                        self.mean("ships py json".to_owned());
                    }
                    if self.rng.one_in(3) {
                        noarch.add(if !portable && self.rng.one_in(2) { "cuda-capabilities" } else { "cuda_capabilities" }, list(&["9.0"]));
                        self.mean("noarch cuda 9.0".to_owned());
                    }
                    if self.rng.one_in(3) {
                        noarch.add(if !portable && self.rng.one_in(2) { "rocm-archs" } else { "rocm_archs" }, list(&["gfx942"]));
                        self.mean("noarch rocm gfx942".to_owned());
                    }
                    tables.push(noarch);
                }
            }
            _ => {
                let mut tvm_ffi = table(&["tvm-ffi"]);
                self.framework_keys(&mut tvm_ffi, true);
                if edition > 3 && self.rng.one_in(3) {
                    tvm_ffi.add("cxx-flags", list(&["-DX"]));
                }
                self.mean("framework tvm-ffi".to_owned());
                tables.push(tvm_ffi);
            }
        }
        for (nth, backend) in kernels.into_iter().enumerate() {
            let name = ["k", "my kernel", "k-3", "k_4", "é"][nth % 5];
            let mut kernel = table(&["kernel", name]);
            kernel.add("backend", Value::Text(backend.to_owned()));
            self.kernel(&mut kernel, backend);
            self.mean(format!("kernel {name} {backend}"));
            tables.push(kernel);
        }
        (tables, backends)
    }

    fn kernel(&mut self, kernel: &mut Table, backend: &str) {
        let some = self.rng.below(3);
        kernel.add("src", list(&["a/one.cpp", "a/two.cpp"][..some]));
        kernel.add("depends", if self.rng.one_in(3) { list(&[]) } else { list(&["torch"]) });
        if self.rng.one_in(3) {
            kernel.add("include", list(&["inc"]));
        }
        if self.rng.one_in(3) {
            kernel.add("cxx-flags", list(&["-O3"]));
        }
        let own: &[(&'static str, &[&str])] = match backend {
            "cuda" => &[("cuda-capabilities", &["8.0", "9.0a"]), ("cuda-flags", &["-lineinfo"])],
            "rocm" => &[("rocm-archs", &["gfx942", "gfx90a"]), ("hip-flags", &["-O3"])],
            "xpu" => &[("sycl-flags", &["-O3"])],
            _ => &[],
        };
        for &(key, value) in own {
            if self.rng.one_in(2) {
                kernel.add(key, list(value));
                self.mean(format!("{key} {}", value.join(" ")));
            }
        }
        if backend == "cuda" && self.rng.one_in(2) {
            let version = self.version("kernel cuda-minver");
            kernel.add("cuda-minver", version);
        }
    }

    /// Some dependencies as they are written; added to `all`.
    fn kernel_depends(&mut self, all: &mut Vec<String>) -> Value {
        let mut written = Vec::new();
        for nth in 0..self.rng.below(3) {
            if self.rng.one_in(2) {
                written.push(format!("{{ repo-id = \"team/dep{nth}\", version = {nth} }}"));
                all.push(format!("team/dep{nth}@{nth}"));
            } else {
                written.push(format!("{{ revision = 'main', repo-id = 'team/rev{nth}' }}"));
                all.push(format!("team/rev{nth}@main"));
            }
        }
        Value::Raw(format!("[{}]", written.join(", ")))
    }

    fn stable_abi(&mut self, backends: &[&'static str]) -> Value {
        if self.edition == 4 || self.rng.one_in(3) {
            let version = self.rng.pick(&STABLE);
            for backend in backends {
                self.mean(format!("stable {backend} {version}"));
            }
            return Value::Text(version.to_owned());
        }
        let mut entries = Vec::new();
        for backend in BACKENDS {
            if self.rng.one_in(3) {
                let version = self.rng.pick(&STABLE);
                entries.push(format!("{backend} = \"{version}\""));
                if backends.contains(&backend) {
                    self.mean(format!("stable {backend} {version}"));
                }
            }
        }
        Value::Raw(format!("{{ {} }}", entries.join(", ")))
    }

    fn first_two(&mut self) -> (Vec<Table>, Vec<&'static str>) {
        let edition = self.edition;
        let universal = self.rng.one_in(2);
        let python_only = universal && self.rng.one_in(2);
        self.mean("name my-kernel".to_owned());
        self.mean("version 1".to_owned());
        let mut general = table(&["general"]);
        general.add("name", Value::Text("my-kernel".to_owned()));
        let mut tables = Vec::new();
        let mut torch = table(&["torch"]);
        if python_only {
            if self.rng.one_in(2) {
                torch.add("pyext", list(&["py", "json"]));
                self.mean("ships py json".to_owned());
            }
            for key in ["src", "include"] {
                if self.rng.one_in(2) {
                    torch.add(key, if key == "src" { list(&[]) } else { list(&["inc"]) });
                }
            }
            self.mean("framework torch-noarch".to_owned());
        } else {
            self.framework_keys(&mut torch, false);
            // Without any source, and with no kernel, it would be one in Python.
            torch.entries.retain(|(key, _)| *key != "src");
            torch.add("src", list(&["ext/binding.cpp"]));
            self.mean("framework torch".to_owned());
        }
        if edition == 2 {
            if universal || self.rng.one_in(2) {
                general.add("universal", Value::Bool(universal));
            }
            if self.rng.one_in(2) {
                general.add("cuda-minver", Value::Text("12".to_owned()));
                self.mean("cuda minver 12".to_owned());
            }
            if self.rng.one_in(2) {
                general.add("cuda-maxver", Value::Text("13.2".to_owned()));
                self.mean("cuda maxver 13.2".to_owned());
            }
            if self.rng.one_in(2) {
                let names = self.rng.some(&["einops", "nvidia-cutlass-dsl"], 1);
                for name in &names {
                    self.mean(if *name == "einops" { "python einops".to_owned() } else { format!("python cuda {name}") });
                }
                general.add("python-depends", list(&names));
            }
            let known = general.entries.len() > 1 || !python_only;
            if self.rng.one_in(3) || !known {
                general.add("hub", Value::Raw("{ branch = 'next' }".to_owned()));
                self.mean("branch next".to_owned());
            }
            if self.rng.one_in(2) && !python_only {
                torch.add("minver", Value::Text("2.8".to_owned()));
                self.mean("torch minver 2.8".to_owned());
            }
        } else if universal || self.rng.one_in(2) {
            torch.add("universal", Value::Bool(universal));
        }
        tables.push(general);
        tables.push(torch);
        let mut used: Vec<&'static str> = Vec::new();
        let least = usize::from(!universal);
        let kernels = if python_only { Vec::new() } else { self.rng.some(&["k", "my kernel", "k-3"], least) };
        for name in kernels {
            let mut kernel = table(&["kernel", name]);
            if edition == 2 {
                let backend = self.rng.pick(&COMPILED);
                kernel.add("backend", Value::Text(backend.to_owned()));
                self.kernel(&mut kernel, backend);
                self.mean(format!("kernel {name} {backend}"));
                used.push(backend);
            } else {
                self.language_kernel(&mut kernel, name, &mut used);
            }
            tables.push(kernel);
        }
        let backends = if universal { vec!["cann", "cpu", "cuda", "metal", "neuron", "rocm", "xpu"] } else { used };
        let backends = BACKENDS.into_iter().filter(|backend| backends.contains(backend)).collect();
        (tables, backends)
    }

    fn language_kernel(&mut self, kernel: &mut Table, name: &str, used: &mut Vec<&'static str>) {
        kernel.add("src", list(&["a.cu"]));
        kernel.add("depends", list(&["torch"]));
        let language = self.rng.pick(&["cuda", "cuda-hipify", "metal", ""]);
        if !language.is_empty() {
            kernel.add("language", Value::Text(language.to_owned()));
        }
        let cuda = language != "metal";
        if self.rng.one_in(2) {
            kernel.add("cuda-capabilities", list(&["8.0", "9.0a"]));
            if cuda {
                self.mean("cuda-capabilities 8.0 9.0a".to_owned());
            }
        }
        if self.rng.one_in(2) {
            kernel.add("rocm-archs", list(&["gfx942", "gfx90a"]));
            if language == "cuda-hipify" {
                self.mean("rocm-archs gfx942 gfx90a".to_owned());
            }
        }
        if self.rng.one_in(3) {
            kernel.add("include", list(&["inc"]));
        }
        let backend = if cuda { "cuda" } else { "metal" };
        self.mean(format!("kernel {name} {backend}"));
        used.push(backend);
        if language == "cuda-hipify" {
            self.mean(format!("kernel {name}_rocm rocm"));
            used.push("rocm");
        }
    }
}

/// Writes tables as TOML.
struct Writer {
    rng: Rng,
    text: String,
    comments: usize,
    used: Vec<String>,
    newline: &'static str,
}

impl Writer {
    fn comment(&mut self, place: &str) -> String {
        self.used.push(format!("comment {place}"));
        self.comments += 1;
        format!("# c{}", self.comments - 1)
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push_str(self.newline);
    }

    fn file(&mut self, tables: &[Table]) {
        if self.rng.one_in(6) {
            self.newline = "\r\n";
            self.used.push("form crlf".to_owned());
        }
        if self.rng.one_in(8) {
            self.text.push('\u{feff}');
            self.used.push("form bom".to_owned());
        }
        if self.rng.one_in(4) {
            let comment = self.comment("first line");
            self.line(&comment);
        }
        // Tables without a header come first: behind one they would belong to it.
        let tops: Vec<&str> = tables.iter().map(|table| table.path[0].as_str()).filter(|top| *top != "kernel").collect();
        let mut flat: Vec<(&str, usize)> = Vec::new();
        for top in tops {
            if !flat.iter().any(|(name, _)| *name == top) && self.rng.one_in(4) {
                flat.push((top, self.rng.below(2)));
            }
        }
        if self.rng.one_in(5) {
            flat.push(("kernel", 2 + self.rng.below(2)));
        }
        let is_flat = |table: &Table| flat.iter().find(|(top, _)| *top == table.path[0]).map(|(_, how)| *how);
        for table in tables.iter().filter(|table| is_flat(table).is_some()) {
            match is_flat(table) {
                Some(0) if table.path.len() == 1 => {
                    let below: Vec<&Table> = tables.iter().filter(|other| other.path.len() > 1 && other.path[0] == table.path[0]).collect();
                    self.inline(table, &below);
                }
                Some(0) => {}
                Some(1) => self.dotted(table),
                Some(2) => self.dotted(table),
                _ => self.inline(table, &[]),
            }
        }
        for table in tables.iter().filter(|table| is_flat(table).is_none()) {
            self.block(table);
        }
        if self.rng.one_in(4) {
            let comment = self.comment("last line");
            self.line(&comment);
        }
        if self.rng.one_in(4) {
            self.used.push("form no final newline".to_owned());
            let end = self.text.trim_end().len();
            self.text.truncate(end);
        }
    }

    fn block(&mut self, table: &Table) {
        self.used.push("form header".to_owned());
        let indent = if self.rng.one_in(6) { "  " } else { "" };
        if self.rng.one_in(2) {
            self.line("");
        }
        if self.rng.one_in(5) {
            let comment = self.comment("before header");
            self.line(&format!("{indent}{comment}"));
        }
        let separator = if self.rng.one_in(8) { " . " } else { "." };
        let path: Vec<String> = table.path.iter().map(|key| self.key(key)).collect();
        let mut header = format!("{indent}[{}]", path.join(separator));
        if self.rng.one_in(6) {
            header += &format!(" {}", self.comment("behind header"));
        }
        self.line(&header);
        for (key, value) in self.shuffled(table) {
            if self.rng.one_in(8) {
                let comment = self.comment("before key");
                self.line(&format!("{indent}{comment}"));
            }
            if self.rng.one_in(12) {
                self.line("");
            }
            let value = self.value(&value, true);
            let equals = self.rng.pick(&[" = ", "=", "  =  "]);
            let mut line = format!("{indent}{}{equals}{value}", self.key(key));
            if self.rng.one_in(6) {
                line += &format!("  {}", self.comment("behind value"));
            }
            self.line(&line);
        }
        if self.rng.one_in(8) {
            let comment = self.comment("end of table");
            self.line(&comment);
        }
    }

    fn dotted(&mut self, table: &Table) {
        self.used.push("form dotted".to_owned());
        if table.entries.is_empty() {
            let path: Vec<String> = table.path.iter().map(|key| self.key(key)).collect();
            self.line(&format!("{} = {{}}", path.join(".")));
        }
        for (key, value) in self.shuffled(table) {
            let mut path: Vec<String> = table.path.iter().map(|key| self.key(key)).collect();
            path.push(self.key(key));
            let value = self.value(&value, true);
            let mut line = format!("{} = {value}", path.join("."));
            if self.rng.one_in(6) {
                line += &format!(" {}", self.comment("behind dotted"));
            }
            self.line(&line);
        }
    }

    fn inline(&mut self, table: &Table, below: &[&Table]) {
        self.used.push("form inline".to_owned());
        let mut entries: Vec<String> = Vec::new();
        for (key, value) in self.shuffled(table) {
            let value = self.value(&value, false);
            entries.push(format!("{} = {value}", self.key(key)));
        }
        for child in below {
            let own: Vec<String> = child.entries.iter().map(|(key, value)| format!("{key} = {}", self.value(value, false))).collect();
            entries.push(format!("{} = {{ {} }}", child.path[1], own.join(", ")));
        }
        let path: Vec<String> = table.path.iter().map(|key| self.key(key)).collect();
        let mut line = format!("{} = {{ {} }}", path.join("."), entries.join(", "));
        if self.rng.one_in(4) {
            line += &format!(" {}", self.comment("behind inline table"));
        }
        self.line(&line);
    }

    fn shuffled(&mut self, table: &Table) -> Vec<(&'static str, Value)> {
        let mut entries = table.entries.clone();
        if self.rng.one_in(3) {
            for at in (1..entries.len()).rev() {
                entries.swap(at, self.rng.below(at + 1));
            }
        }
        entries
    }

    fn key(&mut self, key: &str) -> String {
        let bare = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        match self.rng.below(12) {
            0 => format!("\"{key}\""),
            1 => format!("'{key}'"),
            _ if bare => key.to_owned(),
            _ => format!("\"{key}\""),
        }
    }

    fn string(&mut self, text: &str) -> String {
        match self.rng.below(8) {
            0 | 1 => {
                self.used.push("form literal string".to_owned());
                format!("'{text}'")
            }
            2 => {
                self.used.push("form long string".to_owned());
                format!("\"\"\"{text}\"\"\"")
            }
            3 => {
                self.used.push("form long literal string".to_owned());
                format!("'''{text}'''")
            }
            _ => format!("\"{text}\""),
        }
    }

    fn value(&mut self, value: &Value, lines: bool) -> String {
        match value {
            Value::Text(text) => self.string(text),
            Value::Number(number) => number.to_string(),
            Value::Bool(value) => value.to_string(),
            Value::Raw(raw) => raw.clone(),
            Value::List(items) => {
                if !lines || self.rng.one_in(2) {
                    let items: Vec<String> = items.iter().map(|item| self.string(item)).collect();
                    return format!("[{}]", items.join(", "));
                }
                self.used.push("form long list".to_owned());
                let mut text = "[".to_owned();
                if self.rng.one_in(3) {
                    text += &format!(" {}", self.comment("behind bracket"));
                }
                text += self.newline;
                for (nth, item) in items.iter().enumerate() {
                    if self.rng.one_in(4) {
                        text += &format!("    {}{}", self.comment("before element"), self.newline);
                    }
                    let last = nth + 1 == items.len();
                    let comma = if last && self.rng.one_in(2) { "" } else { "," };
                    text += &format!("    {}{comma}", self.string(item));
                    if self.rng.one_in(4) {
                        text += &format!(" {}", self.comment("behind element"));
                    }
                    text += self.newline;
                }
                if self.rng.one_in(4) {
                    text += &format!("    {}{}", self.comment("end of list"), self.newline);
                }
                text + "]"
            }
        }
    }
}
