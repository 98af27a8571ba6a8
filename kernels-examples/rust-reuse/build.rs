//! Compiles the same function for the processor and for CUDA devices, each into a library of its own.

use kiln_cuda::{BuildError, Cargo};

fn main() -> Result<(), BuildError> {
    let cargo = Cargo::new(std::env::vars_os())?;

    let cpu = kiln_cpu::Build::new(&cargo).file("cpu/saxpy.cpp").include("include").flag("-Wall").compile("saxpy_cpu")?;
    print!("{cpu}");

    let cuda = kiln_cuda::Build::new(&cargo)
        .file("cuda/saxpy.cu")
        .include("include")
        .define("BLOCK", "256")
        .device_flag("-Wall")
        .capabilities(["8.0", "9.0+PTX"])
        .compile("saxpy_cuda")?;
    print!("{cuda}");
    // Where the toolkit's shared libraries are is the program's decision: this one takes those that it was built with.
    for dir in cuda.runtime_dirs() {
        println!("cargo:rustc-link-arg-bins=-Wl,-rpath,{}", dir.display());
    }
    Ok(())
}
