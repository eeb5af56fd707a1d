//! VNET: the bottom end of a path, a device (SILK §3.1's VNET, an instance of GenericNet).
//! It says what the device can do and completes checksums where the device does not; beyond
//! it, whoever runs the path transmits. It must never hold a message back.
//!
//! # Configuration
//! `device` — which device, a number from 0; default 0.
//!
//! # Services
//! `up` (net): what speaks the device's link protocol, ETH.
//!
//! # Attributes
//! Sets `Device`, `Mtu`, `LinkAddress`, `Gso` and `ChecksumOffload`. Reads none.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "net0"
//! kind = "vnet"
//! device = 0
//! ```
//!
//! # See also
//! [`eth`](crate::eth), the module above it.

use crate::Device;
use alloc::boxed::Box;
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
    number: u8,
    device: Device,
}

impl Vnet {
    /// The module of device `number`.
    pub fn new(number: u8, device: Device) -> Self {
        Self { number, device }
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
        create.set(Attr::Device(self.number))?;
        create.set(Attr::Mtu(self.device.mtu))?;
        create.set(Attr::LinkAddress(self.device.address))?;
        create.set(Attr::Gso(self.device.gso))?;
        create.set(Attr::ChecksumOffload(self.device.checksum_offload))?;
        let complete = || -> Box<dyn Stage> { Box::new(Complete) };
        Ok(Step { stage: (!self.device.checksum_offload).then(complete), next: Next::End })
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

    proptest! {
        #[test]
        fn parts_sum_like_the_whole(bytes in proptest::collection::vec(any::<u8>(), 0..99), a in 0usize..99, b in 0usize..99) {
            let (a, b) = (a.min(b).min(bytes.len()), a.max(b).min(bytes.len()));
            let parts = sum_parts([&bytes[..a], &bytes[a..b], &bytes[b..]]);
            prop_assert_eq!(parts.folded() % 0xffff, Sum::ZERO.bytes(&bytes).folded() % 0xffff);
        }
    }
}
