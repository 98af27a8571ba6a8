//! The acme backend of one toolkit.

use kiln_backend::{
    Architectures, Backend, BackendError, BackendName, CompileProfile, Component, FrameworkPart, HostCompiler, HostUnits, KernelOptions,
    Language, Lowering, MajorMinor, ObjectFile, OutputRef, SourceKind, ToolkitRecord, TorchPart, UnitSource, WrongCode, classify_source,
    generate,
};

/// What device code is compiled for.
const ARCH: &str = "acme1";

/// The acme backend of one toolkit.
#[derive(Clone, Debug)]
pub struct AcmeBackend {
    compiler: HostCompiler,
    release: MajorMinor,
}

impl AcmeBackend {
    /// With the compiler of a release.
    pub fn new(compiler: HostCompiler, release: MajorMinor) -> Self {
        Self { compiler, release }
    }

    /// What the image of the device code of `components` begins with.
    fn image(&self, components: &[Component]) -> Option<String> {
        let units = components.iter().flat_map(|component| &component.sources).filter(|source| is_acme(&source.path)).count();
        (units > 0).then(|| format!("acme image {} of {units} units for {ARCH}", self.release))
    }
}

fn is_acme(path: &str) -> bool {
    path.ends_with(".acme")
}

impl Backend for AcmeBackend {
    fn name(&self) -> BackendName {
        BackendName::Acme
    }

    fn framework_part(&self) -> FrameworkPart {
        let torch =
            TorchPart { libraries: ["libc10.so", "libtorch.so", "libtorch_cpu.so"].map(str::to_owned).to_vec(), ..TorchPart::default() };
        FrameworkPart { define: "ACME_KERNEL", torch, ..FrameworkPart::default() }
    }

    fn record(&self) -> Option<ToolkitRecord> {
        let (version, identity) = (self.release.to_string(), self.compiler.identity.clone());
        let compiles_all = Some(format!("acme-cc {version}"));
        Some(ToolkitRecord { name: "acme", provider: "system", version, identity, tree: None, compiles_all })
    }

    fn remarks(&self) -> Vec<String> {
        vec![format!("Acme {} makes no code for real devices", self.release)]
    }

    fn host(&self) -> Option<&HostCompiler> {
        Some(&self.compiler)
    }

    fn architectures(&self, component: &Component) -> Result<Architectures, BackendError> {
        let has_code = component.sources.iter().any(|source| is_acme(&source.path));
        Ok(Architectures { names: if has_code { vec![ARCH.to_owned()] } else { Vec::new() }, notes: Vec::new() })
    }

    fn merge(&self, lists: &[Architectures]) -> Vec<String> {
        lists.iter().flat_map(|list| list.names.clone()).take(1).collect()
    }

    fn lower(&self, lowering: &mut Lowering<'_>, component: &Component, profile: &CompileProfile) -> Result<Vec<ObjectFile>, BackendError> {
        let mut of_device = component.clone();
        if let Some(KernelOptions::Acme { flags }) = &component.options {
            of_device.cxx_flags.extend(flags.iter().map(|flag| flag.value.clone()));
        }
        // Compilers know sources by their extensions, and not these.
        of_device.cxx_flags.extend(["-x", "c++"].map(str::to_owned));
        let (mut host_units, mut device_units) = (HostUnits::new(component, profile), HostUnits::new(&of_device, profile));
        let mut objects = Vec::new();
        for source in &component.sources {
            let unit = UnitSource::Project(source.clone());
            match classify_source(&source.path) {
                SourceKind::Header => {}
                SourceKind::Host(language) => objects.push(host_units.compile(lowering, &unit, language)?),
                SourceKind::Other if is_acme(&source.path) => objects.push(device_units.compile(lowering, &unit, Language::Cxx)?),
                SourceKind::Other => {
                    return Err(BackendError::UnknownSource {
                        source_path: source.path.clone(),
                        backend: "acme",
                        hint: "acme components take `.acme`, C, C++ and headers".to_owned(),
                    });
                }
            }
        }
        Ok(objects)
    }

    fn device_link(
        &self,
        lowering: &mut Lowering<'_>,
        components: &[Component],
        _: &[ObjectFile],
    ) -> Result<Vec<ObjectFile>, BackendError> {
        let Some(image) = self.image(components) else { return Ok(Vec::new()) };
        let name = "acme_image.cpp";
        let text = format!("extern \"C\" __attribute__((used, retain, section(\".acme\"))) const char acme_image[] = \"{image}\";\n");
        let source = UnitSource::Generated(OutputRef { step: generate(lowering.graph, name, &text)?, name: name.to_owned() });
        let (component, profile) = (Component::generated("acme"), CompileProfile { cxx_std: "gnu++17", ..CompileProfile::default() });
        Ok(vec![HostUnits::new(&component, &profile).compile(lowering, &source, Language::Cxx)?])
    }

    fn verify(&self, components: &[Component], file: &[u8]) -> Result<(), WrongCode> {
        match self.image(components) {
            Some(image) if !contains(file, &image) => {
                Err(WrongCode { message: format!("the extension has no `{image}`, which was planned"), hint: None })
            }
            _ => Ok(()),
        }
    }
}

/// Whether a file has the text.
pub(crate) fn contains(file: &[u8], text: &str) -> bool {
    file.windows(text.len()).any(|window| window == text.as_bytes())
}
