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
    for variant in find_whole_variants(&args.dir.path).map_err(failure)? {
        let verb = match rehash(&variant.path, args.force).map_err(failure)? {
            Rehashed::Unchanged => "Unchanged",
            Rehashed::Rewritten => "Rewrote",
        };
        printer.status(verb, &variant.name);
    }
    Ok(Exit::Success)
}
