//! Each rule by the lists that tell it from others, written by hand.

use super::*;

fn list(text: &str) -> Vec<CudaCapability> {
    text.split_whitespace().map(|entry| entry.parse().unwrap()).collect()
}

fn release(text: &str) -> MajorMinor {
    kiln_backend::Version::parse(text).unwrap().major_minor()
}

fn plain(list: &[CudaCapability]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn chosen(toolkit: &str, listed: &str) -> String {
    match Support::of(release(toolkit)).choose(Some(&list(listed)), None) {
        Ok(choice) => plain(&choice.capabilities),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn defaults_of_each_toolkit() {
    let of = |toolkit: &str| plain(&Support::of(release(toolkit)).choose(None, None).unwrap().capabilities);
    let before = "7.0 7.2 7.5 8.0 8.6 8.7 8.9 9.0+PTX";
    let between = "7.0 7.2 7.5 8.0 8.6 8.7 8.9 9.0 10.0 10.1 12.0+PTX";
    let after = "7.5 8.0 8.6 8.7 8.9 9.0 10.0 11.0 12.0 12.1+PTX";
    assert_eq!(
        ["11.8", "12.6", "12.8", "12.9", "13.0", "13.2", "13.5", "14.0"].map(of),
        [before, before, between, between, after, after, after, after]
    );
}

/// With a toolkit for the target of each.
#[test]
fn the_loose_intersection() {
    for (listed, toolkit, expected) in [
        ("8.0 9.0 9.0a", "12.6", "8.0 9.0 9.0a"),
        ("9.0 9.0a", "13.0", "9.0 9.0a"),
        ("10.0 10.0a", "13.0", "10.0 10.0a"),
        ("10.0 10.0a", "12.8", "10.0 10.0a"),
        ("12.0 12.0f", "13.0", "12.0 12.0f"),
        ("9.0 9.0a+PTX", "13.0", "9.0 9.0a+PTX"),
        ("9.0 9.0+PTX", "13.0", "9.0+PTX"),
        ("8.0 9.0a", "13.0", "8.0 9.0a"),
        ("8.0+PTX 9.0a", "13.0", "8.0+PTX 9.0a"),
        ("9.0a", "12.6", "9.0a"),
        ("9.0a+PTX", "13.0", "9.0a+PTX"),
        ("10.0a 10.0f", "13.0", "10.0a 10.0f"),
        ("8.0", "13.0", "8.0"),
        ("5.0 7.5 8.0 9.0", "13.0", "7.5 8.0 9.0"),
        ("8.0 8.6 8.9 9.0 10.0 12.0", "12.6", "8.0 8.6 8.9 9.0"),
        ("10.0 10.0a 12.0f", "13.0", "10.0 10.0a 12.0f"),
        ("9.0 8.0 9.0", "13.0", "8.0 9.0"),
    ] {
        assert_eq!(chosen(toolkit, listed), expected, "{listed} with {toolkit}");
    }
    let kept = |listed: &str, targets: &[Number]| plain(&intersection(&list(listed), targets));
    assert_eq!(kept("7.5 8.0 8.6 9.0 9.0a", &[(8, 0), (8, 9), (9, 0)]), "8.0 8.6 9.0 9.0a");
    assert_eq!(kept("8.0+PTX", &[(9, 0)]), "8.0+PTX");
    assert_eq!(kept("8.0", &[(9, 0)]), "");
}

#[test]
fn what_the_toolkit_cannot_make_is_replaced_and_said() {
    for (listed, expected, note) in [
        ("7.0", "7.5", "CUDA 13.0 has no code for `7.0`: `7.5` stands for it"),
        ("7.0+PTX", "7.5+PTX", "CUDA 13.0 has no code for `7.0+PTX`: `7.5+PTX` stands for it"),
        ("5.0+PTX", "7.5+PTX", "CUDA 13.0 has no code for `5.0+PTX`: `7.5+PTX` stands for it"),
        ("7.0 8.0", "7.5 8.0", "CUDA 13.0 has no code for `7.0`: `7.5` stands for it"),
        ("5.0 8.0", "8.0", "CUDA 13.0 leaves out `5.0`: no device of its list 7.5 8.0 8.6 8.7 8.9 9.0 10.0 11.0 12.0 12.1 needs it"),
    ] {
        let choice = Support::of(release("13.0")).choose(Some(&list(listed)), None).unwrap();
        assert_eq!((plain(&choice.capabilities).as_str(), choice.notes), (expected, vec![note.to_owned()]), "{listed}");
    }
    assert_eq!(chosen("13.0", "7.0 7.5"), "7.5", "both are one");
}

#[test]
fn an_empty_set_names_the_toolkit_that_has_more() {
    let fails = |toolkit: &str, listed: &str| {
        let error = Support::of(release(toolkit)).choose(Some(&list(listed)), None).unwrap_err();
        (error.to_string(), error.hint().unwrap())
    };
    let (message, hint) = fails("12.6", "10.0a");
    assert_eq!(
        message,
        "empty set of capabilities: none of `10.0a` is for a device of CUDA 12.6, whose list is 7.0 7.2 7.5 8.0 8.6 8.7 8.9 9.0"
    );
    assert_eq!(hint, "`10.0a` needs CUDA 12.8 or newer: choose one with `--cuda`");
    let (_, hint) = fails("13.0", "10.3a 10.3");
    assert_eq!(hint, "nvcc 13.0 can compile for `10.3`, `10.3a`, but its default list has no such device: `--arch` takes them");
    let (message, hint) = fails("13.2", "99.0");
    assert!(message.starts_with("empty set of capabilities: none of `99.0`"), "{message}");
    assert_eq!(hint, "correct `cuda-capabilities`");
    let (_, hint) = fails("13.2", "6.1");
    assert_eq!(hint, "`6.1` needs a CUDA toolkit from 11.8 on that is older than 13.0: choose one with `--cuda`");
}

fn narrowed(toolkit: &str, listed: Option<&str>, arch: &str) -> Result<Choice, BackendError> {
    let request = arch.parse().unwrap();
    Support::of(release(toolkit)).choose(listed.map(list).as_deref(), Some(&request))
}

#[test]
fn arch_narrows() {
    let capabilities = |listed, arch| plain(&narrowed("13.2", listed, arch).unwrap().capabilities);
    assert_eq!(capabilities(None, "10.0,9.0a"), "9.0a 10.0");
    assert_eq!(capabilities(None, "10.3 , 12.0+PTX"), "10.3 12.0+PTX");
    assert_eq!(capabilities(Some("8.0 9.0 9.0a 10.0"), "9.0"), "9.0 9.0a");
    assert_eq!(capabilities(Some("8.0+PTX"), "9.0"), "8.0+PTX");
    let choice = narrowed("13.2", Some("8.0"), "9.0a").unwrap();
    assert_eq!(plain(&choice.capabilities), "8.0");
    assert_eq!(choice.notes, ["`--arch` narrows nothing here: the capabilities `8.0` have no code for `9.0a`"]);
}

/// Whether this toolkit has code for it makes no difference where the component has none.
#[test]
fn arch_that_a_component_has_no_code_for_narrows_nothing() {
    for (listed, arch) in [("8.0", "9.0"), ("8.0", "7.0"), ("8.0", "6.1"), ("10.0", "9.0a"), ("9.0a", "7.0")] {
        let choice = narrowed("13.2", Some(listed), arch).unwrap();
        assert_eq!(plain(&choice.capabilities), listed, "{arch}");
        assert_eq!(choice.notes, [format!("`--arch` narrows nothing here: the capabilities `{listed}` have no code for `{arch}`")]);
    }
    // What another one of the list is for is told by what is left.
    assert_eq!(plain(&narrowed("13.2", Some("8.0 9.0"), "7.0,9.0").unwrap().capabilities), "9.0");
    // No device has it, or the component has code for it that this toolkit cannot make.
    for (listed, arch) in [(Some("8.0"), "99.0"), (Some("8.0 7.0"), "7.0"), (Some("7.0+PTX"), "7.2"), (None, "7.0")] {
        let error = narrowed("13.2", listed, arch).unwrap_err().to_string();
        assert!(error.starts_with(&format!("CUDA 13.2 has no code for `{arch}`")), "{error}");
    }
}

#[test]
fn arch_that_no_toolkit_or_this_one_has_not() {
    let error = |arch| narrowed("13.0", None, arch).unwrap_err();
    assert_eq!(
        error("99.0").to_string(),
        "CUDA 13.0 has no code for `99.0`: it can compile for 7.5 8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.3 11.0 12.0 12.1"
    );
    assert_eq!(error("99.0").hint(), None);
    assert_eq!(error("7.0").hint().unwrap(), "`7.0` needs a CUDA toolkit from 11.8 on that is older than 13.0: choose one with `--cuda`");
    assert_eq!(error("10.7").hint().unwrap(), "`10.7` needs CUDA 13.5 or newer: choose one with `--cuda`");
    assert!(error("8.0a").to_string().contains("no code for `8.0a`"));
    assert_eq!("9.0,x".parse::<ArchRequest>().unwrap_err().entry, "x");
}
