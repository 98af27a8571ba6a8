//! Bodies of the fuzz targets, as plain functions so that ordinary tests run them too.

use crate::build::{self, Parsed};
use crate::render::render;
use crate::variant::Variant;

/// Any bytes as a `build.toml`: no panic; every place is inside the text; a model exactly when there is no error.
pub fn build_toml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parsed = build::parse("build.toml", text);
    let errors = parsed.errors().count();
    assert_eq!(parsed.build.is_some(), errors == 0, "a model exactly when there is no error");
    let mut last = 0;
    for diagnostic in &parsed.diagnostics {
        let Some(span) = diagnostic.span else { continue };
        assert!(span.start <= span.end && text.get(span.start..span.end).is_some(), "{diagnostic:?} is outside the text");
        assert!(last <= span.start, "{diagnostic:?} is out of order");
        assert!(!diagnostic.message.chars().any(char::is_control), "{diagnostic:?} holds a control character");
        last = span.start;
    }
    let rendered = render(&parsed.source, &parsed.diagnostics);
    assert!(!rendered.chars().any(|c| c.is_control() && c != '\n'), "the rendered text holds a control character");
    update(&parsed, text);
}

/// A file that is read is brought to the current form, or refused; the result is read and does not change again.
fn update(parsed: &Parsed, text: &str) {
    match build::update("build.toml", text, Some("MIT")) {
        Ok(update) => {
            assert!(parsed.build.is_some(), "a file with errors is updated");
            let again = build::update("build.toml", &update.text, None);
            assert!(again.is_ok_and(|again| again.text == update.text), "an updated file changes again:\n{}", update.text);
        }
        Err(error) => assert!(parsed.build.is_none(), "{error}\n{text}"),
    }
}

/// Any bytes as a variant's name: no panic; a name that is read is printed back; an emittable one reads back as itself.
pub fn variant_name(data: &[u8]) {
    let Ok(name) = std::str::from_utf8(data) else { return };
    if let Ok(variant) = name.parse::<Variant>() {
        assert_eq!(variant.to_string(), name);
        if variant.check_emittable().is_ok() {
            assert_eq!(variant.to_string().parse(), Ok(variant));
        }
    }
}
