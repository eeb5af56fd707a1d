//! Addresses, routers and stations that change, as the modules of a domain hear of them.

use crate::between::told::Told;
use crate::domain::engine::Engine;
use silk_modules::Standing;
use silk_modules::arp::Arp;
use silk_modules::eth::Eth;
use silk_modules::igmp::Igmp;
use silk_modules::ip::{Ip, Routes};
use silk_modules::ip6::Ip6;
use silk_modules::mld::Mld;
use silk_modules::nd::Nd;
use std::net::{IpAddr, Ipv6Addr};

impl Engine {
    /// What routers have told of hops and of the MTU, for paths that begin from now on.
    pub fn heed(&mut self, hops: Option<u8>, mtu: Option<u16>) {
        if let Some(ip) = self.core.paths.module_mut::<Ip6>() {
            ip.heed(hops, mtu);
        }
    }

    /// A router says that packets to a destination are better given to another first hop. Whether that is believed, and
    /// news.
    pub fn redirect(
        &mut self,
        router: IpAddr,
        destination: IpAddr,
        hop: IpAddr,
        now: silk_instant::Instant,
    ) -> bool {
        let paths = &mut self.core.paths;
        let believed = match (router, destination, hop) {
            (IpAddr::V4(router), IpAddr::V4(destination), IpAddr::V4(hop)) => {
                paths.module_mut::<Ip>().map(|ip| ip.redirect(now, router, destination, hop))
            }
            (IpAddr::V6(router), IpAddr::V6(destination), IpAddr::V6(hop)) => {
                paths.module_mut::<Ip6>().map(|ip| ip.redirect(now, router, destination, hop))
            }
            _ => None,
        };
        believed.unwrap_or(false)
    }

    /// A neighbour does not answer that may be a router. The others hear of it where packets go by it: of the rest there may be as many
    /// as somebody makes up.
    pub fn lose_router(&mut self, router: Ipv6Addr) {
        let ip = self.core.paths.module_mut::<Ip6>();
        if ip.is_some_and(|ip| ip.routes.leads_by(router)) {
            self.tell_control(Told::RouterLost(router));
        }
    }

    /// A router does not answer one of the domains. That which hears of routers prefers another.
    pub fn doubt_router(&mut self, router: Ipv6Addr, now: silk_instant::Instant) {
        if let Some(nd) = self.core.paths.module_mut::<Nd>() {
            nd.doubt_router(now, router, &mut self.core.port);
        }
        self.answer_requests(now);
    }

    /// The router who was believed says where the hop is, too.
    pub fn redirected(&mut self, hop: IpAddr, link: Option<[u8; 6]>, now: silk_instant::Instant) {
        if let (IpAddr::V6(hop), Some(link)) = (hop, link)
            && let Some(nd) = self.core.paths.module_mut::<Nd>()
        {
            nd.redirected(now, hop, link, &mut self.core.port);
        }
    }

    /// Our Ethernet address at a device is this now.
    pub fn become_station(&mut self, device: u8, address: [u8; 6]) {
        let paths = &mut self.core.paths;
        if let Some(eth) = paths.module_mut::<Eth>() {
            eth.become_station(device, address);
        }
        if let Some(ip) = paths.module_mut::<Ip>() {
            ip.become_station(device, address);
        }
        if let Some(ip) = paths.module_mut::<Ip6>() {
            ip.become_station(device, address);
        }
    }

    /// The links stand like this now.
    pub fn follow(&mut self, standing: &Standing, now: silk_instant::Instant) {
        let (routes, routes6) = (Routes::of(standing), Routes::<Ipv6Addr>::of(standing));
        let (addresses, addresses6): (Vec<_>, Vec<_>) =
            (routes.addresses().collect(), routes6.addresses().collect());
        if let Some(ip) = self.core.paths.module_mut::<Ip>() {
            ip.follow(routes);
        }
        if let Some(ip) = self.core.paths.module_mut::<Ip6>() {
            ip.follow(routes6);
        }
        if let Some(arp) = self.core.paths.module_mut::<Arp>() {
            arp.become_these(&addresses, &mut self.core.port);
        }
        if let Some(nd) = self.core.paths.module_mut::<Nd>() {
            nd.become_these(&addresses6, &mut self.core.port);
        }
        if let Some(igmp) = self.core.paths.module_mut::<Igmp>() {
            igmp.become_these(&addresses);
        }
        if let Some(mld) = self.core.paths.module_mut::<Mld>() {
            mld.become_these(&addresses6);
        }
        self.answer_requests(now);
    }
}
