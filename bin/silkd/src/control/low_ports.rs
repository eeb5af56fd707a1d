//! Who may bind the low ports. Linux keeps those below `net.ipv4.ip_unprivileged_port_start` for programs with the capability to
//! (capabilities(7), `CAP_NET_BIND_SERVICE`). The daemon has it, and reserves ports for programs that may have given theirs up: it
//! must not lend it to them.
//!
//! It looks at the process that has asked, which may have executed another program since, whose file gives it rights. Such a program is
//! none of silk's, since the C library's loader does not preload for it; so rights that come so do not count.
//! Nor do those of a process whose user is not the one that the kernel wrote beside what was asked: it has
//! made itself root since, or is another process, which has got the number.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::str::SplitWhitespace;

/// What the kernel calls the capability.
const NET_BIND_SERVICE: u32 = 10;

/// In the vector that the kernel gives a program (`AT_SECURE`, getauxval(3)): whether its file has changed its rights.
const SECURE: u64 = 23;

/// Whether a process may bind `port`: its kernel id, and its real user when it asked. One that is not known
/// may bind what everybody may.
pub fn may_bind(who: Option<(u32, u32)>, port: u16) -> bool {
    port == 0 || port >= first() || who.is_some_and(|(pid, user)| has_right(pid, user))
}

/// The first port that is everybody's, where the daemon is.
fn first() -> u16 {
    let said = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    said.ok().and_then(|port| port.trim().parse().ok()).unwrap_or(1024)
}

/// Whether a process has the capability, not by the file of its program, is this user's still, and is of the
/// daemon's user namespace, which it must hold in.
fn has_right(pid: u32, user: u32) -> bool {
    // Of another user's there is nothing to be seen.
    let status = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok();
        status.filter(|status| is_of(user, status)).unwrap_or_default()
    };
    let is_plain = || match fs::read(format!("/proc/{pid}/auxv")) {
        Ok(vector) => is_plain(&vector),
        // A daemon with few rights may not look into what is another user's, or has more. A file that gives
        // some makes who executes it root, mostly.
        Err(_) => {
            let status = status();
            acts_for_itself(&status) && is_capable(&status)
        }
    };
    // It may execute something else between two looks: what it is in the middle counts only if it is capable on both sides.
    is_capable(&status()) && is_of_our_namespace(pid) && is_plain() && is_capable(&status())
}

/// Which namespace a process with more rights than the daemon has is not to be seen (ptrace(2), `PTRACE_MODE_READ`), and the
/// daemon as a service has few. Then its users and groups tell: only somebody with all rights here can have made one in which
/// every number means what it means here.
fn is_of_our_namespace(pid: u32) -> bool {
    let namespace =
        |of: &str| fs::metadata(format!("/proc/{of}/ns/user")).map(|of| (of.dev(), of.ino())).ok();
    let of = pid.to_string();
    match (namespace("self"), namespace(&of)) {
        (Some(own), Some(its)) => own == its,
        (None, _) => false,
        (_, None) => ["uid_map", "gid_map"].iter().all(|map| {
            let read = |of: &str| fs::read_to_string(format!("/proc/{of}/{map}")).ok();
            read("self").is_some_and(|own| read(&of) == Some(own))
        }),
    }
}

/// A process's users by its status (proc(5)): its own, the one that it acts as, the one that it may act as
/// again, and the one that it has for files.
fn users(status: &str) -> SplitWhitespace<'_> {
    status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default().split_whitespace()
}

/// Whether a process's own user is this one, whoever it acts as.
fn is_of(user: u32, status: &str) -> bool {
    users(status).next().is_some_and(|own| own.parse::<u32>() == Ok(user))
}

/// Whether a process acts as its own user, and may act as no other: not in a program that acts as the owner
/// of its file, be it now and then.
fn acts_for_itself(status: &str) -> bool {
    let mut users = users(status);
    let own = users.next();
    users.clone().count() == 3 && users.all(|user| Some(user) == own)
}

/// Whether a process has it by its status (proc(5)).
fn is_capable(status: &str) -> bool {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    effective.is_some_and(|bits| bits >> NET_BIND_SERVICE & 1 != 0)
}

/// Whether the file of a program has not changed its rights, by its vector (proc(5), `auxv`): pairs of words.
fn is_plain(vector: &[u8]) -> bool {
    let word = |bytes: &[u8]| bytes.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
    let mut pairs = vector.chunks_exact(16).map(|pair| (word(pair), word(&pair[8..])));
    pairs.any(|pair| pair == (Some(SECURE), Some(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Write, stderr};
    use std::process::Command;
    use std::time::{Duration, Instant};

    const NOBODY: u32 = 65_534;

    #[test]
    fn the_capability_is_found_in_a_status() {
        assert!(is_capable("Name:\tx\nCapPrm:\t0\nCapEff:\t0000000000000400\nCapBnd:\t0\n"));
        assert!(is_capable("CapEff:\t000001ffffffffff\n"));
        for without in
            ["", "CapEff:\t0000000000000000", "CapEff:\t000001fffffffbff", "CapBnd:\t400", "CapEff:\tx"]
        {
            assert!(!is_capable(without), "{without:?}");
        }
    }

    #[test]
    fn whose_file_has_changed_its_rights_is_told_by_its_vector() {
        let vector = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        assert!(is_plain(&vector(&[6, 4096, SECURE, 0, 0, 0])));
        for words in [&[6, 4096, SECURE, 1, 0, 0][..], &[6, SECURE, 0, 0], &[SECURE], &[]] {
            assert!(!is_plain(&vector(words)), "{words:?}");
        }
    }

    #[test]
    fn who_acts_as_the_owner_of_a_file_is_told_by_the_status() {
        assert!(acts_for_itself("Name:\tx\nUid:\t7\t7\t7\t7\nGid:\t0\t0\t0\t0\n"));
        for other in ["Uid:\t7\t0\t0\t0\n", "Uid:\t7\t7\t0\t7\n", "Uid:\t7\t7\t7\n", "Uid:\n", ""] {
            assert!(!acts_for_itself(other), "{other:?}");
        }
    }

    #[test]
    fn whose_a_process_is_is_told_by_the_status() {
        assert!(is_of(7, "Name:\tx\nUid:\t7\t0\t0\t0\n"), "and not by whom it acts as");
        for other in ["Uid:\t0\t0\t0\t0\n", "Uid:\t0\t7\t7\t7\n", "Uid:\tx\t7\n", "Uid:\n", ""] {
            assert!(!is_of(7, other), "{other:?}");
        }
    }

    #[test]
    fn who_has_become_another_user_since_it_asked_has_no_right() {
        let (own, user) = (std::process::id(), rustix::process::getuid().as_raw());
        assert_eq!(has_right(own, user), is_capable(&fs::read_to_string("/proc/self/status").unwrap()));
        assert!(!has_right(own, user.wrapping_add(1)));
    }

    #[test]
    fn high_ports_and_a_chosen_one_are_everybodys() {
        assert!(may_bind(None, 0) && may_bind(None, first().max(1)));
        assert!(first() == 0 || !may_bind(None, first() - 1) || first() == 1);
        assert!(!has_right(u32::MAX, 0), "a process that there is not");
    }

    /// Whether a process that `setpriv` starts, with these words, as a user without rights, has the capability,
    /// and whether it has the right, having asked as that user, and as root.
    fn of_one_that_runs(words: &[&str]) -> [bool; 3] {
        let mut child = Command::new("setpriv")
            .args(["--reuid", &NOBODY.to_string(), "--clear-groups"])
            .args(words)
            .spawn()
            .unwrap();
        // It is who it is to be once it has executed that.
        let program = words.iter().position(|word| word.contains('/')).map(|at| words[at]).unwrap();
        let is_there = || {
            fs::read(format!("/proc/{}/cmdline", child.id()))
                .is_ok_and(|line| line.starts_with(program.as_bytes()))
        };
        let begun = Instant::now();
        while !is_there() {
            assert!(begun.elapsed() < Duration::from_secs(10), "{words:?} does not begin");
            std::thread::sleep(Duration::from_millis(1));
        }
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let has = [is_capable(&status), has_right(child.id(), NOBODY), has_right(child.id(), 0)];
        child.kill().unwrap();
        child.wait().unwrap();
        has
    }

    #[test]
    fn rights_that_come_by_the_file_of_a_program_do_not_count() {
        if !rustix::process::geteuid().is_root() {
            let _ = writeln!(stderr(), "SKIPPED, tests nothing: this needs root");
            return;
        }
        let folder = std::env::temp_dir().join(format!("silk-rights-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let program = |name: &str| {
            let program = folder.join(name);
            fs::copy("/bin/sleep", &program).unwrap();
            program.to_str().unwrap().to_owned()
        };
        let of_root = program("of-root");
        assert!(Command::new("chmod").args(["u+s", &of_root]).status().unwrap().success());
        let gifted = program("gifted");
        // Revision 2 of the attribute (linux/capability.h), in force at once: permitted, inheritable, and their upper halves.
        let gift: Vec<u8> = [0x0200_0001u32, 1 << NET_BIND_SERVICE, 0, 0, 0].map(u32::to_le_bytes).concat();
        let name = "security.capability";
        let given = rustix::fs::setxattr(gifted.as_str(), name, &gift, rustix::fs::XattrFlags::empty());
        let ambient =
            ["--inh-caps=+net_bind_service", "--ambient-caps=+net_bind_service", "/bin/sleep", "100"];
        assert_eq!(of_one_that_runs(&ambient), [true, true, false]);
        assert_eq!(of_one_that_runs(&["/bin/sleep", "100"]), [false; 3]);
        for (program, given) in [(of_root, Ok(())), (gifted, given)] {
            match (given, of_one_that_runs(&[&program, "100"])) {
                (Ok(()), [true, has @ ..]) => assert_eq!(has, [false; 2], "{program}"),
                other => _ = writeln!(stderr(), "SKIPPED in part: {program} gets no rights here: {other:?}"),
            }
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
