//! ETH: Ethernet II framing (RFC 894), with the tag of a virtual LAN where the frames that are ours have
//! one (IEEE 802.1Q-2018 §9.6). It adds and takes off the header and hears only what
//! is for its station and of its VLAN; without one, frames that a tag gives a priority alone are taken as
//! those without a tag are. It must never change what it carries.
//!
//! # Configuration
//! None: its address is the device's, its VLAN that of the classifier's tables for it.
//!
//! # Services
//! `up` (net): IP, ARP, IP6, ND. `down` (net, needed): the device, VNET.
//!
//! # Attributes
//! Reads `ProtId` (the kind of the frames, set by the module above), and `Groups`:
//! whether frames to groups are heard. The
//! address to send to is in each message: its sender has had it resolved.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "eth0"
//! kind = "eth"
//!
//! [[link]]
//! from = "eth0.down"
//! to = "net0.up"
//! ```
//!
//! # See also
//! [`vnet`](crate::vnet) below; [`ip`](crate::ip), [`arp`](crate::arp), [`ip6`](crate::ip6) and [`nd`](crate::nd) above.

use crate::Device;
use crate::faults::reason;
use crate::stations::Stations;
use alloc::boxed::Box;
use silk_path::classify::{Answer, Tables, View};
use silk_path::service::{NET, Service};
use silk_path::{Create, CreateError, Cx, DropReason, Message, Module, Next, Stage, Step, Verdict};
use silk_wire::{MacAddr, eth};

/// Its services.
pub const SERVICES: &[Service] = &[Service::offered("up", NET), Service::needed("down", NET)];
const UP: u8 = 0;
const DOWN: u8 = 1;

/// The module.
pub struct Eth {
    tables: Tables,
    stations: Stations,
}

impl Eth {
    /// The module for the frames that these tables are about, over these devices.
    pub fn new(tables: Tables, devices: &[Device]) -> Self {
        Self { tables, stations: Stations::of(devices) }
    }

    /// Our address at this device is another from now on, for paths that exist too.
    pub fn become_station(&mut self, device: u8, address: [u8; 6]) {
        self.stations.become_another(device, address);
    }

    /// Our place at a device, where there is one.
    fn place(&self, device: u8) -> Option<Place> {
        let address = self.stations.at(device)?;
        Some(Place { device, address, vlan: self.tables.vlan(device) })
    }
}

/// Where we are at a device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// Which device.
    pub device: u8,
    /// Our address there.
    pub address: MacAddr,
    /// The virtual LAN of its frames, 0: of none.
    pub vlan: u16,
}

impl Module for Eth {
    fn kind(&self) -> &'static str {
        "eth"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        let kind = create.attrs.prot_id().ok_or(CreateError::Missing("ProtId"))?;
        let groups = create.attrs.groups() == Some(true);
        let stage = Box::new(EthStage { place: Place::default(), kind, groups });
        Ok(Step { stage: Some(stage), next: Next::Service(DOWN) })
    }

    fn classify(&self, view: &mut View<'_>) -> Answer {
        let vlan = self.tables.vlan(view.device);
        let Some(frame) = eth::frame(view.bytes()).ok().filter(|frame| frame.vid == vlan) else {
            return Answer::Pass;
        };
        let (group, kind) = (frame.header.destination.is_group(), frame.kind);
        view.group = group;
        view.advance(view.bytes().len() - frame.payload.len());
        Answer::Ask { service: UP, protocol: Some(kind) }
    }
}

/// ETH's part of a path.
pub(crate) struct EthStage {
    /// Where the path's last message left, or its first will.
    pub(crate) place: Place,
    kind: u16,
    // Frames to groups are heard.
    groups: bool,
}

impl EthStage {
    /// Where a message came, or is to leave.
    fn place_of(cx: &mut Cx<'_, '_>, msg: &Message<'_>) -> Result<Place, DropReason> {
        cx.module::<Eth>().place(msg.meta.link.device).ok_or(DropReason::DeviceRefused)
    }

    /// Whether a frame that came there is for a path of ours.
    fn check(&self, place: Place, frame: &eth::Frame<'_>) -> Result<(), DropReason> {
        let header = frame.header;
        if frame.vid != place.vlan {
            return Err(DropReason::EthVlan);
        }
        // A group may be asked for an address, but no packet for a host goes to a group
        // (RFC 1122 §3.3.6).
        let group = header.destination.is_group() && (self.kind == eth::ARP || self.groups);
        if header.destination != place.address && !group {
            return Err(DropReason::EthNotForUs);
        }
        if frame.kind != self.kind { Err(DropReason::EthKind) } else { Ok(()) }
    }
}

impl Stage for EthStage {
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        let device = cx.attrs().device().unwrap_or(0);
        self.place =
            cx.module::<Eth>().place(device).ok_or(CreateError::NotForPaths("there is no such device"))?;
        Ok(())
    }

    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let place = match Self::place_of(cx, msg) {
            Ok(place) => place,
            Err(reason) => return reason.into(),
        };
        let (source, length) = match eth::frame(msg.bytes()) {
            Err(fault) => return reason(fault).into(),
            Ok(frame) => match self.check(place, &frame) {
                Err(reason) => return reason.into(),
                Ok(()) => (frame.header.source, msg.bytes().len() - frame.payload.len()),
            },
        };
        msg.pop(length);
        msg.meta.link.address = source.0;
        Verdict::Forward
    }

    fn down(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        self.place = match Self::place_of(cx, msg) {
            Ok(place) => place,
            Err(reason) => return reason.into(),
        };
        let header = eth::Header::new(MacAddr(msg.meta.link.address), self.place.address, self.kind);
        match msg.push(eth::length(self.place.vlan)) {
            Ok(bytes) => header.emit_on(self.place.vlan, bytes),
            Err(reason) => return reason.into(),
        }
        Verdict::Forward
    }
}
