//! The command line of Kiln.
//!
//! Reads the environment once, settles settings, calls one function per command, chooses the exit code. Decides nothing about a build.

mod args;
mod commands;
mod environment;
mod exit;
mod human;
mod jobs;
mod json;
mod memory;
mod printer;
mod remarks;
mod settings;
mod signals;
mod usage;

use clap::Parser;

use crate::args::{Cli, Color, Command, MessageFormat};
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::printer::Printer;
use crate::settings::Settings;

fn main() -> std::process::ExitCode {
    let environment = Environment::read();
    let (no_color, ci) = environment.as_ref().map_or((false, false), |e| (e.get("NO_COLOR").is_some(), e.get("CI").is_some()));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refused(&error, no_color, ci),
    };
    let json = matches!(&cli.command, Command::Build(args) if args.message_format == MessageFormat::Json);
    let printer = Printer::new(cli.global.quiet, json, cli.global.color, no_color, ci);
    let result = match environment {
        Ok(environment) => run(cli, &environment, &printer),
        Err(cause) => Err(Failure::new("environment", "the working directory cannot be read").caused_by(cause.to_string())),
    };
    let result = result.and_then(|exit| printer.lost().map_or(Ok(exit), Err));
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => {
            printer.failure(&failure);
            failure.exit.into()
        }
    }
}

/// Ends a command line that names no command to run: with the help that it asks for, or as an error.
fn refused(error: &clap::Error, no_color: bool, ci: bool) -> std::process::ExitCode {
    let Some(failure) = usage::failure(error) else { error.exit() };
    let printer = Printer::new(false, usage::wants_json(std::env::args_os().skip(1)), Color::Auto, no_color, ci);
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        printer.stderr(error.render().to_string().as_bytes());
    }
    printer.failure(&failure);
    failure.exit.into()
}

fn run(cli: Cli, environment: &Environment, printer: &Printer) -> Result<Exit, Failure> {
    let settings = Settings::new(&cli.global, environment)?;
    match cli.command {
        Command::BenchKernel(args) => commands::call::bench(&args, &settings, printer),
        Command::Build(args) => commands::build::run(&args, &settings, printer),
        Command::Cache(args) => commands::cache::run(&args.command, &settings, printer),
        Command::Call(args) => commands::call::run(&args, &settings, printer),
        Command::CallGuard { dir } => commands::call::guard(&dir),
        Command::CallWorker { dir } => commands::call::work(&dir),
        Command::Check(args) => commands::check::run(&args, &settings, printer),
        Command::CheckAbi(args) => commands::check::abi(&args, &settings, printer),
        Command::CheckBuilds(args) => commands::check::builds(&args, printer),
        Command::CheckConfig(args) => commands::check_config::run(&args, &settings, printer),
        Command::Doctor(args) => commands::doctor::run(&args, &settings, printer),
        Command::Hash(args) => commands::hash::run(&args, printer),
        Command::Hipify(args) => commands::hipify::run(&args, &settings, printer),
        Command::Lint(args) => commands::lint::run(&args, &settings, printer),
        Command::ListVariants(args) => commands::variants::list(&args, &settings, printer),
        Command::Matrix(args) => commands::variants::matrix(&args, &settings, printer),
        Command::Toolchain(args) => commands::toolchain::run(&args, &settings, printer),
        Command::UpdateBuild(args) => commands::update_build::run(&args, printer),
    }
}
