//! Tasks of the workspace: `cargo xtask --help`.
//!
//! One module per subcommand; what several of them need lies in `workspace`, `process`, `python`, `stages` and `kiln`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

mod bench;
mod build_kernels;
mod calls;
mod catalog;
mod ci_matrix;
mod codegen;
mod coverage;
mod docs;
mod expression;
mod floor;
mod full;
mod hygiene;
mod interrupts;
mod kiln;
mod packages;
mod pinned;
mod process;
mod proof;
mod prove;
mod python;
mod python_tests;
mod readme;
mod reuse;
mod setup;
mod seventh;
mod stages;
mod tables;
mod test;
mod test_python;
mod vendors;
mod workflow;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// Tasks of the Kiln workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build all examples for this machine, then load and run them with the unchanged `kernels` package
    BuildKernels(build_kernels::Options),
    /// Run everything that CI checks
    Test(test::Options),
    /// Make the environments and tools that the other tasks use; they call it by themselves
    Setup(setup::Options),
    /// Time two commands against each other in one run
    Bench(bench::Options),
    /// Run here each row that the GitHub workflow would run
    CiMatrix(ci_matrix::Options),
    /// Measure how much of the core crates the tests run, and hold it to the threshold
    Coverage(coverage::Options),
    /// Make the pins of torch wheels and the names that they offer anew
    Catalog(catalog::Options),
    /// Write the pages of `docs/` that come from the program itself
    Docs(docs::Options),
    /// Write the bindings of `kiln-ffi` from the headers of what is bound; or compare them
    Codegen(codegen::Options),
    /// Write the tables that checks are made of, from the packages of the test environments; or compare them
    Tables(tables::Options),
    /// Write the lists of what the systems of a floor offer, from their sources; or compare them
    Floor(floor::Options),
    /// Check the rules of the house that no compiler checks
    Hygiene,
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    match task {
        Task::BuildKernels(options) => build_kernels::run(&workspace, &options),
        Task::Test(options) => {
            interrupts::hear()?;
            test::run(&workspace, &options)
        }
        Task::Setup(options) => setup::run(&workspace, &options),
        Task::Bench(options) => bench::run(&workspace, &options),
        Task::CiMatrix(options) => ci_matrix::run(&workspace, &options),
        Task::Coverage(options) => coverage::run(&workspace, &options),
        Task::Catalog(options) => catalog::run(&workspace, &options),
        Task::Docs(options) => docs::run(&workspace, &options),
        Task::Codegen(options) => codegen::run(&workspace, &options),
        Task::Tables(options) => tables::run(&workspace, &options),
        Task::Floor(options) => floor::run(&workspace, &options),
        Task::Hygiene => hygiene::run(&workspace),
    }
}
