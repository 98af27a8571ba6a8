//! Rows for the torch releases that a lock file pins.

use kiln_format::BackendName;
use kiln_format::lock::{Lock, LockedTorch};
use kiln_format::variant::Compute;

use kiln_toolchain::{torch_build_serves, torch_compute_of};

use super::data::{Matrix, Row, Target};

impl Matrix {
    /// The matrix with the releases of a lock file. A locked release stands before the matrix's own for the same minor: variants are
    /// named after the minor, and of equal names the first row counts. So it is what is built, unless another one is asked for by its
    /// full version. A build with a local part that says what it is for (`2.11.0+cu126`) is for the rows of that compute alone. A minor
    /// that the matrix lacks gets a row for the processor and one for the CUDA of the wheel, or the ROCm of its name, outside the default set. Of several locked
    /// releases of a minor the newest comes first.
    #[must_use]
    pub fn with_locked(mut self, lock: &Lock) -> Self {
        // Ascending, so that a newer one comes to stand before an older one.
        for torch in lock.torch() {
            if let Some(target) = target(&torch.platform) {
                self.add_locked(torch, target);
            }
        }
        self
    }

    fn add_locked(&mut self, torch: &LockedTorch, target: Target) {
        let minor = torch.version.major_minor();
        // A build that says what it was configured for is for variants of that alone.
        let serves = |compute: Compute| torch.local().is_none_or(|local| torch_build_serves(local, compute));
        let row = |known: &Row| Row { release: torch.version.clone(), systems: vec![target], ..known.clone() };
        let mut rows: Vec<Row> = Vec::new();
        for known in self.rows.iter().filter(|known| known.torch == minor && known.systems.contains(&target) && serves(known.compute)) {
            if !rows.iter().any(|made| (made.compute, made.tvm_ffi) == (known.compute, known.tvm_ffi)) {
                rows.push(row(known));
            }
        }
        let cuda = torch.cuda.clone().map(|cuda| (Compute::new(BackendName::Cuda, cuda.major_minor()), Some(cuda)));
        let rocm = torch.local().and_then(torch_compute_of).map(|(compute, version)| (compute, Some(version)));
        for (compute, compute_version) in [Some((Compute::Cpu, None)), cuda, rocm].into_iter().flatten() {
            if serves(compute) && !rows.iter().any(|made| made.compute == compute) {
                let (release, systems) = (torch.version.clone(), vec![target]);
                let (tvm_ffi, default, broken, kiln_only) = (None, false, false, true);
                rows.push(Row { torch: minor, release, compute, compute_version, systems, default, tvm_ffi, broken, kiln_only });
            }
        }
        // The matrix may have the release itself: its rows move.
        for known in self.rows.iter_mut().filter(|known| known.release == torch.version && serves(known.compute)) {
            known.systems.retain(|system| *system != target);
        }
        self.rows.retain(|known| !known.systems.is_empty());
        let same = self.rows.iter().position(|known| known.torch == minor);
        let at = same.or_else(|| self.rows.iter().position(|known| known.torch > minor)).unwrap_or(self.rows.len());
        self.rows.splice(at..at, rows);
    }
}

impl Matrix {
    /// Why this matrix, which is [`Matrix::with_locked`], builds nothing with a pinned release; none if it does.
    pub fn unplanned(&self, torch: &LockedTorch) -> Option<String> {
        let serves = |row: &Row| torch.local().is_none_or(|local| torch_build_serves(local, row.compute));
        let is_its = |row: &Row, target| row.release == torch.version && row.systems.contains(&target) && serves(row);
        let (shown, minor) = (format!("torch {} ({})", torch.shown(), torch.platform), torch.version.major_minor());
        match target(&torch.platform) {
            None => Some(format!("{shown} is pinned, but no variant is for that platform")),
            Some(target) if self.rows.iter().any(|row| is_its(row, target)) => None,
            Some(_) => Some(format!(
                "{shown} is pinned, but no variant is built with it: the matrix has no row of torch {minor} for such a build, \
                 and its name does not say which release of the compute it is for"
            )),
        }
    }
}

/// The target of a platform as catalog and lock call it.
fn target(platform: &str) -> Option<Target> {
    Target::ALL.into_iter().find(|target| target.platform() == platform)
}

#[cfg(test)]
mod tests {
    use kiln_format::{MajorMinor, Version};

    use super::*;
    use crate::lock_file::testing::locked_torch;

    fn lock(releases: &[(&str, &str)]) -> Lock {
        let mut lock = Lock::default();
        for (version, platform) in releases {
            let (platform, cuda) = ((*platform).to_owned(), Version::parse("13.3").ok());
            lock.add(LockedTorch { platform, cuda, ..locked_torch(version) });
        }
        lock
    }

    /// The rows of a minor for Linux on x86_64, in their order.
    fn rows(matrix: &Matrix, minor: (u64, u64)) -> Vec<String> {
        let target = Target::ALL[4];
        let rows = matrix.rows.iter().filter(|row| row.torch == MajorMinor::new(minor.0, minor.1) && row.systems.contains(&target));
        rows.map(|row| format!("{row} with {}{}", row.release, if row.default { " default" } else { "" })).collect()
    }

    #[test]
    fn a_locked_release_comes_first() {
        let matrix = Matrix::builtin().unwrap().with_locked(&lock(&[("2.14.0", "linux-x86_64"), ("2.14.0", "linux-aarch64")]));
        insta::assert_snapshot!(rows(&matrix, (2, 14)).join("\n"), @r"
        torch 2.14 cpu with 2.14.0 default
        torch 2.14 cuda 13.0 with 2.14.0 default
        torch 2.14 cuda 13.3 with 2.14.0
        torch 2.14 cpu with 2.14.1 default
        torch 2.14 cuda 13.0 with 2.14.1 default
        ");
        let plain = Matrix::builtin().unwrap();
        assert_eq!(rows(&matrix, (2, 13)), rows(&plain, (2, 13)));
        assert_eq!(matrix.peer_only().rows.len(), plain.peer_only().rows.len());
    }

    #[test]
    fn a_build_for_one_compute_moves_its_rows_alone() {
        let pin = |release: &str, local: &str, cuda: Option<&str>| {
            let mut lock = lock(&[(release, "linux-x86_64")]);
            let known = lock.torch()[0].clone();
            let wheel = format!("torch-{release}+{local}-cp311-cp311-manylinux_2_28_x86_64.whl");
            lock.remove(&known.version, None, "linux-x86_64");
            lock.add(LockedTorch { wheel, cuda: cuda.and_then(|cuda| Version::parse(cuda).ok()), ..known });
            Matrix::builtin().unwrap().with_locked(&lock)
        };
        let plain = rows(&Matrix::builtin().unwrap(), (2, 12));
        let cpu = rows(&pin("2.12.5", "cpu", None), (2, 12));
        assert_eq!(cpu[0], "torch 2.12 cpu with 2.12.5 default");
        assert_eq!(cpu[1..], plain[..]);
        let cuda = rows(&pin("2.12.5", "cu126", Some("12.6")), (2, 12));
        assert_eq!(cuda[0], "torch 2.12 cuda 12.6 with 2.12.5 default");
        assert_eq!(cuda[1..], plain[..]);
        // The same release: the row moves, and is there once.
        let mut same = rows(&pin("2.12.1", "cu126", Some("12.6")), (2, 12));
        assert_eq!(same[0], "torch 2.12 cuda 12.6 with 2.12.1 default");
        let mut all = plain;
        same.sort();
        all.sort();
        assert_eq!(same, all);
        // A minor that is new gets rows for what the build is for.
        assert_eq!(rows(&pin("2.16.0", "cu126", Some("12.6")), (2, 16)), ["torch 2.16 cuda 12.6 with 2.16.0"]);
        assert_eq!(rows(&pin("2.16.0", "cpu", None), (2, 16)), ["torch 2.16 cpu with 2.16.0"]);
    }

    #[test]
    fn a_pin_without_a_row_is_told() {
        let pin = |release: &str, local: &str, platform: &str| {
            let known = locked_torch(release);
            let wheel = format!("torch-{release}+{local}-cp311-cp311-manylinux_2_28_x86_64.whl");
            LockedTorch { wheel, cuda: None, platform: platform.to_owned(), ..known }
        };
        let with = |torch: &LockedTorch| {
            let mut lock = Lock::default();
            lock.add(torch.clone());
            Matrix::builtin().unwrap().with_locked(&lock)
        };
        let rocm = pin("2.16.0", "rocm7.9.1", "linux-x86_64");
        assert_eq!(rows(&with(&rocm), (2, 16)), ["torch 2.16 rocm 7.9.1 with 2.16.0"]);
        assert_eq!(with(&rocm).unplanned(&rocm), None);
        // Another release of ROCm than the matrix has.
        let other = rows(&with(&pin("2.13.0", "rocm9.3", "linux-x86_64")), (2, 13));
        assert_eq!(
            (other[0].as_str(), other.len()),
            ("torch 2.13 rocm 9.3 with 2.13.0", rows(&Matrix::builtin().unwrap(), (2, 13)).len() + 1)
        );
        let xpu = pin("2.16.0", "xpu", "linux-x86_64");
        assert_eq!(rows(&with(&xpu), (2, 16)), Vec::<String>::new());
        insta::assert_snapshot!(with(&xpu).unplanned(&xpu).unwrap(), @"torch 2.16.0+xpu (linux-x86_64) is pinned, but no variant is built with it: the matrix has no row of torch 2.16 for such a build, and its name does not say which release of the compute it is for");
        let known = pin("2.13.0", "xpu", "linux-x86_64");
        assert_eq!(with(&known).unplanned(&known), None);
        let foreign = pin("2.13.0", "cpu", "plan9-mips");
        assert_eq!(
            with(&foreign).unplanned(&foreign).unwrap(),
            "torch 2.13.0+cpu (plan9-mips) is pinned, but no variant is for that platform"
        );
    }

    #[test]
    fn the_newest_of_several_comes_first_the_matrix_own_included() {
        let matrix = Matrix::builtin().unwrap().with_locked(&lock(&[("2.12.0", "linux-x86_64"), ("2.12.1", "linux-x86_64")]));
        let cpu: Vec<String> = rows(&matrix, (2, 12)).into_iter().filter(|row| row.contains(" cpu ")).collect();
        assert_eq!(cpu, ["torch 2.12 cpu with 2.12.1 default", "torch 2.12 cpu with 2.12.0 default"]);
    }

    #[test]
    fn a_minor_that_is_new_gets_rows_outside_the_default_set() {
        let matrix = Matrix::builtin().unwrap().with_locked(&lock(&[("2.16.0", "linux-x86_64")]));
        assert_eq!(rows(&matrix, (2, 16)), ["torch 2.16 cpu with 2.16.0", "torch 2.16 cuda 13.3 with 2.16.0"]);
        assert_eq!(matrix.rows.last().unwrap().torch, MajorMinor::new(2, 16));
        let elsewhere = Matrix::builtin().unwrap();
        assert_eq!(elsewhere.clone().with_locked(&lock(&[("2.16.0", "plan9-mips")])), elsewhere);
    }
}
