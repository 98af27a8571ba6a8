//! `kiln toolchain add` and `update`: what the lock files pin.

use std::path::PathBuf;

use kiln::build::{Checked, ROW_HINT};
use kiln::matrix::Matrix;
use kiln::{BuildError, known_projects, lock_file};
use kiln_format::Version;
use kiln_format::lock::{self, Lock, LockedTorch};
use kiln_toolchain::{OfferedTorch, PinnedTorch};

use super::{Context, named};
use crate::exit::{Exit, Failure};

/// A lock file that is to be changed.
struct Target {
    path: PathBuf,
    /// As people should read it.
    shown: String,
    lock: Lock,
}

impl Target {
    /// The project's lock file, or the user's when there is no project or `user` says so.
    fn new(context: &Context<'_>, user: bool) -> Result<Self, Failure> {
        let path = match &context.project {
            Some(project) if !user => project.join(lock::FILE_NAME),
            _ => {
                let none =
                    || Failure::new("cache", "there is no directory for the user's lock file: neither XDG_CONFIG_HOME nor HOME is set");
                context.settings.user_lock_file().ok_or_else(none)?
            }
        };
        let current = &context.settings.environment.current_dir;
        let shown = path.strip_prefix(current).unwrap_or(&path).display().to_string();
        Ok(Self { lock: lock_file::read(&path).map_err(BuildError::from)?, path, shown })
    }

    /// Makes the change, unless it may not be made. `what` is what would change, for the message.
    fn change(&self, context: &Context<'_>, what: &str, change: impl FnOnce(&mut Lock)) -> Result<(), Failure> {
        let mut after = self.lock.clone();
        change(&mut after);
        if after == self.lock {
            return Ok(());
        }
        self.refuse_if_locked(context, what)?;
        let digest = blake3::hash(self.path.as_os_str().as_encoded_bytes()).to_hex();
        let guard = context.cache_dir.join("locks-v1").join(digest.get(..32).unwrap_or(&digest));
        let (before, wanted) = (self.lock.clone(), after);
        lock_file::edit(&self.path, &guard, |lock| {
            // What another process has pinned meanwhile stays.
            for gone in before.torch().iter().filter(|torch| !wanted.torch().contains(torch)) {
                lock.remove(&gone.version, gone.local(), &gone.platform);
            }
            for new in wanted.torch().iter().filter(|torch| !before.torch().contains(torch)) {
                lock.add(new.clone());
            }
        })
        .map_err(BuildError::from)?;
        // From now on the trees that it pins are needed.
        if let Some(root) = self.path.parent() {
            let lock = lock_file::read(&self.path).map_err(BuildError::from)?;
            known_projects::note_lock(&context.cache_dir, root, &lock);
        }
        Ok(())
    }

    fn refuse_if_locked(&self, context: &Context<'_>, what: &str) -> Result<(), Failure> {
        if !context.settings.locked {
            return Ok(());
        }
        let message = format!("`{}` would have to change, and `--locked` forbids it: {what}", self.shown);
        Err(Failure::new("locked", message).hint("run the command without `--locked` and `--frozen`"))
    }

    fn pinned(&self, version: &Version, local: Option<&str>, platform: &str) -> Option<&LockedTorch> {
        self.lock.torch().iter().find(|torch| torch.is_same_build(version, local, platform))
    }
}

pub(super) fn add(context: &Context<'_>, releases: &[String], user: bool) -> Result<Exit, Failure> {
    let releases = releases.iter().map(|text| named(text)).collect::<Result<Vec<_>, _>>()?;
    context.heeding_signals(|| {
        let target = Target::new(context, user)?;
        // All are pinned or none: the lock is changed once, at the end.
        let mut added: Vec<LockedTorch> = Vec::new();
        for (version, local) in releases {
            let shown = local.as_ref().map_or_else(|| version.to_string(), |local| format!("{version}+{local}"));
            let text = format!("torch {shown} ({})", context.platform);
            if target.pinned(&version, local.as_deref(), &context.platform).is_some() {
                context.printer.status("Unchanged", &format!("{text} is pinned in {}", target.shown));
                continue;
            }
            if added.iter().any(|torch| torch.is_same_build(&version, local.as_deref(), &context.platform)) {
                continue;
            }
            // Before a wheel of half a gigabyte is read for nothing.
            target.refuse_if_locked(context, &format!("{text} is not pinned"))?;
            let pinned = context.provisioner.pin_torch(&version, local.as_deref(), &context.platform)?;
            warn_of_wheel(context, &pinned);
            added.push(pinned.locked);
        }
        // Before anything is changed: this may fail, too.
        let unplanned = added.iter().map(|torch| unplanned(context, torch)).collect::<Result<Vec<_>, _>>()?;
        // Without a local part an index may offer just one build that has one.
        let text = |torch: &LockedTorch| format!("torch {} ({})", torch.shown(), context.platform);
        let what = added.iter().map(text).collect::<Vec<_>>().join(", ");
        target.change(context, &what, |lock| added.iter().for_each(|torch| lock.add(torch.clone())))?;
        for (torch, unplanned) in added.iter().zip(unplanned) {
            let (cuda, license) = (shown_cuda(torch), &torch.license);
            context.printer.status("Added", &format!("{}, {cuda}, to {}; license: {license}", text(torch), target.shown));
            if let Some(message) = unplanned {
                context.printer.warning(&format!("{message}; {ROW_HINT}"));
            }
        }
        Ok(Exit::Success)
    })?
}

pub(super) fn update(context: &Context<'_>, names: &[String], user: bool) -> Result<Exit, Failure> {
    let lines = names.iter().map(|name| if name == "torch" { Ok(None) } else { named(name).map(|(version, _)| Some(version)) });
    let lines = lines.collect::<Result<Vec<_>, _>>()?;
    let meant = |version: &Version| {
        let in_line = |line: &Option<Version>| line.as_ref().is_none_or(|line| line.major_minor() == version.major_minor());
        lines.is_empty() || lines.iter().any(in_line)
    };
    let target = Target::new(context, user)?;
    let pinned: Vec<LockedTorch> =
        target.lock.torch().iter().filter(|torch| torch.platform == context.platform && meant(&torch.version)).cloned().collect();
    if pinned.is_empty() {
        context.printer.status("Unchanged", &format!("{} pins nothing that could be updated", target.shown));
        return Ok(Exit::Success);
    }
    context.heeding_signals(|| {
        let offered = context.provisioner.offered_torch(&context.platform)?;
        for old in pinned {
            let minor = old.version.major_minor();
            let line = || {
                let is_of_it = |offer: &&OfferedTorch| offer.local.as_deref() == old.local() && offer.version.major_minor() == minor;
                offered.iter().filter(is_of_it)
            };
            if line().next().is_none() {
                let build = old.local().map(|local| format!(" with `+{local}`")).unwrap_or_default();
                let text = format!("torch {} ({}): the index offers no torch {minor}{build}", old.shown(), old.platform);
                context.printer.status("Unchanged", &text);
                continue;
            }
            let newer = line().filter(|offer| !offer.yanked && offer.version > old.version);
            let Some(newest) = newer.map(|offer| offer.version.clone()).max() else {
                context.printer.status("Unchanged", &format!("torch {} ({}) is the newest of its line", old.shown(), old.platform));
                continue;
            };
            let target = Target::new(context, user)?;
            let local = old.local().map(|local| format!("+{local}")).unwrap_or_default();
            let text = format!("torch {} -> {newest}{local} ({})", old.shown(), old.platform);
            target.refuse_if_locked(context, &text)?;
            let pinned = context.provisioner.pin_torch(&newest, old.local(), &context.platform)?;
            warn_of_wheel(context, &pinned);
            let (was, is) = (shown_cuda(&old), shown_cuda(&pinned.locked));
            target.change(context, &text, |lock| {
                lock.remove(&old.version, old.local(), &old.platform);
                lock.add(pinned.locked);
            })?;
            let other = if was == is { String::new() } else { format!(", {was} -> {is}") };
            context.printer.status("Updated", &format!("{text}{other} in {}", target.shown));
        }
        Ok(Exit::Success)
    })?
}

/// Why no variant would be built with a release, if that is so: in the project, or, without one, by the matrix of Kiln.
fn unplanned(context: &Context<'_>, torch: &LockedTorch) -> Result<Option<String>, Failure> {
    // A project that cannot be opened says so to whoever builds it.
    let of_project = context.project.as_ref().and_then(|dir| Checked::open(dir, &Lock::default()).ok()).map(|checked| checked.matrix);
    let matrix = of_project.map_or_else(Matrix::builtin, Ok).map_err(BuildError::from)?;
    let mut lock = Lock::default();
    lock.add(torch.clone());
    Ok(matrix.with_locked(&lock).unplanned(torch))
}

fn warn_of_wheel(context: &Context<'_>, pinned: &PinnedTorch) {
    if !pinned.vouched {
        let wheel = &pinned.locked.wheel;
        context.printer.warning(&format!("the index gives no digest of `{wheel}`: the lock pins what was received"));
    }
    if let Some(reason) = &pinned.yanked {
        let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        context.printer.warning(&format!("the publisher has withdrawn `{}`{why}", pinned.locked.wheel));
    }
}

fn shown_cuda(locked: &LockedTorch) -> String {
    locked.cuda.as_ref().map_or("without CUDA".to_owned(), |cuda| format!("CUDA {cuda}"))
}
