//! The player does what SHELL was told (Scout §4.1): `mpeg_decode` makes a path at DISPLAY.

use crate::player::Player;
use crate::stream::{Carrier, Order, Refusal};
use silk_appliance::{Appliance, soon};
use silk_media::{DEFAULT_OUTPUT, Demand, Offer, Playing, Rate, Sample, Wish};
use silk_modules::shell::{self, Command, Fps, Pictures, Shell, Target};
use silk_path::{Attrs, Endpoint, PathId};
use silk_wire::{mflow, rtp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl Player {
    /// Makes the path that commands come by, where the graph has a SHELL.
    ///
    /// # Errors
    /// The graph has none, or its port is taken.
    pub fn open_shell(&mut self, appliance: &mut Appliance) -> Result<PathId, Refusal> {
        let top = appliance.paths().graph().modules().of_kind("shell").ok_or(Refusal::NoModule("shell"))?;
        appliance.create(top, Attrs::new(), silk_sched::Terms::default(), Some(soon)).map_err(Refusal::from)
    }

    /// Does what was commanded since, and answers. `entitle` is told the name of each stream before
    /// its screen is opened.
    pub fn obey(&mut self, appliance: &mut Appliance, mut entitle: impl FnMut(&str)) {
        let orders = appliance.paths_mut().module_mut::<Shell>().map(Shell::orders).unwrap_or_default();
        for order in orders {
            let answer = self.done(appliance, &order.command, &mut entitle);
            appliance.with(|paths, now, port| shell::answer(paths, now, port, &order, &answer));
        }
    }

    fn done(
        &mut self,
        appliance: &mut Appliance,
        command: &Command,
        entitle: &mut dyn FnMut(&str),
    ) -> String {
        match command {
            Command::Decode { .. } => self.decode(appliance, command, entitle),
            Command::List => self.listed(appliance),
            Command::Stop(target) => self.for_one(target, |player, path| {
                player.end(appliance, path);
                player.stopped.push(path);
                "ok".into()
            }),
            Command::Rate(target, fps) => self.for_one(target, |player, path| match rate(*fps) {
                Some(rate) => done(player.set_rate(appliance, path, rate)),
                None => "error: max is for mpeg_decode only".into(),
            }),
            Command::Every(target, every) => {
                self.for_one(target, |player, path| done(player.set_every(appliance, path, (*every).into())))
            }
        }
    }

    fn for_one(&mut self, target: &Target, work: impl FnOnce(&mut Self, PathId) -> String) -> String {
        let path = match target {
            Target::Name(name) => self.find(name),
            Target::Path(path) => Some(*path).filter(|path| self.streams().any(|(known, _)| known == *path)),
        };
        path.map_or_else(|| "error: no such stream".into(), |path| work(self, path))
    }

    fn decode(
        &mut self,
        appliance: &mut Appliance,
        command: &Command,
        entitle: &mut dyn FnMut(&str),
    ) -> String {
        let Some(order) = order_of(command, self.streams().count()) else { return "error".into() };
        entitle(&order.name);
        match self.begin(appliance, &order) {
            Ok(begun) if begun.terms.share > 0.0 && begun.terms.offer == Offer::Whole => {
                format!("ok {} cpu={:.2}%", begun.path, begun.terms.share * 100.0)
            }
            Ok(begun) if begun.terms.offer == Offer::Whole => format!("ok {}", begun.path),
            Ok(begun) => format!("ok {} with less: {}", begun.path, Refusal::Offered(begun.terms.offer)),
            Err(refusal) => format!("error: {refusal}"),
        }
    }

    /// The streams, a few words each.
    fn listed(&self, appliance: &Appliance) -> String {
        let line = |(path, name): (PathId, &str)| {
            let shown = self.figures(appliance, path).map(|figures| figures.shown).unwrap_or_default();
            format!("{path} {name} {} shown {} missed {} lost", shown.shown, shown.missed, shown.lost)
        };
        let lines: Vec<String> = self.streams().map(line).collect();
        if lines.is_empty() { "nothing is playing".into() } else { lines.join("; ") }
    }
}

fn done(was: bool) -> String {
    if was { "ok".into() } else { "error: the stream is over".into() }
}

fn rate(fps: Fps) -> Option<Rate> {
    match fps {
        Fps::Millis(millis) => Rate::from_millis(millis),
        Fps::Max => None,
    }
}

/// The order that `mpeg_decode` gives; the stream is the `number`-th.
fn order_of(command: &Command, number: usize) -> Option<Order> {
    let Command::Decode { source, fps, every, name, queue, port, rtp: over_rtp, pictures } = command else {
        return None;
    };
    let usual = if *over_rtp { rtp::PORT } else { mflow::PORT };
    let any =
        if source.is_v6() { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
    let playing = match fps {
        Some(Fps::Max) => Playing::Free,
        Some(fps) => rate(*fps).map_or(Playing::Own, Playing::At),
        None => Playing::Own,
    };
    let queue = queue.map_or(DEFAULT_OUTPUT, usize::from);
    let demand = pictures.as_ref().map(|pictures| demand(pictures, playing, queue));
    Some(Order {
        name: name.clone().unwrap_or_else(|| format!("stream{}", number + 1)),
        carrier: if *over_rtp { Carrier::Rtp } else { Carrier::Mflow },
        local: Endpoint::new(any, port.unwrap_or(usual)),
        remote: Some(*source),
        wish: Wish {
            playing,
            every: every.unwrap_or(1).max(1).into(),
            queue,
            ticks: *over_rtp,
            ..Wish::default()
        },
        demand,
        input_queue: if *over_rtp { 512 } else { 64 },
        realtime: true,
        accept_less: true,
    })
}

/// What a stream of such pictures will need. One that plays as fast as it can is taken for one at the
/// usual rate: it has no deadlines, and gets what is left.
fn demand(pictures: &Pictures, playing: Playing, queue: usize) -> Demand {
    let (width, height) = (u64::from(pictures.size.0), u64::from(pictures.size.1));
    let macroblocks = width.div_ceil(16) * height.div_ceil(16);
    let rate = if let Playing::At(rate) = playing { rate } else { Rate::USUAL };
    let picture = macroblocks * 16 * 16 * 3 / 2;
    Demand {
        rate,
        mean: Sample { macroblocks: macroblocks as f64, bits: pictures.bits.into() },
        references: None,
        // What the decoder keeps for itself, and a full output queue.
        memory: picture * (queue as u64 + DECODER),
    }
}

/// Pictures that a decoder keeps, about.
const DECODER: u64 = 6;
