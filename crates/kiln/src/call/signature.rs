//! What a function takes and gives, as the runtime's typed functions say it.

use std::fmt;

use serde_json::Value;

/// Types of parameters and of the result, in the runtime's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Types of the parameters.
    pub parameters: Vec<String>,
    /// Type of the result.
    pub result: String,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}) -> {}", self.parameters.join(", "), self.result)
    }
}

impl Signature {
    /// Reads what a kernel states of a function: `{"type_schema": "{..}"}`, where the schema is JSON again.
    pub fn of_metadata(metadata: &str) -> Option<Self> {
        let metadata: Value = serde_json::from_str(metadata).ok()?;
        let schema: Value = serde_json::from_str(metadata.get("type_schema")?.as_str()?).ok()?;
        // The form differs between releases: either all types in a list, the result's first, or both by name.
        let (result, parameters) = match (schema.get("named_args"), schema.get("args")) {
            (Some(named), _) => (named.get("return")?.as_array()?.first()?, named.get("params")?.as_array()?.as_slice()),
            (None, Some(list)) => list.as_array()?.split_first()?,
            (None, None) => return None,
        };
        let parameters = parameters.iter().map(type_name).collect::<Option<Vec<_>>>()?;
        Some(Self { parameters, result: type_name(result)? })
    }

    /// Reads the complaint about a wrong number of arguments: `.. calling: `name(0: T, 1: T) -> R`. Expected 2 but ..`.
    pub fn of_complaint(message: &str) -> Option<Self> {
        let (_, rest) = message.split_once("Mismatched number of arguments")?;
        let (_, rest) = rest.split_once('`')?;
        let (signature, _) = rest.split_once('`')?;
        let (head, result) = signature.rsplit_once(" -> ")?;
        let list = head.get(head.find('(')? + 1..)?.strip_suffix(')')?;
        let mut parameters = Vec::new();
        // Commas also stand inside of types, numbers with a colon only before them.
        for position in 0.. {
            let mark = if position == 0 { format!("{position}: ") } else { format!(", {position}: ") };
            let Some(start) = list.find(&mark) else { break };
            let rest = list.get(start + mark.len()..)?;
            let end = rest.find(&format!(", {}: ", position + 1)).unwrap_or(rest.len());
            parameters.push(rest.get(..end)?.to_owned());
        }
        Some(Self { parameters, result: result.to_owned() })
    }

    /// Whether the parameter of this type takes a tensor.
    pub fn is_tensor(parameter: &str) -> bool {
        parameter.contains("Tensor")
    }
}

/// A type of a schema in one word: `Array<int>`.
fn type_name(schema: &Value) -> Option<String> {
    let name = schema.get("type")?.as_str()?;
    match schema.get("args").and_then(Value::as_array).filter(|arguments| !arguments.is_empty()) {
        None => Some(name.to_owned()),
        Some(arguments) => Some(format!("{name}<{}>", arguments.iter().map(type_name).collect::<Option<Vec<_>>>()?.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_metadata_are_read() {
        let read = |schema: &str| {
            let metadata = serde_json::json!({ "type_schema": schema }).to_string();
            Signature::of_metadata(&metadata).map(|signature| signature.to_string())
        };
        let named = r#"{"type":"ffi.Function","named_args":{"return":[{"type":"None"}],"params":[{"type":"DLTensor*"},{"type":"int"}]}}"#;
        assert_eq!(read(named).unwrap(), "(DLTensor*, int) -> None");
        let listed = r#"{"type":"ffi.Function","args":[{"type":"int"},{"type":"ffi.Array","args":[{"type":"float"}]}]}"#;
        assert_eq!(read(listed).unwrap(), "(ffi.Array<float>) -> int");
        for bad in ["", "{}", r#"{"args":[]}"#, r#"{"args":[{"type":1}]}"#] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert_eq!(Signature::of_metadata("no JSON"), None);
    }

    #[test]
    fn the_complaint_names_the_types() {
        let complaint = "Mismatched number of arguments when calling: `f(0: DLTensor*, 1: Map<str, Tuple<int, 1x>>, 2: float) -> void`. Expected 3 but got 0 arguments";
        let signature = Signature::of_complaint(complaint).unwrap();
        assert_eq!(signature.parameters, ["DLTensor*", "Map<str, Tuple<int, 1x>>", "float"]);
        assert_eq!(signature.result, "void");
        let none =
            Signature::of_complaint("Mismatched number of arguments when calling: `g() -> int`. Expected 0 but got 1 arguments").unwrap();
        assert_eq!(none.to_string(), "() -> int");
        for other in ["", "Mismatched number of arguments", "Mismatched number of arguments: `x`", "the kernel's own words"] {
            assert_eq!(Signature::of_complaint(other), None, "{other}");
        }
    }
}
