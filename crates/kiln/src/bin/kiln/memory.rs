//! How much memory steps may take together.

use std::fs;
use std::path::Path;

use crate::exit::Failure;
use kiln_graph::size_of_text;

/// How much of what there is steps take unless the user says otherwise, in percent.
const SHARE: u64 = 90;

const MIB: u64 = 1 << 20;

/// The budget in MiB: what was asked for, else a part of what the machine or the process's cgroup has; none for no limit. `root` is
/// where the kernel's files are.
pub(crate) fn budget(asked: Option<&str>, root: &Path) -> Result<Option<u64>, Failure> {
    let there = || limit(root);
    let Some(text) = asked else { return Ok(there().map(|bytes| bytes / 100 * SHARE / MIB)) };
    let wrong = || {
        Failure::usage(format!(
            "`--memory {text}`: it must be a size such as 12G, 1.5GiB or 800M, at least 1Mi, a share such as 75%, or `none`"
        ))
    };
    if text == "none" {
        return Ok(None);
    }
    let bytes = match text.strip_suffix('%') {
        None => size_of_text(text).ok_or_else(wrong)?,
        Some(share) => {
            let share = share.trim().parse::<u64>().ok().filter(|share| (1..=100).contains(share)).ok_or_else(wrong)?;
            there().ok_or_else(|| {
                Failure::new("memory", "how much memory the machine has cannot be read").hint("name a size instead of a share")
            })? / 100
                * share
        }
    };
    if bytes < MIB {
        return Err(wrong());
    }
    Ok(Some(bytes / MIB))
}

/// What the machine has, or less where a cgroup of this process says so, in bytes; nothing where no file tells.
fn limit(root: &Path) -> Option<u64> {
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| total(&text));
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    machine.into_iter().chain(group_limits(root, &groups)).min()
}

/// `MemTotal` of `/proc/meminfo`, in bytes.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The limits of the process's cgroups of either version, and of those above them.
fn group_limits(root: &Path, groups: &str) -> Vec<u64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let (top, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|controller| controller == "memory") => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        // In a container the path may be that of the host, of which only the top is mounted here.
        let dirs = Path::new(path.trim_start_matches('/')).ancestors().map(|below| root.join(top).join(below).join(file));
        limits.extend(dirs.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok()));
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn the_smallest_limit_counts() {
        let meminfo = ("proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n");
        let of = |files: &[(&str, &str)]| budget(None, machine(files).path()).unwrap();
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[meminfo]), Some(14_745));
        let two = ("proc/self/cgroup", "0::/a/b\n");
        assert_eq!(of(&[meminfo, two, ("sys/fs/cgroup/a/b/memory.max", "max\n")]), Some(14_745));
        assert_eq!(of(&[meminfo, two, ("sys/fs/cgroup/a/memory.max", "1073741824\n")]), Some(921));
        assert_eq!(of(&[meminfo, two, ("sys/fs/cgroup/memory.max", "1073741824\n")]), Some(921), "a container sees its own top");
        let one = ("proc/self/cgroup", "5:cpu,memory:/x\n4:pids:/x\n");
        assert_eq!(of(&[meminfo, one, ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1073741824\n")]), Some(921));
        assert_eq!(of(&[meminfo, one, ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n")]), Some(14_745));
    }

    #[test]
    fn what_is_asked_for_wins() {
        let dir = machine(&[("proc/meminfo", "MemTotal: 1048576 kB\n")]);
        let ask = |text: &str| budget(Some(text), dir.path()).ok();
        assert_eq!(ask("none"), Some(None));
        assert_eq!(ask("2GiB"), Some(Some(2048)));
        assert_eq!(ask("50%"), Some(Some(511)));
        for wrong in ["", "0", "much", "0%", "101%", "1k"] {
            assert_eq!(ask(wrong), None, "{wrong}");
        }
    }
}
