//! What a step was like when it last ran, kept by its name only to say what is different now. Nothing is decided by it.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::event::Reason;
use crate::graph::Node;
use crate::plan::{PlanAction, action};
use crate::run::Run;

impl Run<'_> {
    /// A better reason than that there is no record, if one is known.
    pub(crate) fn why_new(&self, index: usize, node: &Node) -> Reason {
        let last = fs::read_to_string(self.last_path(index, node)).unwrap_or_default();
        let mut last = last.split('\0');
        let (Some(tool), now) = (last.next().filter(|tool| !tool.is_empty()), description(node)) else { return Reason::NoRecord };
        let mut removed: Vec<String> = last.map(str::to_owned).collect();
        let mut added = Vec::new();
        for word in now.words {
            match removed.iter().position(|known| *known == word) {
                Some(at) => drop(removed.remove(at)),
                None => added.push(word),
            }
        }
        match (tool == now.tool, added.is_empty() && removed.is_empty()) {
            (false, _) => Reason::ToolChanged,
            (true, false) => Reason::ArgumentsChanged { added, removed },
            (true, true) => Reason::NoRecord,
        }
    }

    /// Keeps what the step is like now.
    pub(crate) fn keep_last(&self, index: usize, node: &Node) {
        let now = description(node);
        let text = [now.tool].into_iter().chain(now.words).collect::<Vec<_>>().join("\0");
        let path = self.last_path(index, node);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        if let Err(error) = made.and_then(|()| self.work_dir.write_atomically(&path, text.as_bytes())) {
            tracing::debug!("cannot keep the description of `{}`: {error}", node.step.label);
        }
    }

    /// Steps of one name are told apart by the targets that need them.
    fn last_path(&self, index: usize, node: &Node) -> PathBuf {
        let needed = self.closures.get_or_init(|| self.graph.target_closures());
        let needed = self.graph.targets().zip(needed).filter(|(_, closure): &(_, &BTreeSet<usize>)| closure.contains(&index));
        let first = needed.map(|((name, _), _)| name).next().unwrap_or_default();
        let name = format!("{}\0{}\0{first}", node.step.verb, node.step.label);
        self.work_dir.path().join("last").join(&blake3::hash(name.as_bytes()).to_hex()[..32])
    }
}

struct Description {
    tool: String,
    /// Arguments and variables.
    words: Vec<String>,
}

fn description(node: &Node) -> Description {
    match action(&node.step.action) {
        PlanAction::Run { tool, argv, env, then, .. } => {
            let calls = then.into_iter().flat_map(|argv| argv.into_iter().skip(1));
            Description { tool, words: argv.into_iter().skip(1).chain(env).chain(calls).collect() }
        }
        PlanAction::Builtin { name, version } => Description { tool: format!("{name} {version}"), words: Vec::new() },
    }
}
