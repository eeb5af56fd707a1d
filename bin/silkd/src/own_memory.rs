//! How much memory there is for the daemon: the machine's, or less where its control group may use less (`memory.max` of
//! cgroups v2, its own group's and those around it, as systemd's `MemoryMax=` sets it).

use std::fs;
use std::path::Path;

const GROUPS: &str = "/sys/fs/cgroup";

/// Bytes.
pub fn bytes() -> u64 {
    let told = rustix::system::sysinfo();
    let machine = told.totalram.saturating_mul(told.mem_unit.into());
    let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    least_limit(Path::new(GROUPS), &membership).map_or(machine, |limit| limit.min(machine))
}

/// The least limit that holds for who is a member of these groups, as `/proc/self/cgroup` has them.
fn least_limit(groups: &Path, membership: &str) -> Option<u64> {
    let own = membership.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let limit =
        |group: &Path| fs::read_to_string(groups.join(group).join("memory.max")).ok()?.trim().parse().ok();
    // A group that lies outside of what can be seen begins with `..`: then nothing is known of it.
    Path::new(own).ancestors().filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_all_groups_around_holds() {
        let groups = tempfile::tempdir().unwrap();
        let inner = groups.path().join("system.slice/silkd.service");
        fs::create_dir_all(&inner).unwrap();
        let limit = |membership| least_limit(groups.path(), membership);
        let member = "4:memory:/elsewhere\n0::/system.slice/silkd.service\n";
        assert_eq!(limit(member), None);
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        assert_eq!(limit(member), None);
        fs::write(inner.join("../memory.max"), "1073741824\n").unwrap();
        assert_eq!(limit(member), Some(1 << 30));
        fs::write(inner.join("memory.max"), "2147483648\n").unwrap();
        assert_eq!(limit(member), Some(1 << 30));
        fs::write(inner.join("memory.max"), "536870912\n").unwrap();
        assert_eq!(limit(member), Some(512 << 20));
        for nobody in ["", "0::/", "0::/user.slice", "4:memory:/system.slice\n"] {
            assert_eq!(limit(nobody), None, "{nobody}");
        }
    }

    #[test]
    fn there_is_some() {
        assert!(bytes() > 1 << 20);
    }
}
