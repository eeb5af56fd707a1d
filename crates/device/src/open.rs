//! Why a device could not be opened, in one sentence that says whose fault it is and what to
//! do. Nothing is left behind by a failed opening.

use std::fmt;
use std::io;

/// Why a device could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The operator lacks a privilege (`CAP_NET_RAW`, `CAP_NET_ADMIN`, `CAP_BPF`).
    Privilege {
        /// What was to be done.
        what: &'static str,
    },
    /// There is no such interface in this network namespace.
    NoInterface {
        /// The name that was asked for.
        name: String,
    },
    /// The interface carries no Ethernet frames, which are all that devices here read and write.
    NoEthernet {
        /// The interface.
        name: String,
    },
    /// There is an interface of this name, and it is no tap that could be opened.
    NoTap {
        /// The interface.
        name: String,
    },
    /// The kernel has no taps here.
    NoTaps,
    /// The interface has no such hardware queue.
    NoQueue {
        /// The interface.
        name: String,
        /// The queue that was asked for.
        queue: u32,
        /// How many it has.
        queues: u32,
    },
    /// Another program holds the interface or its queue.
    Taken {
        /// The interface.
        name: String,
        /// What is taken.
        what: &'static str,
    },
    /// The interface or the kernel cannot do it.
    Unsupported {
        /// The interface.
        name: String,
        /// What it cannot do.
        what: &'static str,
    },
    /// The driver of the interface refuses an XDP program, for a reason of its own.
    Driver {
        /// The interface.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel is older than what can do it.
    OldKernel {
        /// What it cannot do.
        what: &'static str,
        /// Which it is.
        release: String,
    },
    /// The kernel refused the XDP program; its verifier's words are included.
    Program(String),
    /// Options that contradict each other.
    Options(&'static str),
    /// Anything else the kernel said.
    System {
        /// What was to be done.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl OpenError {
    /// Sorts an error of the kernel that came while doing `what` on the interface `name`.
    pub(crate) fn of(name: &str, what: &'static str, source: io::Error) -> Self {
        let name = name.to_owned();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Privilege { what },
            Some(libc::ENODEV | libc::ENXIO) => Self::NoInterface { name },
            Some(libc::EBUSY | libc::EEXIST) => Self::Taken { name, what },
            Some(libc::EOPNOTSUPP | libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT) => {
                Self::Unsupported { name, what }
            }
            _ => Self::System { what, source },
        }
    }

    /// The same of what kernels before 6.6 say no more of than "invalid argument".
    pub(crate) fn of_late(name: &str, what: &'static str, source: io::Error) -> Self {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        if source.raw_os_error() == Some(libc::EINVAL) && is_before(release.trim(), (6, 6)) {
            return Self::OldKernel { what, release: release.trim().to_owned() };
        }
        Self::of(name, what, source)
    }
}

/// Whether a kernel of this release is older than that version; not where it is no release of Linux's.
fn is_before(release: &str, version: (u32, u32)) -> bool {
    let mut numbers = release.split(|sign: char| !sign.is_ascii_digit()).map(str::parse);
    let (major, minor) = (numbers.next(), numbers.next());
    matches!((major, minor), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) < version)
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Privilege { what } => {
                write!(f, "not allowed to {what}: run as root, or in a user namespace with `packet`")
            }
            Self::NoQueue { name, queue, queues } => {
                write!(f, "`{name}` has no receive queue {queue}: it has {queues}, numbered from 0")
            }
            Self::NoInterface { name } => {
                write!(f, "there is no interface `{name}` here: `ip link` lists those there are")
            }
            Self::NoEthernet { name } => {
                write!(
                    f,
                    "`{name}` is no Ethernet interface, and silk speaks nothing else: name the one that packets come in by; \
                     what comes over `{name}` is served all the same, and not told apart before"
                )
            }
            Self::NoTap { name } => {
                write!(
                    f,
                    "`{name}` is there already and is no tap that silkd could open: with `tap` it makes an interface of its own, so \
                     name one that is not there, such as `silk0`; to share `{name}` take `xdp`"
                )
            }
            Self::NoTaps => f.write_str(
                "there is no /dev/net/tun here: `modprobe tun`, or, in a container, give it that device",
            ),
            Self::Taken { name, what } => {
                write!(f, "cannot {what} on `{name}`: another program has it; stop that one first")
            }
            Self::Unsupported { name, what } => {
                write!(
                    f,
                    "`{name}` cannot {what}: try `mode = \"generic\"`, or the device kind `packet`, there"
                )
            }
            Self::Driver { name, source } => {
                write!(
                    f,
                    "the driver of `{name}` takes no XDP program as it is set up ({source}): some want an MTU of 1500 \
                     (`ip link set {name} mtu 1500`) or fewer channels (`ethtool -L {name} combined N`); `mode = \"generic\"` works with all"
                )
            }
            Self::OldKernel { what, release } => {
                write!(
                    f,
                    "Linux {release} is too old to {what}: 6.6 or a newer one does (for Debian 12 it is in bookworm-backports); \
                     the device kind `packet` works with it"
                )
            }
            Self::Program(why) => write!(f, "the kernel refused the classifier program: {why}"),
            Self::Options(why) => f.write_str(why),
            Self::System { what, source } => write!(f, "could not {what}: {source}"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { source, .. } | Self::Driver { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_old_kernel_refuses_is_told_from_what_is_wrong() {
        let old = |release: &str| is_before(release, (6, 6));
        assert_eq!(["6.1.0-40-amd64", "5.10.0", "6.5"].map(old), [true; 3]);
        assert_eq!(["6.6.0", "6.18.44-fc", "7.0-rc1", "10.1", "unknown", ""].map(old), [false; 6]);
        let here = OpenError::of_late("eth0", "receive", io::Error::from_raw_os_error(libc::EBUSY));
        assert!(matches!(here, OpenError::Taken { .. }), "{here}");
    }
}
