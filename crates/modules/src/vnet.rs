//! VNET: the bottom end of a path, a device (SILK §3.1's VNET, an instance of GenericNet).
//! It says what the device can do and completes checksums where the device does not; beyond
//! it, whoever runs the path transmits. Of several devices a path has the one of its route; a path without one
//! peer, such as a listening one, has all of them, and each message its own: what it says of them is what all of
//! them can. It must never hold a message back.
//!
//! # Configuration
//! `device` — this device alone, a number from 0; default: all that there are.
//!
//! # Services
//! `up` (net): what speaks the device's link protocol, ETH.
//!
//! # Attributes
//! Sets `Device` where it is one, `Mtu`, `LinkAddress`, `Gso` and `ChecksumOffload`. Reads `Device`, that of the
//! route.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "net0"
//! kind = "vnet"
//! ```
//!
//! # See also
//! [`eth`](crate::eth), the module above it.

use crate::Device;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use silk_path::classify::{Answer, View};
use silk_path::service::{NET, Service};
use silk_path::{
    Attr, Checksum, Create, CreateError, Cx, DropReason, Message, Module, Next, Parameter, ParameterKind,
    Stage, Step, Verdict,
};
use silk_wire::checksum::Sum;

/// Its services.
pub const SERVICES: &[Service] = &[Service::offered("up", NET)];
/// Its parameters.
pub const PARAMETERS: &[Parameter] =
    &[Parameter { name: "device", kind: ParameterKind::Number(0, 255), required: false }];

/// The module.
pub struct Vnet {
    // The first one's number; the others follow. There is at least one.
    first: u8,
    devices: Vec<Device>,
}

impl Vnet {
    /// The module of device `number`.
    pub fn new(number: u8, device: Device) -> Self {
        Self { first: number, devices: vec![device] }
    }

    /// The module of all these devices, numbered from 0; of none: of one like no other.
    pub fn of_all(devices: &[Device]) -> Self {
        let devices = if devices.is_empty() { vec![Device::default()] } else { devices.to_vec() };
        Self { first: 0, devices }
    }

    /// What a path to `wanted` has at its bottom, or one to anywhere: its number, if it is one, and what it can.
    fn bottom(&self, wanted: Option<u8>) -> Result<(Option<u8>, Device), CreateError> {
        let [first, others @ ..] = &self.devices[..] else {
            return Err(CreateError::NotForPaths("vnet without a device"));
        };
        if others.is_empty() {
            return Ok((Some(self.first), *first));
        }
        let Some(number) = wanted else {
            return Ok((None, others.iter().fold(*first, |all, device| all.and(device))));
        };
        let device = self.devices.get(usize::from(number));
        device
            .map(|device| (Some(number), *device))
            .ok_or(CreateError::NotForPaths("there is no such device"))
    }
}

impl Module for Vnet {
    fn kind(&self) -> &'static str {
        "vnet"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        let (number, device) = self.bottom(create.attrs.device())?;
        if let Some(number) = number {
            create.set(Attr::Device(number))?;
        }
        create.set(Attr::Mtu(device.mtu))?;
        create.set(Attr::LinkAddress(device.address))?;
        create.set(Attr::Gso(device.gso))?;
        create.set(Attr::ChecksumOffload(device.checksum_offload))?;
        let complete = || -> Box<dyn Stage> { Box::new(Complete) };
        Ok(Step { stage: (!device.checksum_offload).then(complete), next: Next::End })
    }

    fn classify(&self, _: &mut View<'_>) -> Answer {
        Answer::Ask { service: 0, protocol: None }
    }
}

/// The stage over a device that completes no checksums. Over one that does, there is none.
struct Complete;

impl Stage for Complete {
    fn up(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Forward
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        if let Checksum::Partial { start, field } = msg.meta.checksum {
            let done = complete(msg, start.into(), field.into());
            msg.meta.checksum = Checksum::Verified;
            return done.map_or(Verdict::Drop(DropReason::DeviceRefused), |()| Verdict::Forward);
        }
        Verdict::Forward
    }
}

/// Sums from `start` to the end, `ext` included, and stores the checksum at `field`, both as
/// positions in the buffer.
pub(crate) fn complete(msg: &mut Message<'_>, start: usize, field: usize) -> Option<()> {
    let (start, field) = (start.checked_sub(msg.head())?, field.checked_sub(msg.head())?);
    let ext = msg.ext();
    let sum = sum_parts([msg.bytes().get(start..)?, ext[0], ext[1]]);
    // UDP's zero means "no checksum" (RFC 768); for TCP, 0xffff is as good as 0.
    let checksum = match sum.checksum() {
        0 => 0xffff,
        checksum => checksum,
    };
    msg.bytes_mut().get_mut(field..field + 2)?.copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

/// The sum of several parts as if they were one: a part at an odd offset is summed swapped.
fn sum_parts(parts: [&[u8]; 3]) -> Sum {
    let (mut sum, mut odd) = (Sum::ZERO, false);
    for part in parts {
        let folded = Sum::ZERO.bytes(part).folded();
        sum = sum.word(if odd { folded.swap_bytes() } else { folded });
        odd ^= part.len() % 2 == 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_path_has_the_device_of_its_route_or_what_all_of_them_can() {
        let small = Device { mtu: 1400, gso: 0, checksum_offload: true, ..Device::default() };
        let large = Device { address: [2, 0, 0, 0, 0, 2], mtu: 9000, gso: 65_000, checksum_offload: true };
        let both = Vnet::of_all(&[large, small]);
        assert_eq!(both.bottom(Some(1)), Ok((Some(1), small)));
        assert_eq!(both.bottom(None), Ok((None, Device { mtu: 1400, gso: 0, ..large })));
        assert!(both.bottom(Some(2)).is_err());
        assert_eq!(Vnet::of_all(&[large]).bottom(None), Ok((Some(0), large)));
        assert_eq!(Vnet::new(3, small).bottom(Some(0)), Ok((Some(3), small)), "the graph says so");
    }

    proptest! {
        #[test]
        fn parts_sum_like_the_whole(bytes in proptest::collection::vec(any::<u8>(), 0..99), a in 0usize..99, b in 0usize..99) {
            let (a, b) = (a.min(b).min(bytes.len()), a.max(b).min(bytes.len()));
            let parts = sum_parts([&bytes[..a], &bytes[a..b], &bytes[b..]]);
            prop_assert_eq!(parts.folded() % 0xffff, Sum::ZERO.bytes(&bytes).folded() % 0xffff);
        }
    }
}
