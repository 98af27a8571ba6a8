//! What checks say, as text.

use kiln::check::{Remark, RemarkKind};
use kiln_format::Level;

use crate::printer::{Printer, Styles, one_line};

/// One remark: what is wrong, where, by what, and what to do about it. Each line ends with a line break. Names out of files are shown as a
/// terminal may have them.
pub(crate) fn remark_text(printer: &Printer, remark: &Remark) -> String {
    let Styles { error, warning, reset, .. } = printer.styles;
    let (style, level) = match remark.level {
        Level::Error => (error, "error"),
        Level::Warning => (warning, "warning"),
        Level::Note => ("", "note"),
    };
    let failed = match remark.kind {
        RemarkKind::Finding => "",
        RemarkKind::Failure => "the check could not run: ",
    };
    let (detail, place) = (one_line(&remark.detail), one_line(&remark.place()));
    let mut text = format!("{style}{level}[{}]{reset}: {failed}{detail}\n  in {place}\n", remark.rule);
    if let Some(evidence) = &remark.evidence {
        text.push_str(&format!("  found {}\n", one_line(evidence)));
    }
    if !remark.caused_by.is_empty() {
        text.push_str(&format!("  from {}\n", one_line(&remark.caused_by.join(", "))));
    }
    text.push_str(&printer.hint_text(remark.fix.as_deref()));
    text
}

/// All remarks of a report. Findings of one rule against one file that stand together are one section, with a line for each symbol.
pub(crate) fn report_text(printer: &Printer, remarks: &[Remark]) -> String {
    let alike = |a: &Remark, b: &Remark| (a.kind, a.level, &a.rule, &a.file, &a.fix) == (b.kind, b.level, &b.rule, &b.file, &b.fix);
    remarks.chunk_by(alike).map(|section| section_text(printer, section)).collect()
}

fn section_text(printer: &Printer, section: &[Remark]) -> String {
    let [first, _, ..] = section else { return section.iter().map(|remark| remark_text(printer, remark)).collect() };
    let Styles { error, warning, reset, .. } = printer.styles;
    let style = if first.level == Level::Error { error } else { warning };
    let mut text = format!("{style}{}[{}]{reset}: {} in {}\n", first.level, first.rule, section.len(), one_line(&first.file));
    for remark in section {
        text.push_str(&format!("  {}\n", one_line(&remark.detail)));
    }
    text.push_str(&printer.hint_text(first.fix.as_deref()));
    text
}
