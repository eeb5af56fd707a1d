//! The player does what SHELL was told (Scout §4.1): `mpeg_decode` makes a path at DISPLAY.

use crate::figures::Figures;
use crate::player::Player;
use crate::stream::{Begun, Carrier, Order, Refusal, Terms, Told, Words};
use silk_appliance::{Appliance, soon};
use silk_media::{DEFAULT_OUTPUT, Playing, Rate, Wish};
use silk_modules::shell::{self, Bits, Command, Fps, Pictures, Shell, Target};
use silk_path::{Attr, Attrs, Endpoint, PathId};
use silk_wire::{mflow, rtp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl Player {
    /// Makes the paths that commands come by, one over each IP, where the graph has a SHELL.
    ///
    /// # Errors
    /// The graph has none, or its port is taken.
    pub fn open_shell(&mut self, appliance: &mut Appliance) -> Result<(), Refusal> {
        let modules = appliance.paths().graph().modules();
        let top = modules.of_kind("shell").ok_or(Refusal::NoModule("shell"))?;
        let both = [("ip", Ipv4Addr::UNSPECIFIED.into()), ("ip6", IpAddr::V6(Ipv6Addr::UNSPECIFIED))];
        let spoken = both.map(|(kind, any)| modules.of_kind(kind).map(|_| any));
        for any in spoken.into_iter().flatten() {
            let attrs = Attrs::new().with(Attr::Local(Endpoint::new(any, 0)));
            appliance.create(top, attrs, silk_sched::Terms::default(), Some(soon)).map_err(Refusal::from)?;
        }
        Ok(())
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
                let figures = player.end(appliance, path);
                player.stopped.push((path, figures));
                "ok".into()
            }),
            Command::Rate(target, fps) => self.for_one(target, |player, path| match rate(*fps) {
                Some(rate) => match player.change_rate(appliance, path, rate) {
                    Ok(was) => done(was),
                    Err(less) if less.is_less() => format!("offer {}", Words(less)),
                    Err(less) => format!("error: {}", Refusal::Offered(less)),
                },
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
        let Some(order) = order_of(command, || self.free_name()) else { return "error".into() };
        entitle(&order.name);
        match self.begin(appliance, &order) {
            Ok(Begun { path, terms }) if order.told.is_some() => format!("ok {path} {}", promised(&terms)),
            Ok(begun) => format!("ok {} on trial", begun.path),
            Err(Refusal::Offered(less)) if less.is_less() => format!("offer {}", Words(less)),
            Err(refusal) => format!("error: {refusal}"),
        }
    }

    /// A name for a stream that was given none.
    fn free_name(&self) -> String {
        let mut names = (1u32..).map(|number| format!("stream{number}"));
        names.find(|name| self.find(name).is_none()).unwrap_or_default()
    }

    /// The streams, a few words each.
    fn listed(&self, appliance: &Appliance) -> String {
        let streams = self.streams().filter_map(|(path, _)| Some((path, self.figures(appliance, path)?)));
        let lines: Vec<String> = streams.map(|(path, figures)| line(path, &figures)).collect();
        if lines.is_empty() { "nothing is playing".into() } else { lines.join("; ") }
    }
}

/// What a stream was promised, and what it plays with where that is not all: words of `mpeg_decode`.
fn promised(terms: &Terms) -> String {
    let Terms { offer, share, memory } = terms;
    let text = format!("cpu={:.2}% memory={:.1}MiB {}", share * 100.0, mebibytes(*memory), Words(*offer));
    text.trim_end().into()
}

/// One stream: what became of its pictures, and what it uses of what it was promised.
fn line(path: PathId, figures: &Figures) -> String {
    let Figures { name, shown, promised, account, .. } = figures;
    let shown = format!("{} shown {} missed {} lost", shown.shown, shown.missed, shown.lost);
    let percent = |share: f64| format!("{:.2}%", share * 100.0);
    let used = figures.used.map_or_else(|| "?".into(), percent);
    let of = if figures.on_trial { "trial".into() } else { percent(promised.share) };
    let (memory, limit) = (mebibytes(account.memory()), mebibytes(account.memory_limit()));
    format!("{path} {name} {shown} cpu={used}/{of} memory={memory:.1}/{limit:.1}MiB")
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
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

/// The order that `mpeg_decode` gives; a stream without a name is called `otherwise`.
fn order_of(command: &Command, otherwise: impl FnOnce() -> String) -> Option<Order> {
    let Command::Decode { source, fps, every, without_b, name, queue, port, rtp: over_rtp, pictures, less } =
        command
    else {
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
    Some(Order {
        name: name.clone().unwrap_or_else(otherwise),
        carrier: if *over_rtp { Carrier::Rtp } else { Carrier::Mflow },
        local: Endpoint::new(any, port.unwrap_or(usual)),
        remote: Some(*source),
        wish: Wish {
            playing,
            every: every.unwrap_or(1).max(1).into(),
            without_b: *without_b,
            queue: queue.map_or(DEFAULT_OUTPUT, usize::from),
            ticks: *over_rtp,
            ..Wish::default()
        },
        told: pictures.as_ref().map(told),
        input_queue: if *over_rtp { 512 } else { 64 },
        realtime: true,
        accept_less: *less,
    })
}

/// What is told of a stream's pictures.
fn told(pictures: &Pictures) -> Told {
    let size = (pictures.size.0.into(), pictures.size.1.into());
    match pictures.bits {
        Bits::Mean(bits) => Told::alike(size, bits.into()),
        Bits::Group(kinds) => Told::group(size, kinds.map(|(count, bits)| (count.into(), bits.into()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_media::Offer;

    fn ordered(words: &str) -> Order {
        let text = format!("1 mpeg_decode 10.0.0.2:6000 {words}");
        order_of(&shell::parse(text.as_bytes()).unwrap().command, String::new).unwrap()
    }

    #[test]
    fn what_is_offered_can_be_sent_back_as_it_is() {
        let rate = Rate::from_millis(12_500).unwrap();
        let wish = |offer| ordered(&Words(offer).to_string()).wish;
        assert_eq!(wish(Offer::Every(3)).every, 3);
        assert!(wish(Offer::WithoutB).without_b);
        assert_eq!(wish(Offer::Slower(rate)).playing, Playing::At(rate));
        let slow = Offer::Slower(Rate::from_millis(1_001).unwrap());
        assert_eq!(Words(slow).to_string(), "fps=1.001");
    }

    #[test]
    fn an_order_tells_what_its_pictures_are_like() {
        let order = ordered("bits=9000,4000,1000 group=1,4,10 size=352x241 less=yes");
        let told = order.told.unwrap();
        assert_eq!((told.size, told.pictures.macroblocks, order.accept_less), ((352, 241), 352.0, true));
        assert_eq!(
            told.pictures.kinds.map(|kind| (kind.count, kind.bits)),
            [(1.0, 9000.0), (4.0, 4000.0), (10.0, 1000.0)]
        );
        assert_eq!((ordered("").told, ordered("").accept_less), (None, false));
    }

    #[test]
    fn what_was_promised_is_told_with_what_it_plays_with() {
        let whole = Terms { offer: Offer::Whole, share: 0.0312, memory: 4 << 20 };
        assert_eq!(promised(&whole), "cpu=3.12% memory=4.0MiB");
        let less = Terms { offer: Offer::WithoutB, ..whole };
        assert_eq!(promised(&less), "cpu=3.12% memory=4.0MiB without=b");
    }
}
