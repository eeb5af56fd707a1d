//! The threads that do an interface's receive work. With threaded NAPI the XDP program and the
//! copy into the rings run in kernel threads that can be pinned and prioritised, instead of in
//! whatever CPU the sender or the interrupt came by: on a veth pair that is the only way to
//! have the receiver pay for receiving (SILK §4 charges the server for all its work).
//!
//! On a veth the NAPI exists only while an XDP program is attached in its driver: open the device first.
//! Turning it off again is refused by some kernels; the interface forgets it when it goes.

use std::fmt;
use std::fs;
use std::io;

use crate::netlink::generic::Family;
use crate::netlink::line::Attribute;
use crate::netlink::{Interface, NetlinkError};
use crate::schedule::Schedule;
use crate::sys;

/// One thread that polls one queue of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The kernel's number of the queue's NAPI.
    pub napi: u32,
    /// The thread's process id.
    pub pid: u32,
    /// The receive queue that it polls, from 0; `None` where that cannot be known, or it polls several.
    pub queue: Option<u32>,
}

/// Why the receive work could not be placed.
#[derive(Debug)]
pub enum NapiError {
    /// The interface has no NAPI now: a veth without XDP, or a driver without any.
    None {
        /// The interface.
        name: String,
    },
    /// The kernel could not be asked.
    Netlink(NetlinkError),
    /// The kernel refused.
    System {
        /// What was to be done.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
}

impl fmt::Display for NapiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None { name } => {
                write!(
                    f,
                    "`{name}` has no NAPI: on a veth it exists only while XDP is attached in its driver"
                )
            }
            Self::Netlink(error) => error.fmt(f),
            Self::System { what, source } => write!(f, "could not {what}: {source}"),
        }
    }
}

impl std::error::Error for NapiError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::None { .. } => None,
            Self::Netlink(error) => Some(error),
            Self::System { source, .. } => Some(source),
        }
    }
}

// The `netdev` family: commands and attributes.
const QUEUE_GET: u8 = 10;
const QUEUE_ID: u16 = 1;
const QUEUE_INTERFACE: u16 = 2;
const QUEUE_TYPE: u16 = 3;
const QUEUE_NAPI: u16 = 4;
const RECEIVE: u32 = 0;
const NAPI_GET: u8 = 11;
const NAPI_SET: u8 = 14;
const INTERFACE: u16 = 1;
const ID: u16 = 2;
const PID: u16 = 4;
const THREADED: u16 = 8;

/// How many receive queues of the interface are in use; `None` where the kernel does not say
/// (before 6.8, or while the interface is down).
pub fn receive_queues(interface: &Interface) -> Option<u32> {
    let count = queues(&mut Family::open("netdev").ok()?, interface)?.len();
    u32::try_from(count).ok().filter(|&count| count > 0)
}

/// A receive queue: its number, and its NAPI's where the driver tells.
type Queue = (u32, Option<u32>);

/// The receive queues in use, in order; `None` where the kernel does not say.
fn queues(family: &mut Family, interface: &Interface) -> Option<Vec<Queue>> {
    let of = [(QUEUE_INTERFACE, interface.index.to_ne_bytes().to_vec())];
    let all = family.dump(QUEUE_GET, &of).ok()?;
    let receive = all.iter().filter(|queue| number(queue, QUEUE_TYPE) == Some(RECEIVE));
    let mut queues: Vec<_> =
        receive.filter_map(|queue| Some((number(queue, QUEUE_ID)?, number(queue, QUEUE_NAPI)))).collect();
    queues.sort_unstable();
    Some(queues)
}

/// The queue that a NAPI polls, one of `napis` in ascending order. A driver that does not tell has mostly made one for each
/// queue, in order: veth has.
fn polled(napi: u32, napis: &[u32], queues: &[Queue]) -> Option<u32> {
    let mut own = queues.iter().filter(|(_, by)| *by == Some(napi));
    match (own.next(), own.next()) {
        (Some((queue, _)), None) => Some(*queue),
        (None, _) if queues.len() == napis.len() && queues.iter().all(|(_, by)| by.is_none()) => {
            let place = napis.binary_search(&napi).ok()?;
            queues.get(place).map(|(queue, _)| *queue)
        }
        _ => None,
    }
}

/// Moves the receive work of the interface to threads of its own, and gives them.
pub fn make_threaded(interface: &Interface) -> Result<Vec<Thread>, NapiError> {
    let threads = match make_threaded_by_netlink(interface) {
        Ok(()) => threads(interface),
        // Kernels before 6.17 know it only as a file, which may be another namespace's.
        Err(NapiError::Netlink(error)) => {
            let folder = format!("/sys/class/net/{}", interface.name);
            // Of an interface that is gone the name may be another's.
            let index = fs::read_to_string(format!("{folder}/ifindex")).ok();
            if index.and_then(|index| index.trim().parse().ok()) != Some(interface.index) {
                return Err(NapiError::Netlink(error));
            }
            let what = "make the interface's NAPI threaded";
            fs::write(format!("{folder}/threaded"), "1")
                .map_err(|source| NapiError::System { what, source })?;
            threads(interface)
        }
        Err(error) => Err(error),
    }?;
    if threads.is_empty() { Err(NapiError::None { name: interface.name.clone() }) } else { Ok(threads) }
}

fn make_threaded_by_netlink(interface: &Interface) -> Result<(), NapiError> {
    let mut family = Family::open("netdev").map_err(NapiError::Netlink)?;
    let all = napis(&mut family, interface)?;
    if all.is_empty() {
        return Err(NapiError::None { name: interface.name.clone() });
    }
    for napi in all {
        let id = number(&napi, ID).unwrap_or(0);
        let request = [(ID, id.to_ne_bytes().to_vec()), (THREADED, 1u32.to_ne_bytes().to_vec())];
        family.tell(NAPI_SET, &request).map_err(NapiError::Netlink)?;
    }
    Ok(())
}

/// The threads that do the receive work of the interface, in the order of their NAPIs: none when it is not threaded.
pub fn threads(interface: &Interface) -> Result<Vec<Thread>, NapiError> {
    match Family::open("netdev") {
        Ok(mut family) => {
            let all = match napis(&mut family, interface) {
                // The family is older than this question.
                Err(NapiError::Netlink(NetlinkError::Refused(error)))
                    if error.raw_os_error() == Some(libc::EOPNOTSUPP) =>
                {
                    return Ok(threads_named(&interface.name));
                }
                all => all?,
            };
            let queues = queues(&mut family, interface).unwrap_or_default();
            let mut ids: Vec<u32> = all.iter().filter_map(|napi| number(napi, ID)).collect();
            ids.sort_unstable();
            let thread = |napi: &Vec<Attribute>| {
                let pid = number(napi, PID).filter(|&pid| pid != 0)?;
                let napi = number(napi, ID)?;
                Some(Thread { napi, pid, queue: polled(napi, &ids, &queues) })
            };
            let mut threads: Vec<_> = all.iter().filter_map(thread).collect();
            threads.sort_unstable_by_key(|thread| thread.napi);
            Ok(threads)
        }
        // Older kernels say it only by the threads' names.
        Err(_) => Ok(threads_named(&interface.name)),
    }
}

fn napis(family: &mut Family, interface: &Interface) -> Result<Vec<Vec<Attribute>>, NapiError> {
    let of = [(INTERFACE, interface.index.to_ne_bytes().to_vec())];
    family.dump(NAPI_GET, &of).map_err(NapiError::Netlink)
}

fn number(attributes: &[Attribute], wanted: u16) -> Option<u32> {
    let (_, value) = attributes.iter().find(|(number, _)| *number == wanted)?;
    value.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// The kernel's threads called `napi/NAME-NUMBER`. Two namespaces may have interfaces of one name, so
/// this is the last resort.
fn threads_named(interface: &str) -> Vec<Thread> {
    let prefix = format!("napi/{interface}-");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let thread = |process: fs::DirEntry| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(process.path().join("comm")).ok()?;
        let napi = name.trim_end().strip_prefix(&prefix)?.parse().ok()?;
        // Anybody may call himself so.
        is_kernels(&process).then_some(Thread { napi, pid, queue: None })
    };
    processes.filter_map(thread).collect()
}

/// Whether a process is a thread of the kernel's: a child of kthreadd, which is process 2.
fn is_kernels(process: &fs::DirEntry) -> bool {
    let status = fs::read_to_string(process.path().join("status")).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("PPid:")).is_some_and(|parent| parent.trim() == "2")
}

impl Thread {
    /// Lets the thread run on these CPUs only.
    pub fn pin(self, cpus: &[usize]) -> Result<(), NapiError> {
        let what = "pin a receive thread";
        sys::pin(self.pid, cpus).map_err(|source| NapiError::System { what, source })
    }

    /// Schedules the thread.
    pub fn schedule(self, schedule: Schedule) -> Result<(), NapiError> {
        let what = "prioritise a receive thread";
        schedule.set(self.pid).map_err(|source| NapiError::System { what, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_only_has_the_name_of_a_receive_thread_is_none() {
        use std::process::{Command, Stdio};
        let mut shell = Command::new("sh");
        let mut named = shell
            .args(["-c", "printf napi/zz0-1 > /proc/$$/comm; echo; read line"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = [0];
        io::Read::read_exact(named.stdout.as_mut().unwrap(), &mut told).unwrap();
        let name = fs::read_to_string(format!("/proc/{}/comm", named.id())).unwrap();
        let found = threads_named("zz0").len();
        drop(named.stdin.take());
        named.wait().unwrap();
        assert_eq!((&*name, found), ("napi/zz0-1\n", 0));
    }

    #[test]
    fn an_interface_is_told_from_one_that_has_its_name() {
        let loopback = crate::netlink::Netlink::open().unwrap().interface("lo").unwrap();
        let other = Interface { index: u32::MAX >> 1, ..loopback };
        let error = make_threaded(&other).unwrap_err();
        assert!(matches!(error, NapiError::Netlink(_)), "{error}");
    }

    #[test]
    fn a_driver_that_tells_is_believed() {
        let queues = [(0, Some(20)), (1, Some(10)), (2, Some(10))];
        assert_eq!(polled(20, &[10, 20], &queues), Some(0));
        assert_eq!(polled(10, &[10, 20], &queues), None, "it polls two");
        assert_eq!(polled(30, &[10, 20, 30], &queues), None, "it polls none, for sending perhaps");
    }

    #[test]
    fn one_that_does_not_has_a_napi_for_each_queue_in_order_or_nothing_is_known() {
        let queues = [(0, None), (1, None)];
        assert_eq!([10, 20].map(|napi| polled(napi, &[10, 20], &queues)), [Some(0), Some(1)]);
        assert_eq!(polled(10, &[10, 20, 30], &queues), None);
        assert_eq!(polled(10, &[10, 20], &[]), None, "the kernel does not say");
        assert_eq!(polled(15, &[10, 20], &queues), None, "there is no such");
    }
}
