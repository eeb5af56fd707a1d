//! One side of the emulated link: a tap interface in a network namespace. It must never be left
//! behind: it lives as long as it is open.

use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Command;
use std::str::FromStr;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use silk_config::Interface;
use silk_device::netlink::{Change, Netlink, Watch};
use silk_device::{End, tap};
use silk_testkit::netns::output;

/// Which interface to make, and in which namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    namespace: String,
    interface: Interface,
}

impl FromStr for Side {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (namespace, name) = text.split_once(':').ok_or("a side is written NAMESPACE:INTERFACE")?;
        // The namespace is a file's name, and never a way to another folder or an option of `ip`.
        if namespace.is_empty() || namespace.starts_with(['.', '-']) || namespace.contains('/') {
            return Err(format!("`{namespace}` cannot be the name of a network namespace"));
        }
        let interface = Interface::new(name).filter(|_| !name.starts_with('-'));
        let interface = interface.ok_or_else(|| format!("`{name}` cannot be the name of an interface"))?;
        Ok(Self { namespace: namespace.to_owned(), interface })
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.namespace, self.interface)
    }
}

/// An interface that is there and up.
pub struct Opened {
    pub end: End,
    pub presence: Presence,
}

/// Knows whether the interface is still there.
pub struct Presence {
    side: Side,
    watch: Watch,
    index: u32,
}

impl Side {
    /// Makes the interface and brings it up. Linux is told to leave nothing to the device: it cuts
    /// large messages and completes checksums before it hands them over, so that what is lost or
    /// delayed is a packet as on a wire.
    pub fn open(self) -> Result<Opened, String> {
        let name = self.interface.as_str();
        let opened = self.inside(|| {
            let mut netlink = Netlink::open().map_err(|error| error.to_string())?;
            // A tap that is there would be used, and stay.
            if netlink.interface(name).is_ok() {
                return Err("there is an interface of this name already, and netem makes its own".to_owned());
            }
            let options = tap::Options { offload: false, ..tap::Options::default() };
            let end = tap::open(name, &options).map_err(|error| error.to_string())?;
            let watch = Watch::open().map_err(|error| error.to_string())?;
            let found = netlink.interface(name).map_err(|error| error.to_string())?;
            Ok((end, watch, found.index))
        });
        let (end, watch, index) = opened.map_err(|why| format!("{self}: {why}"))?;
        let up = ["-n", &self.namespace, "link", "set", name, "up"];
        output(Command::new("ip").args(up)).map_err(|error| format!("{self}: {error}"))?;
        Ok(Opened { end, presence: Presence { side: self, watch, index } })
    }

    /// Does something in the namespace: on a thread of its own, since a thread that went there cannot
    /// be trusted to come back.
    fn inside<T: Send>(&self, act: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
        let file = File::open(format!("/run/netns/{}", self.namespace));
        let file = file.map_err(|error| format!("there is no such network namespace: {error}"))?;
        let enter_and_act = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|error| format!("the network namespace cannot be entered: {error}"))?;
            act()
        };
        let done = thread::scope(|scope| scope.spawn(enter_and_act).join());
        done.unwrap_or_else(|_| Err("the thread in the network namespace failed".into()))
    }
}

impl Presence {
    /// Readable when something about the namespace's interfaces changed.
    pub fn changes(&self) -> BorrowedFd<'_> {
        self.watch.fd()
    }

    /// The side, if somebody has deleted its interface. The tap's descriptor would never say so.
    pub fn gone(&mut self) -> Option<&Side> {
        let changes = self.watch.changes().unwrap_or_default();
        changes.contains(&Change::Gone(self.index)).then_some(&self.side)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_is_a_namespace_and_an_interface() {
        assert_eq!("client:eth1".parse::<Side>().unwrap().to_string(), "client:eth1");
    }

    #[test]
    fn what_names_no_side_is_refused() {
        for text in ["", "eth0", ":eth0", "client:", "../x:eth0", "a/b:eth0", "-n:eth0", "a:-eth0", "a:b c"] {
            assert!(text.parse::<Side>().is_err(), "{text}");
        }
    }
}
