//! The player: streams as paths, from their order to their end.

use crate::figures::Figures;
use crate::stream::{Begun, Carrier, Judgement, Order, Refusal, Stream, Terms, Trial};
use silk_appliance::Appliance;
use silk_media::{Budget, DisplayStage, Model, Mpeg, Offer, Playing, Rate, Wish, deadline};
use silk_modules::IntegratedLayers;
use silk_path::transform::{Measure, Rule as Transformation};
use silk_path::{Attr, Attrs, Bell, Event, Limits, ModuleId, PathId, Route, Wakeup};
use silk_sched::{Edf, Fixed, Policy};
use std::collections::BTreeMap;

/// How the streams share the processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// The earliest deadline first (Scout §4.3).
    #[default]
    Deadlines,
    /// In turn, all alike: Scout's default scheduler with one priority, for contrast.
    InTurn,
}

impl Schedule {
    /// The policy, for at most `paths` paths.
    pub fn policy(self, paths: u32) -> Box<dyn Policy + Send> {
        match self {
            Self::Deadlines => Box::new(Edf::new(paths)),
            Self::InTurn => Box::new(Fixed::new(paths)),
        }
    }
}

/// Which queue a stream's deadlines come from (Scout §4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// The output queue.
    Output,
    /// The earlier of both.
    Both,
    /// The bottleneck, as it is detected.
    #[default]
    Bottleneck,
}

impl Rule {
    fn wakeup(self) -> Wakeup {
        match self {
            Self::Output => deadline::by_output,
            Self::Both => deadline::by_both,
            Self::Bottleneck => deadline::by_bottleneck,
        }
    }
}

/// How a player is set up.
#[derive(Clone, Copy, Debug)]
pub struct PlayerOptions {
    /// Where deadlines come from.
    pub rule: Rule,
    /// Of the processor, for all streams: between 0 and 1.
    pub share: f64,
    /// Bytes of memory for all streams.
    pub memory: u64,
}

impl Default for PlayerOptions {
    fn default() -> Self {
        Self { rule: Rule::default(), share: 0.95, memory: 1 << 30 }
    }
}

/// Bytes of memory for the paths that stand beside the streams: commands, neighbours.
const STANDING: u64 = 16 << 20;

/// A player.
pub struct Player {
    options: PlayerOptions,
    pub(crate) budget: Budget,
    pub(crate) streams: BTreeMap<PathId, Stream>,
    pub(crate) tended: silk_instant::Instant,
    /// Streams that a command has ended, with their last figures, for whoever has their screens and tells people.
    pub stopped: Vec<(PathId, Option<Figures>)>,
    /// What became of streams that were let in on trial and do not fit, for whoever tells people.
    pub judgements: Vec<Judgement>,
}

/// What the paths of a video appliance are transformed by: their packets' times are measured
/// (Scout §4.2), and, with `integrated_layers`, checksums are verified while the data are first read
/// (§4.1).
pub fn rules(integrated_layers: bool) -> Vec<Box<dyn Transformation>> {
    let mut rules: Vec<Box<dyn Transformation>> = vec![Box::new(Measure::default())];
    if integrated_layers {
        rules.push(Box::new(IntegratedLayers));
    }
    rules
}

impl Player {
    /// A player without streams.
    pub fn new(options: PlayerOptions) -> Self {
        Self {
            options,
            budget: Budget::new(options.share, options.memory),
            streams: BTreeMap::new(),
            stopped: Vec::new(),
            judgements: Vec::new(),
            tended: silk_instant::Instant::ZERO,
        }
    }

    /// Begins to play a stream, if it fits.
    ///
    /// # Errors
    /// [`Refusal`]; nothing is left of the stream.
    pub fn begin(&mut self, appliance: &mut Appliance, order: &Order) -> Result<Begun, Refusal> {
        if self.streams.values().any(|stream| stream.order.name == order.name) {
            return Err(Refusal::NameTaken);
        }
        let terms = self.consider(appliance, order)?;
        let wish = match terms.offer {
            Offer::Every(every) => Wish { every, ..order.wish },
            Offer::WithoutB => Wish { without_b: true, ..order.wish },
            Offer::Slower(rate) => Wish { playing: Playing::At(rate), ..order.wish },
            _ => order.wish,
        };
        let trial = order.told.is_none().then(Trial::default);
        // On trial it may have what nobody else was promised.
        let memory = if trial.is_some() { self.budget.free_memory() } else { terms.memory };
        let path = self.create(appliance, order, wish.add_to(Attrs::new().with(Attr::Memory(memory))))?;
        self.budget.promise(terms.share, terms.memory);
        let order = Order { wish, ..order.clone() };
        let (at, granted) = (order.rate(), order.told.map(|told| (told.size, order.wish.coding)));
        self.streams
            .insert(path, Stream { order, terms, trial, granted, at, too_fast: None, refused: false });
        Ok(Begun { path, terms })
    }

    /// What the stream can have.
    fn consider(&self, appliance: &mut Appliance, order: &Order) -> Result<Terms, Refusal> {
        let Some(told) = order.told else {
            let full = order.realtime && self.budget.free_share() <= 0.0;
            let on_trial = Terms { offer: Offer::Whole, share: 0.0, memory: 0 };
            return if full { Err(Refusal::Offered(Offer::NoTime)) } else { Ok(on_trial) };
        };
        let mpeg = appliance.paths_mut().module_mut::<Mpeg>().ok_or(Refusal::NoModule("mpeg"))?;
        let demand = order.demand(&told, mpeg.need(&order.wish, told.size));
        // What has no deadlines has no share of the processor either.
        let model = if order.realtime { mpeg.model } else { Model::default() };
        let offer = self.budget.consider(&demand, &model);
        if offer != Offer::Whole && !(offer.is_less() && order.accept_less) {
            return Err(Refusal::Offered(offer));
        }
        Ok(Terms { offer, share: demand.share(offer, &model).unwrap_or(0.0), memory: demand.memory })
    }

    fn create(&self, appliance: &mut Appliance, order: &Order, attrs: Attrs) -> Result<PathId, Refusal> {
        let carrier = match order.carrier {
            Carrier::Mflow => "mflow",
            Carrier::Rtp => "rtp",
        };
        let find = |kind: &'static str| -> Result<ModuleId, Refusal> {
            appliance.paths().graph().modules().of_kind(kind).ok_or(Refusal::NoModule(kind))
        };
        let route = [find("display")?, find("mpeg")?, find(carrier)?, find("udp")?];
        let mut attrs = attrs.with(Attr::Local(order.local));
        attrs = order.remote.map_or(attrs, |remote| attrs.with(Attr::Remote(remote)));
        attrs = Route::new(&route).map_or(attrs, |route| attrs.with(Attr::PathName(route)));
        attrs = attrs.with(Attr::InputQueue(order.input_queue));
        let class_memory = self.budget.memory.saturating_add(STANDING);
        appliance.paths_mut().classes.set_limits(0, Limits { class_memory, ..Limits::NONE });
        // Without deadlines a path comes after all that have one.
        let wakeup = if order.realtime { self.options.rule.wakeup() } else { in_background };
        appliance.create(route[0], attrs, silk_sched::Terms::default(), Some(wakeup)).map_err(Refusal::from)
    }

    /// Ends a stream. Its last figures, if there was one.
    pub fn end(&mut self, appliance: &mut Appliance, path: PathId) -> Option<Figures> {
        let stream = self.streams.remove(&path)?;
        self.budget.free(stream.terms.share, stream.terms.memory);
        let known = appliance.paths().path(path);
        let figures = known.and_then(|path| Figures::of(&stream, path, appliance.tables()));
        appliance.destroy(path);
        figures
    }

    /// Plays a stream at another rate. Whether there is one.
    pub fn set_rate(&mut self, appliance: &mut Appliance, path: PathId, rate: Rate) -> bool {
        let now = appliance.now();
        let display = appliance.paths_mut().path_mut(path).and_then(|path| path.stage_mut::<DisplayStage>());
        let Some(display) = display else { return false };
        display.output.set_rate(rate, now);
        appliance.with(|paths, now, port| paths.bell(path, now, port, Bell::Read));
        true
    }

    /// As [`Self::set_rate`], where that fits: what the stream was promised of the processor changes with its
    /// rate.
    ///
    /// # Errors
    /// It does not fit; this would, and nothing has changed.
    pub fn change_rate(
        &mut self,
        appliance: &mut Appliance,
        path: PathId,
        rate: Rate,
    ) -> Result<bool, Offer> {
        if let Some(stream) = self.streams.get_mut(&path) {
            stream.terms.share = self.budget.change(stream.terms.share, stream.at, rate)?;
            stream.at = rate;
        }
        Ok(self.set_rate(appliance, path, rate))
    }

    /// Shows only each `every`-th picture of a stream. Whether there is one.
    pub fn set_every(&mut self, appliance: &mut Appliance, path: PathId, every: u32) -> bool {
        let path = appliance.paths_mut().path_mut(path).and_then(|path| path.stage_mut::<DisplayStage>());
        path.map(|display| display.output.set_every(every)).is_some()
    }

    /// Shows no B pictures of a stream, or shows them again. Whether there is one.
    pub fn set_without_b(&mut self, appliance: &mut Appliance, path: PathId, without: bool) -> bool {
        let path = appliance.paths_mut().path_mut(path).and_then(|path| path.stage_mut::<DisplayStage>());
        path.map(|display| display.output.set_without_b(without)).is_some()
    }

    /// The path of the stream called `name`.
    pub fn find(&self, name: &str) -> Option<PathId> {
        self.streams.iter().find(|(_, stream)| stream.order.name == name).map(|(path, _)| *path)
    }

    /// The streams and their names.
    pub fn streams(&self) -> impl Iterator<Item = (PathId, &str)> {
        self.streams.iter().map(|(path, stream)| (*path, stream.order.name.as_str()))
    }

    /// What was promised of the processor and of memory.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// What is known of a stream.
    pub fn figures(&self, appliance: &Appliance, path: PathId) -> Option<Figures> {
        Figures::of(self.streams.get(&path)?, appliance.paths().path(path)?, appliance.tables())
    }

    /// The streams that are over: their sources have ended them and all was shown, or they were let in on
    /// trial and do not fit.
    pub fn over(&self, appliance: &mut Appliance) -> Vec<PathId> {
        let ours = |(path, event): &(PathId, Event)| {
            (*event == Event::Closed && self.streams.contains_key(path)).then_some(*path)
        };
        let mut over: Vec<PathId> = appliance.events.iter().filter_map(ours).collect();
        appliance.events.clear();
        over.extend(self.streams.iter().filter(|(_, stream)| stream.refused).map(|(path, _)| *path));
        over
    }
}

/// A stream without deadlines.
fn in_background(path: &silk_path::Path, now: silk_instant::Instant) -> silk_path::Urgency {
    silk_path::Urgency { deadline: None, ..deadline::by_output(path, now) }
}
