//! A project of many small units, for Kiln and for CMake.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// How many units include the header.
const USERS: usize = 5;

/// The project in a directory.
#[derive(Clone, Debug)]
pub(super) struct Generated {
    pub(super) dir: PathBuf,
    units: usize,
}

impl Generated {
    /// Writes a project of `units` units for the CPU. With `noarch`, further backends have a variant without code.
    pub(super) fn write(dir: &Path, units: usize, noarch: bool) -> anyhow::Result<Self> {
        let this = Self { dir: dir.to_owned(), units };
        for below in ["units", "torch-ext/bench"] {
            fs::create_dir_all(dir.join(below))?;
        }
        let backends = if noarch { r#"["cpu", "cuda", "rocm", "xpu"]"# } else { r#"["cpu"]"# };
        let sources: Vec<String> = (0..units).map(|unit| format!("\"units/unit{unit}.cpp\"")).collect();
        let build = format!(
            "[general]\nname = \"bench\"\nversion = 1\nedition = 5\nlicense = \"Apache-2.0\"\nbackends = {backends}\n\n[torch]\nsrc = \
             [\"binding.cpp\"]\n\n[kernel.units]\nbackend = \"cpu\"\ndepends = []\nsrc = [{}]\n",
            sources.join(", ")
        );
        fs::write(dir.join("build.toml"), build)?;
        fs::write(dir.join("torch-ext/bench/__init__.py"), "from ._ops import ops\n")?;
        fs::write(dir.join("binding.cpp"), "#include \"registration.h\"\nREGISTER_EXTENSION(TORCH_EXTENSION_NAME)\n")?;
        fs::write(dir.join("CMakeLists.txt"), CMAKE)?;
        this.edit_header(0)?;
        (0..units).try_for_each(|unit| this.edit(unit, 0))?;
        Ok(this)
    }

    /// Gives a unit another content, of the same size in code.
    pub(super) fn edit(&self, unit: usize, value: u32) -> anyhow::Result<()> {
        let mut text = String::from("#include <algorithm>\n#include <map>\n#include <numeric>\n#include <string>\n#include <vector>\n");
        if unit < USERS {
            text += "#include \"shared.h\"\n";
        }
        let shared = if unit < USERS { "SHARED" } else { "0" };
        write!(
            text,
            "\nstd::string unit{unit}(std::vector<int> numbers) {{\n  std::sort(numbers.begin(), numbers.end());\n  std::map<int, \
             std::string> names;\n  for (int number : numbers) names[number + {value} + {shared}] += std::to_string(number);\n  std::string \
             all;\n  for (const auto &[number, name] : names) all += name;\n  return all + std::to_string(std::accumulate(numbers.begin(), \
             numbers.end(), {value}));\n}}\n"
        )?;
        Ok(fs::write(self.dir.join(format!("units/unit{unit}.cpp")), text)?)
    }

    /// Gives the header another content.
    pub(super) fn edit_header(&self, value: u32) -> anyhow::Result<()> {
        Ok(fs::write(self.dir.join("units/shared.h"), format!("#pragma once\n#define SHARED {value}\n"))?)
    }

    /// How many units it has, the binding included.
    pub(super) fn units(&self) -> usize {
        self.units + 1
    }
}

/// What Kiln compiles, as one would write it for CMake: the same sources, optimisation and standard; one variant in a directory.
const CMAKE: &str = r##"cmake_minimum_required(VERSION 3.26)
project(bench LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
file(GLOB UNITS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/units/*.cpp)
file(WRITE ${CMAKE_BINARY_DIR}/registration.h "#define REGISTER_EXTENSION(NAME) extern \"C\" __attribute__((visibility(\"default\"))) int PyInit_bench() { return 0; }\n")
add_library(bench MODULE binding.cpp ${UNITS})
target_include_directories(bench PRIVATE ${CMAKE_BINARY_DIR})
set_target_properties(bench PROPERTIES PREFIX "" SUFFIX ".abi3.so")
"##;
