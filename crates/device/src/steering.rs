//! Receive packet steering (Linux's `Documentation/networking/scaling.rst`): which CPUs do the receive work of an
//! interface whose driver has none of its own to do it. Linux then puts what arrives into a queue of that CPU's,
//! and takes it from there in a softirq, where the XDP program of generic mode runs.
//!
//! The queue's length is the machine's (`net.core.netdev_max_backlog`), not the device's: a veth keeps 256 packets
//! while its receive thread waits for the CPU, this queue as many as one likes. And with
//! `net.core.flow_limit_cpu_bitmap` no flow may fill more than half of it. A flood then costs
//! others nothing, even while the CPU is gone for milliseconds, as in a virtual machine it may be.

use crate::netlink::Interface;
use crate::settings::Settings;
use std::fmt;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// An interface's steering; what it was before is put back when this goes.
#[derive(Debug)]
pub struct Steering {
    _masks: Settings,
}

/// Why an interface's packets cannot be steered.
#[derive(Debug)]
pub enum SteeringError {
    /// `/sys` is another network namespace's, so it may show another interface of that name.
    Elsewhere {
        /// The interface.
        name: String,
    },
    /// A mask could not be read or written.
    File {
        /// Its name.
        file: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

impl fmt::Display for SteeringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elsewhere { name } => write!(
                f,
                "/sys does not show `{name}` of this network namespace, so its packets cannot be steered: start \
                 with a /sys of its own, as `ip netns exec` does"
            ),
            Self::File { file, source } => {
                write!(f, "cannot steer packets by {}: {source}", file.display())
            }
        }
    }
}

impl std::error::Error for SteeringError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Elsewhere { .. } => None,
            Self::File { source, .. } => Some(source),
        }
    }
}

impl Steering {
    /// Has all receive queues of the interface served by these CPUs.
    ///
    /// # Errors
    /// `/sys` is not this namespace's, or the kernel refuses a mask. Nothing is changed then.
    pub fn start(interface: &Interface, cpus: &[usize]) -> Result<Self, SteeringError> {
        let folder = PathBuf::from(format!("/sys/class/net/{}", interface.name));
        let shown = read(&folder.join("ifindex"))?;
        let address = read(&folder.join("address"))?;
        if shown != interface.index.to_string() || address != written(interface.mac.0) {
            return Err(SteeringError::Elsewhere { name: interface.name.clone() });
        }
        let mask = mask(cpus);
        let mut masks = Settings::default();
        for file in mask_files(&folder.join("queues"))? {
            masks.set(&file, &mask).map_err(|source| SteeringError::File { file, source })?;
        }
        Ok(Self { _masks: masks })
    }
}

/// The file of each receive queue's mask.
fn mask_files(queues: &Path) -> Result<Vec<PathBuf>, SteeringError> {
    let failed = |source| SteeringError::File { file: queues.to_owned(), source };
    let mut files = Vec::new();
    for queue in fs::read_dir(queues).map_err(failed)? {
        let queue = queue.map_err(failed)?;
        if queue.file_name().to_string_lossy().starts_with("rx-") {
            files.push(queue.path().join("rps_cpus"));
        }
    }
    Ok(files)
}

fn read(file: &Path) -> Result<String, SteeringError> {
    let text = fs::read_to_string(file);
    text.map(|text| text.trim().to_owned())
        .map_err(|source| SteeringError::File { file: file.to_owned(), source })
}

/// A set of CPUs as the kernel's files write it: hexadecimal, in groups of 32 bits, the highest first.
fn mask(cpus: &[usize]) -> String {
    let mut groups = vec![0u32; cpus.iter().max().map_or(0, |cpu| cpu / 32) + 1];
    for cpu in cpus {
        groups[cpu / 32] |= 1 << (cpu % 32);
    }
    let mut text = String::new();
    for (place, group) in groups.iter().rev().enumerate() {
        let _ = if place == 0 { write!(text, "{group:x}") } else { write!(text, ",{group:08x}") };
    }
    text
}

fn written(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_written_as_the_kernel_reads_it() {
        assert_eq!(mask(&[]), "0");
        assert_eq!(mask(&[0, 1]), "3");
        assert_eq!(mask(&[31, 33]), "2,80000000");
        assert_eq!(mask(&[64]), "1,00000000,00000000");
    }
}
