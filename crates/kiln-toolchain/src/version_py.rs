//! Reading `torch/version.py` as text: importing torch for it would need all its libraries.

use kiln_format::Version;

/// What `torch/version.py` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionPy {
    /// Release, without a local part (`2.13.0` of `2.13.0+cu130`).
    pub(crate) version: Version,
    /// The CUDA release, for a CUDA build.
    pub(crate) cuda: Option<Version>,
    /// The HIP release, for a ROCm build.
    pub(crate) hip: Option<String>,
}

impl VersionPy {
    /// Reads the assignments `__version__ = '..'`, `cuda = ..` and `hip = ..`, with or without a type annotation.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let full = assigned(text, "__version__").ok_or("`torch/version.py` does not say `__version__`")?;
        let release = full.split_once('+').map_or(full, |(release, _)| release);
        let version = Version::parse(release).map_err(|_| format!("`torch/version.py` says version `{full}`"))?;
        let cuda = assigned(text, "cuda")
            .map(|cuda| Version::parse(cuda).map_err(|_| format!("`torch/version.py` says CUDA `{cuda}`")))
            .transpose()?;
        Ok(Self { version, cuda, hip: assigned(text, "hip").map(str::to_owned) })
    }
}

/// The text that `name` is set to; none for `None` and for other expressions.
fn assigned<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?;
        let (annotation, value) = rest.split_once('=')?;
        let annotation = annotation.trim();
        if !(annotation.is_empty() || annotation.starts_with(':')) {
            return None;
        }
        let value = value.trim();
        ['\'', '"'].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_styles_are_read() {
        let new = "from typing import Optional\n\n__all__ = ['__version__', 'cuda']\n__version__ = '2.13.0+cu130'\ndebug = False\n\
                   cuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n";
        let read = VersionPy::parse(new).unwrap();
        assert_eq!((read.version.as_str(), read.cuda.unwrap().as_str(), read.hip), ("2.13.0", "13.0", None));
        let cpu = "__version__ = \"2.9.1+cpu\"\ncuda = None\nhip = '6.4.4'\n";
        let read = VersionPy::parse(cpu).unwrap();
        assert_eq!((read.version.as_str(), read.cuda, read.hip.as_deref()), ("2.9.1", None, Some("6.4.4")));
    }

    #[test]
    fn other_text_is_an_error() {
        let error = |text: &str| VersionPy::parse(text).unwrap_err();
        assert_eq!(error(""), "`torch/version.py` does not say `__version__`");
        assert_eq!(error("__version__ = 'new'"), "`torch/version.py` says version `new`");
        assert_eq!(error("__version__ = '2.9'\ncuda = 'x'"), "`torch/version.py` says CUDA `x`");
    }
}
