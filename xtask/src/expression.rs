//! The few expressions of GitHub workflows that ours uses: `${{ a.b.c }}` and `${{ fromJSON(a.b.c) }}`.
//!
//! Anything else is an error: guessing what GitHub would do is worse than saying that it was not tried here.

use anyhow::{Context as _, bail};
use serde_json::Value;

/// Replaces each `${{ .. }}` in `text` by its value as text.
pub(crate) fn expand(text: &str, context: &Value) -> anyhow::Result<String> {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${{") {
        let (expression, after) = after.split_once("}}").with_context(|| format!("`${{{{` without an end in `{text}`"))?;
        result.push_str(before);
        match value(expression, context)? {
            Value::String(text) => result.push_str(&text),
            Value::Null => {}
            other => result.push_str(&other.to_string()),
        }
        rest = after;
    }
    result.push_str(rest);
    Ok(result)
}

/// The value of `text` when it is one expression and nothing else.
pub(crate) fn evaluate(text: &str, context: &Value) -> anyhow::Result<Value> {
    let inner = text.trim().strip_prefix("${{").and_then(|rest| rest.strip_suffix("}}"));
    value(inner.with_context(|| format!("`{text}` is no single expression"))?, context)
}

fn value(expression: &str, context: &Value) -> anyhow::Result<Value> {
    let expression = expression.trim();
    if let Some(argument) = expression.strip_prefix("fromJSON(").and_then(|rest| rest.strip_suffix(')')) {
        let text = value(argument, context)?;
        let text = text.as_str().with_context(|| format!("`{argument}` is no text"))?;
        return serde_json::from_str(text).with_context(|| format!("`{argument}` is no JSON: `{text}`"));
    }
    let is_path = !expression.is_empty() && expression.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if !is_path {
        bail!("the expression `{expression}` is not understood here");
    }
    let mut found = context;
    for part in expression.split('.') {
        found = found.get(part).with_context(|| format!("nothing is known here of `{expression}`"))?;
    }
    Ok(found.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_and_json() {
        let context = json!({"matrix": {"os": "linux", "n": 3}, "needs": {"plan": {"outputs": {"rows": "{\"include\":[1]}"}}}});
        assert_eq!(expand("on ${{ matrix.os }}-${{matrix.n}}.", &context).unwrap(), "on linux-3.");
        assert_eq!(evaluate("${{ fromJSON(needs.plan.outputs.rows) }}", &context).unwrap(), json!({"include": [1]}));
        assert_eq!(expand("none", &context).unwrap(), "none");
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        let context = json!({"a": {"b": "x"}});
        for bad in ["${{ a.c }}", "${{ a.b == 'x' }}", "${{ hashFiles('x') }}", "${{ a.b", "${{ fromJSON(a.b) }}", "${{ }}"] {
            assert!(expand(bad, &context).is_err(), "{bad}");
        }
        assert!(evaluate("a.b", &context).is_err());
    }
}
