//! The metal backend of one toolkit.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use kiln_backend::{
    Backend, BackendError, BackendName, CompileProfile, Component, FrameworkPart, HostCompiler, HostUnits, Language, LibraryExports,
    Lowering, NameSet, ObjectFile, SourceKind, ToolkitRecord, TorchPart, UnitSource, classify_source,
};

use crate::header;
use crate::settings::MetalSettings;
use crate::shaders::{ShaderGroup, embed, is_shader};
use crate::toolkit::MetalToolkit;

/// Torch's libraries that an extension may need, as the loader of macOS looks for them.
const TORCH_LIBRARIES: [&str; 3] = ["@rpath/libc10.dylib", "@rpath/libtorch.dylib", "@rpath/libtorch_cpu.dylib"];

/// The frameworks of macOS that an extension may need, each with the beginnings of its names: nobody lists all of them. Foundation offers the
/// names of Core Foundation and of the Objective-C runtime too; the functions of that are listed, since their beginnings are plain words.
const FRAMEWORKS: [(&str, &[&str]); 2] = [
    (
        "/System/Library/Frameworks/Metal.framework/Versions/A/Metal",
        &["MTL", "OBJC_CLASS_$_MTL", "OBJC_METACLASS_$_MTL", "OBJC_EHTYPE_$_MTL"],
    ),
    (
        "/System/Library/Frameworks/Foundation.framework/Versions/C/Foundation",
        &[
            "NS",
            "CF",
            "kCF",
            "__CF",
            "__NS",
            "OBJC_CLASS_$_NS",
            "OBJC_METACLASS_$_NS",
            "OBJC_EHTYPE_",
            "objc_",
            "_objc_",
            "__objc_",
            "class_addIvar",
            "class_addMethod",
            "class_addProperty",
            "class_addProtocol",
            "class_conformsToProtocol",
            "class_copyIvarList",
            "class_copyMethodList",
            "class_copyPropertyList",
            "class_copyProtocolList",
            "class_createInstance",
            "class_getClassMethod",
            "class_getClassVariable",
            "class_getImageName",
            "class_getInstanceMethod",
            "class_getInstanceSize",
            "class_getInstanceVariable",
            "class_getIvarLayout",
            "class_getMethodImplementation",
            "class_getName",
            "class_getProperty",
            "class_getSuperclass",
            "class_getVersion",
            "class_getWeakIvarLayout",
            "class_isMetaClass",
            "class_replaceMethod",
            "class_replaceProperty",
            "class_respondsToSelector",
            "class_setIvarLayout",
            "class_setSuperclass",
            "class_setVersion",
            "class_setWeakIvarLayout",
            "imp_getBlock",
            "imp_implementationWithBlock",
            "imp_removeBlock",
            "ivar_getName",
            "ivar_getOffset",
            "ivar_getTypeEncoding",
            "method_copyArgumentType",
            "method_copyReturnType",
            "method_exchangeImplementations",
            "method_getArgumentType",
            "method_getDescription",
            "method_getImplementation",
            "method_getName",
            "method_getNumberOfArguments",
            "method_getReturnType",
            "method_getTypeEncoding",
            "method_invoke",
            "method_setImplementation",
            "object_copy",
            "object_dispose",
            "object_getClass",
            "object_getIndexedIvars",
            "object_getInstanceVariable",
            "object_getIvar",
            "object_isClass",
            "object_setClass",
            "object_setInstanceVariable",
            "object_setIvar",
            "property_copyAttributeList",
            "property_copyAttributeValue",
            "property_getAttributes",
            "property_getName",
            "protocol_addMethodDescription",
            "protocol_addProperty",
            "protocol_addProtocol",
            "protocol_conformsToProtocol",
            "protocol_copyMethodDescriptionList",
            "protocol_copyPropertyList",
            "protocol_copyProtocolList",
            "protocol_getMethodDescription",
            "protocol_getName",
            "protocol_getProperty",
            "protocol_isEqual",
            "sel_getName",
            "sel_getUid",
            "sel_isEqual",
            "sel_isMapped",
            "sel_registerName",
            "_NSConcrete",
        ],
    ),
];

/// The define by which sources include the header: nobody can write its name.
const HEADER_DEFINE: &str = "EMBEDDED_METALLIB_HEADER";

/// The frameworks that an extension may need.
pub fn frameworks() -> Vec<LibraryExports> {
    let library = |(name, beginnings): (&str, &'static [&'static str])| LibraryExports {
        soname: name.to_owned(),
        names: Arc::new(NameSet::beginning_with(beginnings)),
    };
    FRAMEWORKS.map(library).to_vec()
}

/// The metal backend of one toolkit, for the kernels of one project.
#[derive(Clone, Debug)]
pub struct MetalBackend {
    toolkit: MetalToolkit,
    settings: MetalSettings,
    shaders: Vec<ShaderGroup>,
}

impl MetalBackend {
    /// With `toolkit`, for variants with these shaders, all of which are in one library whatever component they are of.
    pub fn new(toolkit: MetalToolkit, settings: MetalSettings, shaders: Vec<ShaderGroup>) -> Self {
        Self { toolkit, settings, shaders }
    }

    /// The toolkit.
    pub fn toolkit(&self) -> &MetalToolkit {
        &self.toolkit
    }
}

/// The language of a source of the host's part; none for a header or a shader.
fn language(path: &str) -> Result<Option<Language>, BackendError> {
    match classify_source(path) {
        SourceKind::Header => Ok(None),
        SourceKind::Host(language) => Ok(Some(language)),
        SourceKind::Other if is_shader(path) => Ok(None),
        SourceKind::Other if path.ends_with(".mm") => Ok(Some(Language::ObjCxx)),
        SourceKind::Other if path.ends_with(".m") => Ok(Some(Language::ObjC)),
        SourceKind::Other => Err(BackendError::UnknownSource {
            source_path: path.to_owned(),
            backend: "metal",
            hint: "metal components take `.metal`, `.mm`, `.m`, `.cpp`, `.cc`, `.cxx`, `.c++`, `.c` and headers".to_owned(),
        }),
    }
}

impl Backend for MetalBackend {
    fn name(&self) -> BackendName {
        BackendName::Metal
    }

    fn framework_part(&self) -> FrameworkPart {
        let torch = TorchPart { libraries: TORCH_LIBRARIES.map(str::to_owned).to_vec(), ..TorchPart::default() };
        FrameworkPart { define: "METAL_KERNEL", torch, runtime: frameworks(), ..FrameworkPart::default() }
    }

    fn host(&self) -> Option<&HostCompiler> {
        Some(&self.toolkit.compiler)
    }

    fn host_ambient(&self) -> BTreeMap<String, PathBuf> {
        self.toolkit.ambient.clone()
    }

    fn record(&self) -> Option<ToolkitRecord> {
        let compiler = &self.toolkit.compiler;
        let name = compiler.path.file_name().unwrap_or_default().to_string_lossy();
        // Where there is no shader, nothing is compiled by Apple's tools.
        let has_shaders = self.shaders.iter().any(|group| !group.sources.is_empty());
        let (version, identity) = match has_shaders {
            true => (self.toolkit.version.clone(), self.toolkit.identity.clone()),
            false => (compiler.version.to_string(), compiler.identity.clone()),
        };
        let compiles_all = Some(format!("{name} {}", compiler.version));
        Some(ToolkitRecord { name: "metal", provider: "system", version, identity, tree: None, compiles_all })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, component: &Component, profile: &CompileProfile) -> Result<Vec<ObjectFile>, BackendError> {
        let mut profile = profile.clone();
        if let Some(header) = embed(lowering, &self.toolkit, &self.settings, &self.shaders, &profile.ops_id)? {
            let (name, namespace) = (header::name(&profile.ops_id), header::namespace(&profile.ops_id));
            profile.scoped_defines.push(format!("{HEADER_DEFINE}=\"{name}\""));
            profile.scoped_defines.push(format!("EMBEDDED_METALLIB_NAMESPACE={namespace}"));
            profile.backend_headers = Some((header, HEADER_DEFINE));
        }
        let mut units = HostUnits::new(component, &profile);
        let mut objects = Vec::new();
        for source in &component.sources {
            if let Some(language) = language(&source.path)? {
                objects.push(units.compile(lowering, &UnitSource::Project(source.clone()), language)?);
            }
        }
        Ok(objects)
    }
}
