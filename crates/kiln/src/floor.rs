//! The portability floor of a build: which one it keeps to, and that the directory which links use is there.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use kiln_format::variant::Os;
use kiln_graph::{Config, Executor, WorkDir};
use kiln_toolchain::floor::{Floor, FloorChoice, StoredFloor, remove_unused, stored};
use kiln_toolchain::host::HostCompiler;

use crate::build::{Services, compiler_name, see_room};
use crate::build_error::BuildError;
use crate::event::Event;
use crate::matrix::Target;
use crate::ops_id::Purpose;
use crate::out_dir;

/// Name of the directory of the cache that holds all floors.
const STORE: &str = "floors-v1";

/// How long a floor stays unused before it is removed.
const UNUSED: Duration = Duration::from_secs(90 * 24 * 3600);

/// The floor of a build for `target`; none when the project gives it up, and where systems have none.
///
/// # Errors
/// When a release is to be built without a floor or for a newer one than the default.
pub(crate) fn choose(
    choice: FloorChoice,
    purpose: Purpose,
    target: Target,
    host: &HostCompiler,
    services: &Services<'_>,
) -> Result<Option<Arc<Floor>>, BuildError> {
    if purpose == Purpose::Release && choice > FloorChoice::default() {
        return Err(BuildError::ReleaseFloor { choice });
    }
    match choice {
        FloorChoice::Level(level) if target.os == Os::Linux => {
            Ok(Some(Arc::new(Floor::new(host, target.machine(), level, services.ambient, &services.cache_dir.join(STORE))?)))
        }
        FloorChoice::Level(_) | FloorChoice::Host => Ok(None),
    }
}

/// Sees, without making it, that the directory of `floor` is there or could be made.
///
/// # Errors
/// When the store cannot be used.
pub(crate) fn would_provide(floor: &Floor) -> Result<(), BuildError> {
    if floor.is_there() {
        return Ok(());
    }
    if !out_dir::can_make(&floor.work_dir()) {
        // Cannot be made, so this makes nothing.
        WorkDir::open(floor.work_dir())?;
    }
    see_room(&floor.work_dir())
}

/// Makes the directory of `floor` unless it is there. All projects of a user share it.
///
/// # Errors
/// When the store cannot be used, or a step fails.
pub(crate) fn provide(floor: &Floor, host: &HostCompiler, jobs: NonZeroUsize, services: &Services<'_>) -> Result<(), BuildError> {
    if floor.is_there() {
        floor.note_use(SystemTime::now());
        return Ok(());
    }
    let what = format!("{} for {}", floor.level(), compiler_name(host));
    let waiting = &mut |pid| (services.events)(&Event::Waiting { preparing: Some(what.clone()), pid });
    let work_dir = WorkDir::open(floor.work_dir())?.lock(None, &services.interrupt, waiting)?;
    if floor.is_there() {
        // Another process made it meanwhile.
        return Ok(());
    }
    (services.events)(&Event::Preparing { what });
    let (interrupt, job_server) = (services.interrupt.clone(), services.job_server.clone());
    let config = Config { jobs, interrupt, job_server, ..Config::default() };
    let failure: Mutex<Option<String>> = Mutex::default();
    let outcome = Executor::new(&work_dir, config).run(floor.graph(), &|event| {
        if let kiln_graph::Event::StepFailed { label, failure: cause, output, .. } = event {
            let text = format!("`{label}`: {}\n{}", cause, String::from_utf8_lossy(output));
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text.trim_end().to_owned());
        }
    });
    if outcome.is_interrupted() {
        return Err(kiln_graph::WorkDirError::Interrupted { path: floor.work_dir() }.into());
    }
    if let Some(cause) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(BuildError::FloorFailed { level: floor.level(), cause });
    }
    floor.keep(&|output| outcome.output_path(output)).map_err(|source| BuildError::FloorStore { path: floor.dir(), source })?;
    // The compiler or Kiln is a new one: a good moment to look for what the old ones left. What is in the way of that stops no build.
    let _left = remove_unused(&services.cache_dir.join(STORE), floor.key(), UNUSED, SystemTime::now());
    Ok(())
}

/// The floors of the user whose cache this is: sizes and last uses.
///
/// # Errors
/// When the store cannot be read.
pub fn list(cache_dir: &Path) -> std::io::Result<Vec<StoredFloor>> {
    stored(&store(cache_dir))
}

/// The floor as the build record keeps it: the policy, and the newest version of each library; for no floor just that.
pub(crate) fn record(choice: FloorChoice) -> BTreeMap<String, String> {
    let newest = match choice {
        FloorChoice::Level(level) => level.newest().to_vec(),
        FloorChoice::Host => Vec::new(),
    };
    let newest = newest.into_iter().map(|(library, version)| (library.to_owned(), version.to_owned()));
    newest.chain([("policy".to_owned(), choice.as_str().to_owned())]).collect()
}

/// Where floors are kept, for messages and tests.
pub fn store(cache_dir: &Path) -> std::path::PathBuf {
    cache_dir.join(STORE)
}
