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
        let joined = joined.strip_prefix('=').unwrap_or(joined);
        let dir = if joined.is_empty() && arg.0.iter().skip(1).all(|piece| matches!(piece, Piece::Scope(_))) {
            let Some(value) = args.next() else { break };
            directory(value.0.first().map(text).unwrap_or_default(), value, places, cwd)
        } else {
            directory(joined, arg, places, cwd)
        };
        found.extend(dir.map(|dir| (*kind, Searched { dir, quoted_only: *kind == 0 })));
    }
    found.sort_by_key(|(kind, _)| *kind);
    found.into_iter().map(|(_, searched)| searched).collect()
}

/// The directory that an argument names, `text` being what of its first piece belongs to the name.
fn directory(text: &str, arg: &Arg, places: &Places<'_>, cwd: &Path) -> Option<Place> {
    let mut rest = arg.0.iter().skip(usize::from(matches!(arg.0.first(), Some(Piece::Text(_)))));
    let place = match (text, rest.next()) {
        ("", Some(Piece::Path(path))) => Place::from(path),
        ("", Some(Piece::OutputDir(step))) => Place::Output(OutputRef { step: step.clone(), name: String::new() }),
        (text, None | Some(Piece::Scope(_))) if !text.is_empty() => match places.find(cwd, text.as_bytes()) {
            Found::File(place) => place,
            Found::Immutable { root, path } => Place::Root { root, path },
            Found::Output { step, name } => Place::Output(OutputRef { step, name }),
            Found::Temporary => return None,
        },
        // Something that no backend of ours writes.
        _ => return None,
    };
    rest.all(|piece| matches!(piece, Piece::Scope(_))).then_some(place)
}

fn text(piece: &Piece) -> &str {
    match piece {
        Piece::Text(text) => text,
        _ => "",
    }
}
