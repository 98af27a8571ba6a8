//! Builtins that any graph may use.

use std::sync::Arc;

use crate::step::{Builtin, BuiltinError};

/// A builtin that writes `bytes` to the output called `output`, which must be the only one of its step.
///
/// The content is part of the step's identity, by digest.
pub fn write_file(output: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Builtin {
    let (output, bytes) = (output.into(), bytes.into());
    Builtin {
        name: "write-file",
        version: 1,
        key: format!("{} {output}", blake3::hash(&bytes).to_hex()),
        run: Arc::new(move |context| {
            std::fs::write(context.out_dir.join(&output), &bytes)
                .map_err(|error| BuiltinError::new("work-directory", format!("cannot write `{output}`: {error}")))
        }),
    }
}
