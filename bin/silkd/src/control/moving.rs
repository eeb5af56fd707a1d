//! Addresses and routers that change while the daemon runs, because Linux shares the interface, or because
//! routers of IPv6 advertise them on a link of silk's own: new addresses are served too, addresses that
//! are gone are connected from no more, and routes and the interface's Ethernet address are followed, by connections that
//! exist too.

use crate::between::command::Command;
use crate::control::attaching::show_networks;
use crate::control::moves::{Moves, tell_of_table};
use crate::control::server::Server;
use crate::say::say;
use silk_device::netlink::{Finder, Interface};
use silk_executor::link::{self, ROUTES};
use silk_modules::{Standing, Way};
use silk_path::Advertised;
use silk_wire::MacAddr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// The least time between two looks: routes may change often, and the control thread has other work.
const PAUSE: Duration = Duration::from_secs(1);
/// So many new routes are told one by one.
const TOLD: usize = 8;

impl Server {
    /// Looks how the interfaces stand, if something has changed and the last look was not just now.
    pub(crate) fn follow_link(&mut self) {
        let moved = self.neighbours.iter().any(Finder::has_moved);
        if !moved || self.looked.is_some_and(|looked| looked.elapsed() < PAUSE) {
            return;
        }
        self.looked = Some(Instant::now());
        let locals: Result<Vec<_>, _> = self.neighbours.iter_mut().map(Finder::addresses).collect();
        let table = self.neighbours.first_mut().map(|finder| finder.table(ROUTES));
        let interfaces: Result<Vec<_>, _> = self.neighbours.iter_mut().map(Finder::interface).collect();
        let (Ok(locals), Some(Ok(table)), Ok(interfaces)) = (locals, table, interfaces) else { return };
        self.let_go_of_gone(&interfaces);
        // No interface has the number 0: no way leads over one that is gone, though it come back with its number.
        let numbers = self.settings.interfaces.iter().zip(&interfaces);
        let numbers: Vec<u32> = numbers.map(|(number, now)| now.as_ref().map_or(0, |_| *number)).collect();
        let all_there = interfaces.iter().all(Option::is_some);
        let interfaces: Vec<(usize, Interface)> =
            interfaces.into_iter().enumerate().filter_map(|(number, now)| Some((number, now?))).collect();
        interfaces.iter().for_each(|(number, now)| self.follow_station(*number, now));
        let had_v4 = self.settings.standing.addresses().any(|(address, _)| address.is_ipv4());
        if had_v4 && all_there && !locals.iter().flatten().any(|local| local.address.is_ipv4()) {
            // They are just being configured anew, and looked at again when they are.
            return;
        }
        tell_of_table(&table, &mut self.settings.told_of_table);
        let mut standing = link::shared(&locals, &table, &numbers);
        for (number, now) in interfaces {
            let narrower =
                self.settings.devices.get(number).is_some_and(|device| now.mtu < device.mtu.into());
            if narrower {
                standing.narrow(number as u8, now.mtu as u16);
            }
        }
        self.take_over(standing);
    }

    /// Of an interface that is gone people are told, once: one that has its name later is another, and has no program of silk's.
    /// Neither has this one, wherever it is now: what came by it would be lost.
    fn let_go_of_gone(&mut self, interfaces: &[Option<Interface>]) {
        let all = self.settings.config.devices().zip(interfaces).zip(&mut self.told_of_gone);
        for (number, ((device, now), told)) in all.enumerate() {
            if now.is_some() || std::mem::replace(told, true) {
                continue;
            }
            self.gate.let_go(number);
            let name = device.interface.as_ref().map_or("", |name| name.as_str());
            say!(
                Error,
                "silkd: the interface `{name}` is gone: one that gets its name is Linux's until silkd is started again"
            );
        }
    }

    /// An interface is like this now: it may have another Ethernet address.
    fn follow_station(&mut self, number: usize, now: &Interface) {
        let Some(device) = self.settings.devices.get_mut(number) else { return };
        let address = now.mac.0;
        if std::mem::replace(&mut device.address, address) != address {
            say!(Notice, "silkd: {} has the Ethernet address {} now", now.name, now.mac);
            self.tell_all(|| Command::Station { device: number as u8, address });
        }
    }

    /// Routers advertise this on a link of silk's own: beside it stands what is configured.
    pub(crate) fn follow_routers(&mut self, told: &Advertised) {
        let mut standing = self.settings.configured.clone();
        let addresses = told.addresses.iter().map(|(address, length)| (IpAddr::from(*address), *length));
        addresses.for_each(|address| standing.add(0, address));
        standing.deprecated = told.deprecated.iter().copied().map(IpAddr::from).collect();
        standing.ways.extend(told.router.map(|router| Way::rest(0, router.into())));
        let by = |&((network, length), router): &((Ipv6Addr, u8), Ipv6Addr)| match length {
            0 => Way::rest(0, router.into()),
            _ => Way::by(0, router.into(), (network.into(), length)),
        };
        standing.ways.extend(told.routes.iter().map(by));
        let (hops, mtu) = (told.hops, told.mtu);
        self.tell_all(|| Command::Advertised { hops, mtu });
        self.take_over(standing);
    }

    /// Another station has an address of silk's own (RFC 4862 §5.4.5): from it nothing is sent any more.
    pub(crate) fn give_up(&mut self, address: IpAddr, station: [u8; 6]) {
        if !self.settings.has(address) {
            return;
        }
        say!(
            Error,
            "silkd: another station, {}, has silk's address {address}, which silk therefore gives up: give one of the two another, and \
             start silkd again",
            MacAddr(station)
        );
        self.settings.duplicate.push(address);
        self.take_over(self.settings.standing.clone());
    }

    /// Another station claims an address of silk's own, which silk keeps (RFC 5227 §2.4 c): people hear of each once.
    pub(crate) fn is_claimed(&mut self, address: IpAddr, station: [u8; 6]) {
        if self.claimed.replace((address, station)) != Some((address, station)) {
            say!(
                Warning,
                "silkd: another station, {}, claims silk's address {address}, which silk keeps: give one of the two another",
                MacAddr(station)
            );
        }
    }

    fn take_over(&mut self, standing: Standing) {
        let before: Vec<_> = self.settings.broadcasts().collect();
        let moves = self.settings.follow(standing);
        if moves == Moves::default() {
            return;
        }
        self.follow_broadcasts(&before);
        if moves.new.iter().any(|address| !self.tables.is_local(*address)) {
            self.serve_new_addresses();
        }
        let ways = self.settings.ways.word();
        for header in self.families.values().map(|family| family.arena.header()) {
            header.ways.store(ways, SeqCst);
            show_networks(&self.settings, &header.usual);
        }
        let standing = Arc::new(self.settings.standing.clone());
        self.take_spares_back(true);
        self.tell_all(|| Command::Standing(standing.clone()));
        self.tell_of_moves(&moves);
    }

    /// What means everyone on a network that is gone means nobody any more, and what does on one that has come is heard.
    fn follow_broadcasts(&self, before: &[Ipv4Addr]) {
        let now: Vec<_> = self.settings.broadcasts().collect();
        for gone in before.iter().filter(|everyone| !now.contains(everyone)) {
            self.give_back_ports_of((*gone).into());
            self.tables.ignore((*gone).into());
        }
        for come in now.iter().filter(|everyone| !before.contains(everyone)) {
            let _ = self.tables.hear((*come).into());
            self.take_ports_of((*come).into());
        }
    }

    /// The classifier learns the new addresses. Groups stand behind them and are written down again.
    fn serve_new_addresses(&self) {
        let heard = || self.groups.all().chain(self.settings.everyone());
        heard().for_each(|group| self.give_back_ports_of(group));
        if let Err(why) = crate::tables::configure(&self.tables, &self.settings, &self.settings.classes) {
            return say!(Warning, "silkd: new addresses are Linux's: {why}");
        }
        // Those that were joined first: the others are heard as far as there is room.
        for group in heard() {
            let _ = self.tables.hear(group);
            self.take_ports_of(group);
        }
    }

    fn tell_of_moves(&self, moves: &Moves) {
        moves.new.iter().for_each(|address| say!(Notice, "silkd: {address} is an address of silk's now"));
        moves.gone.iter().for_each(|address| say!(Notice, "silkd: {address} is gone from the interface"));
        let beyond = moves.beyond.iter();
        beyond.for_each(|address| say!(Warning, "silkd: {address} is Linux's: the classifier holds no more"));
        let told = |ways: &[Way], what: &str| {
            ways.iter().take(TOLD).for_each(|way| say!(Notice, "silkd: {way} {what}"));
            if let Some(more @ 1..) = ways.len().checked_sub(TOLD) {
                say!(Notice, "silkd: so {more} more {what}");
            }
        };
        told(&moves.lost, "no longer");
        told(&moves.led, "now");
        let interface =
            if self.settings.standing.links.len() > 1 { "an interface of silk's" } else { "the interface" };
        for (router, family) in moves.routers.iter().zip(["IPv4", "IPv6"]) {
            match router {
                Some(Some(router)) => say!(Notice, "silkd: what is far is reached by {router} over {family}"),
                Some(None) => say!(Notice, "silkd: no default route of {family} leads over {interface}"),
                None => {}
            }
        }
    }
}
