//! A deterministic recording compiler, and a driver of the executor that tests may kill. For tests only.
//!
//! `compile --out FILE [--dep FILE] [-I DIR].. SOURCE..` writes the text of its sources with `#include NAME` lines
//! replaced, words of `-DWORD=TEXT` replaced, and what else the sources tell it to do in lines that begin with `@`. It appends a line when it starts and
//! one when it ends to the file that `RECORD_LOG` names.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test's other half: what goes wrong here fails the test"
)]

#[path = "../common/project.rs"]
mod project;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("compile") => compile(&args[1..]),
        Some("drive") => drive(&args[1..]),
        other => panic!("unknown command {other:?}"),
    }
}

#[derive(Default)]
struct Compiler {
    include: Vec<PathBuf>,
    defines: Vec<(String, String)>,
    read: Vec<PathBuf>,
    text: String,
    keep_output: bool,
    keep_depfile: bool,
    empty_depfile: bool,
    depend: Vec<String>,
}

fn compile(args: &[String]) {
    let mut compiler = Compiler { keep_output: true, keep_depfile: true, ..Compiler::default() };
    let (mut out, mut dep, mut sources) = (None, None, Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--out" => out = args.next(),
            "--dep" => dep = args.next(),
            "-I" | "-isystem" => compiler.include.push(args.next().unwrap().into()),
            "--tag" => compiler.text += &format!("tag {}\n", args.next().unwrap()),
            define if define.starts_with("-D") => {
                let (word, text) = define[2..].split_once('=').unwrap();
                compiler.defines.push((word.to_owned(), text.to_owned()));
            }
            source if !source.starts_with('-') => sources.push(PathBuf::from(source)),
            other => panic!("unknown option {other}"),
        }
    }
    let name = sources[0].file_name().unwrap().to_string_lossy().into_owned();
    record(&format!("start {name}"));
    for source in &sources {
        compiler.expand(source);
    }
    if compiler.keep_output {
        fs::write(out.unwrap(), format!("compiled\n{}", compiler.text)).unwrap();
    }
    if let Some(dep) = dep
        && compiler.keep_depfile
    {
        let quote = |path: &PathBuf| path.to_str().unwrap().replace('$', "$$").replace(' ', "\\ ").replace('#', "\\#");
        let names = compiler.read.iter().map(quote).chain(compiler.depend.iter().cloned());
        let text = names.fold("out:".to_owned(), |text, name| text + " \\\n " + &name);
        fs::write(dep, if compiler.empty_depfile { String::new() } else { text + "\n" }).unwrap();
    }
    record(&format!("end {name}"));
}

impl Compiler {
    fn expand(&mut self, file: &Path) {
        self.read.push(file.to_owned());
        let text = fs::read_to_string(file).unwrap_or_else(|error| {
            eprintln!("{}: {error}", file.display());
            std::process::exit(3);
        });
        for line in text.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "#include" => {
                    let near = file.parent().unwrap().join(rest);
                    let found = [near].into_iter().chain(self.include.iter().map(|dir| dir.join(rest))).find(|path| path.exists());
                    let Some(found) = found else {
                        eprintln!("{}: no header {rest}", file.display());
                        std::process::exit(2);
                    };
                    self.expand(&found);
                }
                "@sleep" => std::thread::sleep(Duration::from_millis(rest.parse().unwrap())),
                // Waits until so many compilers were started, for a while.
                "@await" => {
                    let log = std::env::var_os("RECORD_LOG").unwrap();
                    let starts = || fs::read_to_string(&log).unwrap_or_default().lines().filter(|line| line.starts_with("start")).count();
                    let turns = (0..2000).take_while(|_| starts() < rest.parse().unwrap());
                    turns.for_each(|_| std::thread::sleep(Duration::from_millis(5)));
                }
                // Waits until so many compilers have ended, for a while.
                "@await-ends" => {
                    let log = std::env::var_os("RECORD_LOG").unwrap();
                    let ends = || fs::read_to_string(&log).unwrap_or_default().lines().filter(|line| line.starts_with("end")).count();
                    let turns = (0..6000).take_while(|_| ends() < rest.parse().unwrap());
                    turns.for_each(|_| std::thread::sleep(Duration::from_millis(5)));
                }
                // Takes so many MiB, really, while it sleeps for so many ms.
                "@allocate" => {
                    let (mib, time) = rest.split_once(' ').unwrap();
                    let block = vec![1_u8; mib.parse::<usize>().unwrap() << 20];
                    record(&format!("full {}", block.len() >> 20));
                    std::thread::sleep(Duration::from_millis(time.parse().unwrap()));
                }
                // Takes so many MiB and keeps them until so many compilers had all of theirs, for a while.
                "@together" => {
                    let (count, mib) = rest.split_once(' ').unwrap();
                    let block = vec![1_u8; mib.parse::<usize>().unwrap() << 20];
                    record(&format!("full {}", block.len() >> 20));
                    let log = std::env::var_os("RECORD_LOG").unwrap();
                    let full = || fs::read_to_string(&log).unwrap_or_default().lines().filter(|line| line.starts_with("full")).count();
                    let turns = (0..12000).take_while(|_| full() < count.parse().unwrap());
                    turns.for_each(|_| std::thread::sleep(Duration::from_millis(5)));
                }
                // Dies as if memory had run out, unless the file is there that it makes.
                "@kill-once" => {
                    if !Path::new(rest).exists() {
                        fs::write(rest, "").unwrap();
                        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
                    }
                }
                "@exit" => std::process::exit(rest.parse().unwrap()),
                "@kill" => {
                    let signal = rustix::process::Signal::from_named_raw(rest.parse().unwrap()).unwrap();
                    rustix::process::kill_process(rustix::process::getpid(), signal).unwrap();
                }
                "@print" => println!("{rest}"),
                "@warn" => eprintln!("{}: {rest}", file.display()),
                "@eprint" => eprintln!("{rest}"),
                "@env" => self.text += &format!("{rest}={:?}\n", std::env::var(rest)),
                "@cwd" => self.text += &format!("{}\n", std::env::current_dir().unwrap().display()),
                "@stdin" => self.text += &format!("stdin {:?}\n", std::io::read_to_string(std::io::stdin())),
                "@scratch" => {
                    let dir = std::env::temp_dir();
                    fs::write(dir.join("scratch"), rest).unwrap();
                    self.text += &format!("{}\n", fs::read_to_string(dir.join("scratch")).unwrap());
                }
                "@append" => {
                    let (path, text) = rest.split_once(' ').unwrap();
                    append(Path::new(path), text);
                }
                "@remove" => fs::remove_file(rest).unwrap(),
                "@depend" => self.depend.push(rest.to_owned()),
                "@no-output" => self.keep_output = false,
                "@no-depfile" => self.keep_depfile = false,
                "@empty-depfile" => self.empty_depfile = true,
                "@has" => {
                    let near = file.parent().unwrap().join(rest.trim_matches('"'));
                    let dirs = self.include.iter().map(|dir| dir.join(rest.trim_matches(['<', '>', '"'])));
                    let found = Some(near).filter(|_| rest.starts_with('"')).into_iter().chain(dirs).any(|path| path.exists());
                    self.text += &format!("{found}\n");
                }
                _ => {
                    let known = |word: &str| self.defines.iter().find(|(known, _)| known == word).map(|(_, text)| text.clone());
                    let words: Vec<String> = line.split(' ').map(|word| known(word).unwrap_or_else(|| word.to_owned())).collect();
                    self.text += &format!("{}\n", words.join(" "));
                }
            }
        }
    }
}

fn record(line: &str) {
    if let Some(log) = std::env::var_os("RECORD_LOG") {
        append(Path::new(&log), line);
    }
}

fn append(path: &Path, line: &str) {
    fs::File::options().append(true).create(true).open(path).unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// `drive PROJECT JOBS [WORK_DIR CACHE]` builds a project, in its own work directory without a cache or in another one with a cache;
/// prints when it has the lock, and what it did at the end.
fn drive(args: &[String]) {
    let project = project::Project { dir: args[0].clone().into(), helper: std::env::current_exe().unwrap() };
    let graph = project.graph();
    let work_dir = args.get(2).map_or_else(|| project.work_dir(), PathBuf::from);
    let work_dir = kiln_graph::WorkDir::open(work_dir).unwrap();
    let cache = args.get(3).map(|dir| kiln_graph::ActionCache::new(dir, kiln_graph::DEFAULT_CACHE_LIMIT));
    let locked = work_dir.lock(None, &kiln_graph::Interrupt::new(), &mut |holder| println!("waiting for {holder:?}")).unwrap();
    println!("locked");
    let config = kiln_graph::Config { jobs: args[1].parse().unwrap(), cache, ..kiln_graph::Config::default() };
    let outcome = kiln_graph::Executor::new(&locked, config).run(&graph, &|_| {});
    println!("{:?}", outcome.counts());
    std::process::exit(i32::from(!outcome.is_ok()));
}
