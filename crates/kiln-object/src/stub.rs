//! Writing shared libraries that hold names and no code, for linkers to read.
//!
//! A stub has a SONAME, a dynamic symbol table and, where its names have versions, the version tables. It has no program
//! headers and no hash table: it cannot be loaded. GNU ld, gold, lld and mold take it as a library.

use std::collections::BTreeMap;

use object::write::elf as w;
use object::{Endianness, elf};

use crate::Error;
use crate::elf::{Machine, SymbolKind};

/// The version of a stub's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SymbolVersion {
    /// The version node, such as `GLIBC_2.28`.
    pub node: String,
    /// Whether a link that does not ask for a version gets this one (`@@`).
    pub default: bool,
}

/// One name of a stub.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Symbol {
    /// The name, mangled.
    pub name: String,
    /// Its version.
    pub version: Option<SymbolVersion>,
    /// What it names. An [`SymbolKind::IndirectFunction`] is written as a function, whatever is unknown as untyped.
    pub kind: SymbolKind,
    /// Whether it is weak. A unique symbol (`STB_GNU_UNIQUE`) is written as an ordinary one.
    pub weak: bool,
    /// Its size in bytes; linkers look at it for data only.
    pub size: u64,
}

impl Symbol {
    /// An unversioned name.
    pub fn plain(name: impl Into<String>, kind: SymbolKind) -> Self {
        Self { name: name.into(), version: None, kind, weak: false, size: 0 }
    }
}

/// A shared library without code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stub {
    /// The name that files linked with it will need.
    pub soname: String,
    /// The processor. Stubs are 64-bit and little-endian.
    pub machine: Machine,
    /// Version nodes in the order they are written, also ones without a symbol. Nodes that only
    /// [`Stub::symbols`] mention follow in order of first use.
    pub versions: Vec<String>,
    /// The names, in the order they are written.
    pub symbols: Vec<Symbol>,
}

/// Where the made-up sections begin. Any address but 0 serves.
const BASE: u64 = 0x1_0000;
/// Distance of two symbols. Each needs its own address: GNU ld takes weak names at one address for aliases of each other
/// and keeps all of them.
const STRIDE: u64 = 16;

impl Stub {
    /// A stub without versions.
    pub fn new(soname: impl Into<String>, machine: Machine, symbols: Vec<Symbol>) -> Self {
        Self { soname: soname.into(), machine, versions: Vec::new(), symbols }
    }

    /// The file's bytes. Equal stubs give equal bytes.
    ///
    /// # Errors
    /// For a machine without 64-bit little-endian files, for more than 32,000 version nodes, and for names with a NUL.
    pub fn write(&self) -> Result<Vec<u8>, Error> {
        let nodes = self.nodes()?;
        let numbers: BTreeMap<&str, u16> = nodes.iter().copied().zip(2..).collect();
        let count = nodes.len() as u16 + 1;
        let versioned = !nodes.is_empty();
        let has_tls = self.symbols.iter().any(|symbol| symbol.kind == SymbolKind::Tls);

        let mut bytes = Vec::new();
        let mut out = w::Writer::new(Endianness::Little, true, &mut bytes);
        let soname = out.add_dynamic_string(self.soname.as_bytes());
        let node_names: Vec<_> = nodes.iter().map(|node| out.add_dynamic_string(node.as_bytes())).collect();
        let names: Vec<_> = self.symbols.iter().map(|symbol| out.add_dynamic_string(symbol.name.as_bytes())).collect();

        out.reserve_file_header();
        out.reserve_null_section_index();
        let text_name = out.add_section_name(b".text");
        let text = out.reserve_section_index();
        let tls_name = out.add_section_name(b".tbss");
        let tls = if has_tls { out.reserve_section_index() } else { text };
        out.reserve_dynstr_section_index();
        out.reserve_dynsym_section_index();
        if versioned {
            out.reserve_gnu_versym_section_index();
            out.reserve_gnu_verdef_section_index();
        }
        out.reserve_dynamic_section_index();
        out.reserve_shstrtab_section_index();
        out.reserve_null_dynamic_symbol_index();
        for _ in &self.symbols {
            out.reserve_dynamic_symbol_index();
        }
        let failed = |cause: object::write::Error| self.error(cause.to_string());
        out.reserve_dynsym();
        out.reserve_dynstr().map_err(failed)?;
        if versioned {
            out.reserve_gnu_versym();
            out.reserve_gnu_verdef(count, usize::from(count));
        }
        out.reserve_dynamic(2);
        out.reserve_shstrtab().map_err(failed)?;
        out.reserve_section_headers();

        let header = w::FileHeader {
            os_abi: elf::ELFOSABI_NONE,
            abi_version: 0,
            e_type: elf::ET_DYN,
            e_machine: elf::Machine(self.machine.0),
            e_entry: 0,
            e_flags: elf::FileFlags(0),
        };
        out.write_file_header(&header).map_err(failed)?;
        out.write_null_dynamic_symbol();
        for ((symbol, name), offset) in self.symbols.iter().zip(&names).zip((0u64..).step_by(STRIDE as usize)) {
            let bind = if symbol.weak { elf::STB_WEAK } else { elf::STB_GLOBAL };
            let is_tls = symbol.kind == SymbolKind::Tls;
            let st_name = out.dynamic_string_offset(Some(*name));
            out.write_dynamic_symbol(&w::Sym {
                section: Some(if is_tls { tls.0 } else { text.0 }),
                st_name,
                st_info: elf::SymbolInfo::new(bind, symbol_type(symbol.kind)),
                st_other: elf::SymbolOther(0),
                st_shndx: elf::SymbolSection(0),
                // A thread-local symbol's value is an offset into its block.
                st_value: if is_tls { offset } else { BASE + offset },
                st_size: symbol.size,
            });
        }
        out.write_dynstr();
        if versioned {
            out.write_null_gnu_versym();
            for symbol in &self.symbols {
                let number = symbol.version.as_ref().map(|version| (numbers.get(version.node.as_str()), version.default));
                out.write_gnu_versym(match number {
                    Some((Some(number), default)) => elf::VersionIndex(*number).versym(!default),
                    _ => elf::VER_NDX_GLOBAL.into(),
                });
            }
            out.write_align_gnu_verdef();
            let base = (self.soname.as_str(), soname, elf::VER_NDX_GLOBAL, elf::VER_FLG_BASE);
            let others = nodes.iter().zip(&node_names).zip(2..);
            let others = others.map(|((text, name), number)| (*text, *name, elf::VersionIndex(number), elf::VersionFlags(0)));
            for (text, name, index, flags) in [base].into_iter().chain(others) {
                let (name, hash) = (out.dynamic_string_offset(Some(name)), elf::hash(text.as_bytes()));
                out.write_gnu_verdef(&w::Verdef { version: elf::VER_DEF_CURRENT, flags, index, aux_count: 1, name, hash });
            }
        }
        out.write_align_dynamic();
        out.write_dynamic_string(elf::DT_SONAME, soname).map_err(failed)?;
        out.write_dynamic(elf::DT_NULL, 0).map_err(failed)?;
        out.write_shstrtab();

        let room = STRIDE * self.symbols.len() as u64;
        let (text_name, tls_name) = (out.section_name_offset(Some(text_name)), out.section_name_offset(Some(tls_name)));
        let nobits = |sh_name, flags, address| w::SectionHeader {
            sh_name,
            sh_type: elf::SHT_NOBITS,
            sh_flags: flags,
            sh_addr: address,
            sh_offset: 0,
            sh_size: room,
            sh_link: 0,
            sh_info: 0,
            sh_addralign: 1,
            sh_entsize: 0,
        };
        out.write_null_section_header();
        out.write_section_header(&nobits(text_name, elf::SHF_ALLOC.with(elf::SHF_EXECINSTR), BASE));
        if has_tls {
            out.write_section_header(&nobits(tls_name, elf::SHF_ALLOC.with(elf::SHF_WRITE).with(elf::SHF_TLS), BASE + room));
        }
        out.write_dynstr_section_header(0);
        out.write_dynsym_section_header(0, 1);
        if versioned {
            out.write_gnu_versym_section_header(0);
            out.write_gnu_verdef_section_header(0);
        }
        out.write_dynamic_section_header(0);
        out.write_shstrtab_section_header();
        Ok(bytes)
    }

    /// The version nodes in the order they are written, checked together with everything else that could not be written.
    fn nodes(&self) -> Result<Vec<&str>, Error> {
        if !matches!(self.machine, Machine::X86_64 | Machine::AARCH64) {
            return Err(self.error(format!("stubs for {} are not supported", self.machine)));
        }
        let mut nodes: Vec<&str> = Vec::new();
        let used = self.symbols.iter().filter_map(|symbol| symbol.version.as_ref()).map(|version| version.node.as_str());
        for node in self.versions.iter().map(String::as_str).chain(used) {
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        if nodes.len() > 32_000 {
            return Err(self.error(format!("{} version nodes are too many", nodes.len())));
        }
        let all = self.symbols.iter().map(|symbol| symbol.name.as_str()).chain(nodes.iter().copied()).chain([self.soname.as_str()]);
        for name in all {
            if name.is_empty() || name.contains('\0') {
                return Err(self.error(format!("the name {name:?} is empty or has a NUL in it")));
            }
        }
        Ok(nodes)
    }

    fn error(&self, cause: String) -> Error {
        Error::Stub { soname: self.soname.clone(), cause }
    }
}

fn symbol_type(kind: SymbolKind) -> elf::SymbolType {
    match kind {
        SymbolKind::Function | SymbolKind::IndirectFunction => elf::STT_FUNC,
        SymbolKind::Object => elf::STT_OBJECT,
        SymbolKind::Tls => elf::STT_TLS,
        SymbolKind::Untyped | SymbolKind::Other(_) => elf::STT_NOTYPE,
    }
}
