//! What a file of a `src` list is, by its extension.

/// A language that a host compiler takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// C.
    C,
    /// C++.
    Cxx,
    /// Objective-C: for macOS alone, whose backends know its sources.
    ObjC,
    /// Objective-C++, which has the flags and the level of C++.
    ObjCxx,
}

/// What a file of a `src` list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// A header: an input of whatever includes it, never a translation unit.
    Header,
    /// A translation unit of the host compiler.
    Host(Language),
    /// Anything else: device code of some backend, or a mistake.
    Other,
}

/// Extensions of headers and of fragments that are only ever included.
const HEADER_EXTENSIONS: &[&str] = &["cuh", "def", "h", "h++", "hh", "hpp", "hxx", "inc", "inl", "ipp", "tcc", "tpp", "txx"];

/// Extensions of C++ translation units.
const CXX_EXTENSIONS: &[&str] = &["c++", "cc", "cpp", "cxx"];

/// What the file at `path` is, by its extension alone. Extensions are compared exactly: `.C` and `.H` mean different
/// things to different compilers and are [`SourceKind::Other`].
pub fn classify_source(path: &str) -> SourceKind {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.split_once('.').map(|_| name.rsplit('.').next().unwrap_or_default()).unwrap_or_default();
    if HEADER_EXTENSIONS.contains(&extension) {
        SourceKind::Header
    } else if CXX_EXTENSIONS.contains(&extension) {
        SourceKind::Host(Language::Cxx)
    } else if extension == "c" {
        SourceKind::Host(Language::C)
    } else {
        SourceKind::Other
    }
}

#[cfg(test)]
mod tests {
    use super::{Language, SourceKind, classify_source};

    #[test]
    fn sources_are_told_apart_by_extension() {
        assert_eq!(classify_source("a/b.cpp"), SourceKind::Host(Language::Cxx));
        assert_eq!(classify_source("a.b/c.cc"), SourceKind::Host(Language::Cxx));
        assert_eq!(classify_source("x.c"), SourceKind::Host(Language::C));
        assert_eq!(classify_source("x.cuh"), SourceKind::Header);
        assert_eq!(classify_source("x.impl.hpp"), SourceKind::Header);
        assert_eq!(classify_source("x.cu"), SourceKind::Other);
        assert_eq!(classify_source("a.cpp/README"), SourceKind::Other);
        assert_eq!(classify_source("x.C"), SourceKind::Other);
    }
}
