//! Which lists of systems bound what a policy allows.

use std::sync::LazyLock;

use kiln_object::Error;
use kiln_object::baseline::{Baseline, System};
use kiln_object::elf::Machine;

use crate::policy::{Policies, Policy};

/// What the systems of a policy have, in the lists of the oldest system that is as young as the policy, then in those of older ones:
/// a newer loader finds the names of an older library where newer libraries have them. Empty for a policy that is younger than all.
///
/// # Errors
/// For a machine without lists.
pub(crate) fn baselines(policy: &Policy, machine: Machine) -> Result<Vec<&'static Baseline>, Error> {
    let systems = System::ALL.into_iter().take_while(|system| is_needed(policy, *system)).collect::<Vec<_>>();
    if priority_of(systems.last().copied()).is_none_or(|priority| priority > policy.priority) {
        return Ok(Vec::new());
    }
    systems.into_iter().rev().map(|system| Baseline::of(system, machine)).collect()
}

/// Whether the list of `system` is looked at: every older one than the policy, and the first that is not.
fn is_needed(policy: &Policy, system: System) -> bool {
    let older = System::ALL.into_iter().take_while(|other| *other < system).last();
    older.is_none() || priority_of(older).is_some_and(|priority| priority > policy.priority)
}

/// The priority of the policy that stands for a system; greater for older systems.
fn priority_of(system: Option<System>) -> Option<u32> {
    // Asked for at every file, and the table is long.
    static PRIORITIES: LazyLock<Vec<(System, u32)>> = LazyLock::new(|| {
        // Without the table nobody has a policy to ask with.
        let Ok(policies) = Policies::embedded() else { return Vec::new() };
        let of = |system: System| policies.get(&format!("manylinux_{}", system.number())).map(|policy| (system, policy.priority));
        System::ALL.into_iter().filter_map(|system| of(system).ok()).collect()
    });
    PRIORITIES.iter().find(|(of, _)| Some(*of) == system).map(|(_, priority)| *priority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_bounded_by_the_next_younger_system() {
        let policies = Policies::embedded().unwrap();
        let count = |name: &str| baselines(policies.get(name).unwrap(), Machine::X86_64).unwrap().len();
        let counts = ["manylinux2014", "manylinux_2_28", "manylinux_2_31", "manylinux_2_34", "manylinux_2_35"].map(count);
        assert_eq!(counts, [1, 1, 2, 2, 0]);
        assert!(baselines(policies.get("manylinux_2_28").unwrap(), Machine(3)).is_err());
        // The newest first.
        let newest = baselines(policies.get("manylinux_2_34").unwrap(), Machine::X86_64).unwrap()[0];
        assert!(newest.has("libc.so.6", "pthread_create", "GLIBC_2.34"));
    }
}
