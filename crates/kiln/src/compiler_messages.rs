//! What the compilers of a build have to say, as messages: equal ones that the parts of one unit give are one.
//!
//! A unit of device code is compiled once for each capability and once for the host, and most of what there is to say is said each
//! time. Messages of such a unit come when all of its parts are done, in the order of the graph, each with the capabilities that it is about.

use std::collections::{BTreeMap, BTreeSet};

use kiln_backend::UnitPart;
use kiln_graph::{Event, StepId};
use kiln_object::demangle::demangle;

use crate::compiler_text::{Severity, split};

/// How ptxas calls a device function that is not in its unit.
const UNRESOLVED: &str = "Unresolved extern function '";

/// How ptxas calls an instruction that the devices of a capability do not have.
const UNSUPPORTED: &str = "not supported on .target";

/// A message of a compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompilerMessage {
    /// What was compiled, as the step is called: `cuda/relu.cu`.
    pub unit: String,
    /// What the compiler wrote, untouched.
    pub text: String,
    /// How bad it is; none for text that is no message.
    pub severity: Option<Severity>,
    /// The file that it is about: below the project where it lies there.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u64>,
    /// The column, from 1.
    pub column: Option<u64>,
    /// The capabilities of the device code that it is about, in ascending order. Empty for what concerns the host alone.
    pub capabilities: Vec<String>,
}

/// Makes messages of the events of a graph.
#[derive(Debug, Default)]
pub struct CompilerMessages {
    parts: BTreeMap<StepId, UnitPart>,
    units: BTreeMap<String, Unit>,
    /// Advice that was given.
    advised: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Unit {
    /// Parts that are not done.
    open: BTreeSet<StepId>,
    /// What those said that are done: the place of each in the unit, and its text.
    said: BTreeMap<usize, (UnitPart, String)>,
}

impl CompilerMessages {
    /// For a graph with these parts of units.
    pub fn new(parts: &BTreeMap<StepId, UnitPart>) -> Self {
        let mut units: BTreeMap<String, Unit> = BTreeMap::new();
        for (step, part) in parts {
            units.entry(part.unit.clone()).or_default().open.insert(step.clone());
        }
        Self { parts: parts.clone(), units, advised: BTreeSet::new() }
    }

    /// What to do about the failure of a step, where its compiler does not say it; each advice once.
    pub fn advice(&mut self, event: &Event) -> Option<String> {
        let Event::StepFailed { step, label, output, .. } = event else { return None };
        let text = String::from_utf8_lossy(output);
        let part = self.parts.get(step);
        let unit = part.map_or(label, |part| &part.source);
        let advice = match text.split_once(UNRESOLVED) {
            Some((_, rest)) => {
                let name = rest.split('\'').next()?;
                let shown = demangle(name).unwrap_or_else(|| name.to_owned());
                format!("`{unit}` calls a device function of another unit, `{shown}`: that needs `-rdc=true` in `cuda-flags` of both")
            }
            None => {
                let plain = part.filter(|_| text.contains(UNSUPPORTED))?.capabilities.first()?;
                let twin = self.twin(part?, plain)?;
                format!("`{unit}` does not compile for `{plain}`, and its list has `{twin}`: if it is for that alone, remove `{plain}`")
            }
        };
        self.advised.insert(advice.clone()).then_some(advice)
    }

    /// The capability with a suffix that the unit of a part is compiled for beside the plain one.
    fn twin(&self, part: &UnitPart, plain: &str) -> Option<&str> {
        let others = self.parts.values().filter(|other| other.unit == part.unit).flat_map(|other| &other.capabilities);
        let is_twin = |other: &&String| other.strip_prefix(plain).is_some_and(|suffix| matches!(suffix, "a" | "f"));
        others.into_iter().find(is_twin).map(String::as_str)
    }

    /// The messages that an event brings.
    pub fn take(&mut self, event: &Event) -> Vec<CompilerMessage> {
        let (step, label, output) = match event {
            Event::StepFinished { step, label, output, .. }
            | Event::StepFailed { step, label, output, .. }
            | Event::StepRestored { step, label, output, .. } => (step, label, output.as_slice()),
            Event::StepUpToDate { step, label, .. } | Event::StepSkipped { step, label, .. } => (step, label, [].as_slice()),
            _ => return Vec::new(),
        };
        let text = String::from_utf8_lossy(output).into_owned();
        let Some(part) = self.parts.get(step) else { return merged(label, &[(Vec::new(), text)]) };
        let Some(unit) = self.units.get_mut(&part.unit) else { return Vec::new() };
        unit.open.remove(step);
        if !text.is_empty() {
            unit.said.insert(part.place, (part.clone(), text));
        }
        if !unit.open.is_empty() {
            return Vec::new();
        }
        let said: Vec<_> = std::mem::take(&mut unit.said).into_values().map(|(part, text)| (part.capabilities, text)).collect();
        merged(&part.source, &said)
    }
}

/// The messages of texts, equal ones once.
fn merged(unit: &str, said: &[(Vec<String>, String)]) -> Vec<CompilerMessage> {
    let mut messages: Vec<CompilerMessage> = Vec::new();
    for (capabilities, text) in said {
        for message in split(text) {
            let at = messages.iter().position(|known| known.text == message.text).unwrap_or_else(|| {
                messages.push(CompilerMessage {
                    unit: unit.to_owned(),
                    text: message.text.to_owned(),
                    severity: message.severity,
                    file: message.file.map(|file| file.strip_prefix("./").unwrap_or(file).to_owned()),
                    line: message.line,
                    column: message.column,
                    capabilities: Vec::new(),
                });
                messages.len() - 1
            });
            if let Some(known) = messages.get_mut(at) {
                let new = capabilities.iter().filter(|capability| !known.capabilities.contains(capability)).cloned().collect::<Vec<_>>();
                known.capabilities.extend(new);
            }
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    const WARNING: &str = "./k.cu(5): warning #177-D: x\n  y\n\n";

    #[test]
    fn equal_messages_of_several_capabilities_are_one() {
        let capability = |name: &str| vec![name.to_owned()];
        let said = [
            (Vec::new(), WARNING.to_owned()),
            (capability("8.0"), format!("{WARNING}ptxas info    : a\n")),
            (capability("9.0a"), format!("ptxas info    : b\n{WARNING}")),
        ];
        let messages = merged("k.cu", &said);
        let shown: Vec<_> = messages.iter().map(|message| (message.text.as_str(), message.capabilities.join(" "), message.line)).collect();
        let expected = [
            (WARNING, "8.0 9.0a".to_owned(), Some(5)),
            ("ptxas info    : a\n", "8.0".to_owned(), None),
            ("ptxas info    : b\n", "9.0a".to_owned(), None),
        ];
        assert_eq!(shown, expected);
        assert_eq!(messages[0].file.as_deref(), Some("k.cu"));
    }
}
