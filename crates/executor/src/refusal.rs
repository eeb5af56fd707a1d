//! What came to an address that is ours alone, and nobody takes. (Where Linux has the address too, it answers for what no path takes.) A
//! segment of TCP goes to the path that resets what belongs to no connection (RFC 9293 §3.5.2); of anything else the sender is told by
//! ICMP that nobody listens (RFC 1122 §3.2.2.1 and §4.1.3.1, RFC 4443 §3.1), no oftener than these modules are configured to.

use silk_instant::Instant;
use silk_modules::icmp::{Icmp, REFUSAL};
use silk_modules::ip::Ip;
use silk_path::classify::{Belongs, Protocol, Tables};
use silk_path::{Checksum, Parcel, PathId, Paths, Port};
use silk_wire::icmp::Unreachable;
use silk_wire::{eth, ipv4};

/// The path that answers for a frame which is nobody's; `None`: none does, or it is to be left alone.
pub(crate) fn answering(paths: &Paths, tables: &Tables, frame: &[u8], belongs: Belongs) -> Option<PathId> {
    if belongs != Belongs::Pass || !tables.owned().icmp {
        return None;
    }
    let eth::Frame { header, kind, .. } = eth::frame(frame).ok()?;
    if header.destination.is_group() {
        return None;
    }
    match Paths::parcel(frame) {
        Some(Parcel::Listen(flow)) if !tables.is_local(flow.local.ip()) => None,
        Some(parcel @ Parcel::Listen(flow)) if flow.protocol == Protocol::Tcp => paths.taker(&parcel),
        Some(Parcel::Listen(_)) | None if kind == eth::IPV6 => paths.taker(&Parcel::Nobodys6),
        _ => None,
    }
}

/// Tells the sender of an IPv4 packet that is nobody's, and came over this device, of whose transport checksum this is known, that it
/// is so, if it may be told. (IPv6's path does it itself.)
pub(crate) fn refuse<P: Port>(
    (paths, port): (&mut Paths, &mut P),
    tables: &Tables,
    (frame, device, checksum): (&[u8], u8, Checksum),
    now: Instant,
) {
    let Ok(eth::Frame { kind: eth::IPV4, payload, .. }) = eth::frame(frame) else { return };
    let Ok(packet) = ipv4::parse(payload) else { return };
    let why = match packet.header.protocol {
        _ if !tables.owned().icmp || !tables.is_local(packet.header.destination()) => return,
        ipv4::UDP => Unreachable::Port,
        ipv4::TCP | ipv4::ICMP => return,
        _ => Unreachable::Protocol,
    };
    let to_all = |ip: &mut Ip| ip.routes.is_broadcast(packet.header.source());
    if paths.module_mut::<Ip>().is_some_and(to_all) {
        return;
    }
    let Some(icmp) = paths.module_mut::<Icmp>() else { return };
    let Some(path) = icmp.path() else { return };
    let mut buffer = [0; REFUSAL];
    if let Some(mut refusal) = icmp.refuse(now, (frame, device, checksum), why, &mut buffer) {
        // A drop on the way is counted there.
        let _ = paths.down(path, now, port, &mut refusal);
    }
}
