//! Where a compiler looks for headers, by its arguments.

use std::path::Path;

use crate::place::{Found, Place, Places};
use crate::step::{Arg, OutputRef, Piece, Program};

/// A directory that is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Searched {
    /// The directory; for a step's output directory, an output without a name.
    pub(crate) dir: Place,
    /// Whether only includes in quotes look there.
    pub(crate) quoted_only: bool,
}

/// The options that name such directories, in the order in which a compiler goes through their kinds, whatever their order among the
/// arguments. A longer option stands before one that it begins with.
const OPTIONS: [(&str, u8); 7] = [
    ("-iquote", 0),
    ("--include-path", 1),
    ("--include-directory", 1),
    ("-I", 1),
    ("-isystem", 2),
    ("--system-include", 2),
    ("-idirafter", 3),
];

/// The directories that `program` says to search, in the order in which they are searched. A compiler's own directories come after
/// those of `-isystem`; nobody here knows them.
pub(crate) fn searched(program: &Program, places: &Places<'_>, cwd: &Path) -> Vec<Searched> {
    let mut found = Vec::new();
    let mut args = program.args.iter();
    while let Some(arg) = args.next() {
        let Some(Piece::Text(first)) = arg.0.first() else { continue };
        let Some((option, kind)) = OPTIONS.iter().find(|(option, _)| first.starts_with(option)) else { continue };
        let joined = first.get(option.len()..).unwrap_or_default();
        let joined = unquoted(joined.strip_prefix('=').unwrap_or(joined));
        let dir = if first == option && arg.0.iter().skip(1).all(|piece| matches!(piece, Piece::Scope(_))) {
            let Some(value) = args.next() else { break };
            directory(value.0.first().map(|piece| unquoted(text(piece))).unwrap_or_default(), value, places, cwd)
        } else {
            directory(joined, arg, places, cwd)
        };
        found.extend(dir.map(|dir| (*kind, Searched { dir, quoted_only: *kind == 0 })));
    }
    found.sort_by_key(|(kind, _)| *kind);
    found.into_iter().map(|(_, searched)| searched).collect()
}

/// The directory that an argument names, `named` being what of its first piece belongs to the name.
fn directory(named: &str, arg: &Arg, places: &Places<'_>, cwd: &Path) -> Option<Place> {
    let mut rest = arg.0.iter().skip(usize::from(matches!(arg.0.first(), Some(Piece::Text(_)))));
    let place = match (named, rest.next()) {
        ("", Some(Piece::Path(path))) => Place::from(path),
        ("", Some(Piece::OutputDir(step))) => Place::Output(OutputRef { step: step.clone(), name: String::new() }),
        (named, None | Some(Piece::Scope(_))) if !named.is_empty() => match places.find(cwd, named.as_bytes()) {
            Found::File(place) => place,
            Found::Immutable { root, path } => Place::Root { root, path },
            Found::Output { step, name } => Place::Output(OutputRef { step, name }),
            Found::Temporary => return None,
        },
        // Something that no backend of ours writes.
        _ => return None,
    };
    rest.all(|piece| matches!(piece, Piece::Scope(_)) || text(piece) == "\"").then_some(place)
}

/// nvcc takes its paths in quotes.
fn unquoted(text: &str) -> &str {
    let text = text.strip_prefix('"').unwrap_or(text);
    text.strip_suffix('"').unwrap_or(text)
}

fn text(piece: &Piece) -> &str {
    match piece {
        Piece::Text(text) => text,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::graph::Graph;
    use crate::interrupt::Interrupt;
    use crate::step::{PathRef, RootBinding, RootKind, RootName, Scope, StepId};
    use crate::workdir::WorkDir;

    #[test]
    fn directories_in_the_order_of_the_search() {
        let temp = tempfile::tempdir().unwrap();
        let dir = std::fs::canonicalize(temp.path()).unwrap();
        let work_dir = WorkDir::open(dir.join(".kiln")).unwrap().lock(None, &Interrupt::new(), &mut |_| {}).unwrap();
        let mut graph = Graph::new();
        let root = RootName::new("project");
        graph.bind_root(root.clone(), RootBinding { dir: dir.clone(), kind: RootKind::Mutable }).unwrap();
        let path = |path: &str| Piece::Path(PathRef { root: root.clone(), path: path.to_owned() });
        let args = vec![
            "-idirafter".into(),
            "last".into(),
            Arg::from("-isystem").scoped(Scope::Root(root.clone())),
            Arg(vec![path("torch")]).scoped(Scope::Root(root.clone())),
            "-isystem/usr/x".into(),
            Arg::text("-I").with(path("a")),
            Arg::text("-I\"").with(path("b")).and("\""),
            "-isystem".into(),
            Arg::text("\"").with(path("c")).and("\""),
            Arg::text("-I").with(Piece::OutputDir(StepId("id".into()))),
            "-Iplain".into(),
            "-I../up".into(),
            "-iquote".into(),
            "q".into(),
            "-O2".into(),
        ];
        let cwd = PathRef { root: root.clone(), path: String::new() };
        let program = Program {
            path: Path::new("/cc").into(),
            launcher: None,
            tool: "".into(),
            args: args.into(),
            cwd,
            env: Arc::default(),
            ambient: Arc::default(),
            depfile: None,
            then: Vec::new(),
        };
        let names: Vec<String> = searched(&program, &Places::new(&graph, &work_dir), &dir)
            .iter()
            .map(|searched| searched.dir.to_string().replace(&dir.parent().unwrap().display().to_string(), ".."))
            .collect();
        let ours = [
            "project:q",
            "project:a",
            "project:b",
            "id/",
            "project:plain",
            "../up",
            "project:torch",
            "/usr/x",
            "project:c",
            "project:last",
        ];
        assert_eq!(names, ours);
    }
}
