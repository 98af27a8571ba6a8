//! `kiln hash`.

use kiln::hash::{HashError, Rehashed, find_whole_variants, rehash};

use crate::args::Hash;
use crate::exit::{Exit, Failure};
use crate::printer::Printer;

pub(crate) fn run(args: &Hash, printer: &Printer) -> Result<Exit, Failure> {
    let failure = |error: HashError| Failure {
        causes: kiln::build_error::causes(&error),
        hint: error.hint().map(str::to_owned),
        ..Failure::new("hash", error.to_string())
    };
    let mut failed = Vec::new();
    for variant in find_whole_variants(&args.dir.path).map_err(failure)? {
        match rehash(&variant.path, args.force) {
            Ok(Rehashed::Unchanged) => printer.status("Unchanged", &variant.name),
            Ok(Rehashed::Rewritten) => printer.status("Rewrote", &variant.name),
            Err(error) => failed.push(failure(error)),
        }
    }
    // All of them, for the next command to be the last one.
    let last = failed.pop();
    failed.iter().for_each(|failure| printer.failure(failure));
    last.map_or(Ok(Exit::Success), Err)
}
