//! How many packets that belong to no path of their own are let in (`[class.limits] openings`,
//! `[device] linux_packets`): the XDP program drops what is more, so that a flood of segments to an open port,
//! or of anything to Linux, costs its look and nothing behind.

use crate::classes::Classes;
use silk_control::DropCount;
use silk_device::OpenError;
use silk_device::xdp::{Counts, Device, Limit, Strangers};
use std::sync::{Arc, Mutex, PoisonError};

/// The interfaces' XDP program, where there is one.
#[derive(Clone, Default)]
pub struct Gate(Option<Arc<Mutex<Device>>>);

impl Gate {
    /// The gate of this device.
    pub fn of(device: &Arc<Mutex<Device>>) -> Self {
        Self(Some(device.clone()))
    }

    /// Lets in what the classes of each domain are allowed together.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_openings(&self, classes: &Classes) -> Result<(), OpenError> {
        let Some(mut device) = self.device() else { return Ok(()) };
        (0..classes.domains()).try_for_each(|domain| {
            let limit = classes.openings(domain).map(Limit::per_second);
            device.limit(Strangers::Domain(domain as u32), limit)
        })
    }

    /// Leaves so many packets in a second to Linux of the interface with this number, beside those of neighbours,
    /// of which there may be as many.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_linux(&self, number: u32, packets: Option<u32>) -> Result<(), OpenError> {
        let Some(mut device) = self.device() else { return Ok(()) };
        let limit = packets.map(|packets| Limit::per_second(packets.into()));
        device.limit(Strangers::Linux(number), limit)?;
        device.limit(Strangers::Neighbours(number), limit)
    }

    /// Leaves the interface with this number to Linux for good.
    pub fn let_go(&self, number: usize) {
        if let Some(mut device) = self.device() {
            device.let_go(number);
        }
    }

    /// The interfaces' own numbers.
    pub fn interfaces(&self) -> Vec<u32> {
        let Some(device) = self.device() else { return Vec::new() };
        let further = device.further.iter().map(|further| further.interface.index);
        std::iter::once(device.interface.index).chain(further).collect()
    }

    /// What was not let in, from whom nothing is, and what came by a queue that there was not when silk began, or that it was told to leave.
    pub fn drops(&self, domains: usize) -> Vec<DropCount> {
        let Some(device) = self.device() else { return Vec::new() };
        let openings = (0..domains).map(|domain| device.not_let_in(Strangers::Domain(domain as u32))).sum();
        let of = |n| device.not_let_in(Strangers::Linux(n)) + device.not_let_in(Strangers::Neighbours(n));
        let linux = (0..=device.further.len() as u32).map(of).sum();
        let counts: Vec<Counts> = (0..domains).map(|domain| device.counts(domain as u32)).collect();
        let counts = [
            ("device: beyond the openings of its class", openings),
            ("device: beyond Linux's share", linux),
            ("device: refused source", counts.iter().map(|counts| counts.refused).sum()),
            ("device: a queue that is not served", counts.iter().map(|counts| counts.no_ring).sum()),
        ];
        let counts = counts.map(|(reason, count)| DropCount { reason: reason.into(), count });
        counts.into_iter().filter(|drop| drop.count > 0).collect()
    }

    fn device(&self) -> Option<std::sync::MutexGuard<'_, Device>> {
        self.0.as_ref().map(|device| device.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
