//! Streams of which nothing was told are let in on trial (Scout §4.4): their first pictures tell how much
//! memory they need, and what they use of the processor within a few seconds is what they are
//! promised from then on. One that does not fit then plays with less where its order accepts that, and
//! is ended otherwise. Those that were promised something before it keep that. What nobody can tell beforehand, a film's own rate and how it is
//! coded, is judged of every stream once it is known.

use crate::player::Player;
use crate::stream::{Judgement, Order, Trial};
use silk_appliance::Appliance;
use silk_media::{Demand, DisplayStage, Model, Mpeg, MpegStage, Offer, Rate, Showing, Wish};
use silk_path::PathId;
use std::time::Duration;

/// So often a stream must be found not to fit, a second apart: something else may have held it up once.
const STRIKES: u32 = 3;
/// So long a rate that does not fit may be a guess, which a film's clock corrects after some pictures.
const DOUBT: Duration = Duration::from_secs(3);
/// The fewest pictures from one look to the next.
const PICTURES: u64 = 30;

/// Of the processor, what a stream needs, and what is free for it.
#[derive(Clone, Copy, Debug, Default)]
struct Needs {
    share: f64,
    free: f64,
}

impl Player {
    /// Looks at what the streams have told of themselves.
    pub(crate) fn try_streams(&mut self, appliance: &mut Appliance) {
        let streams = self.streams.iter().filter(|(_, stream)| !stream.refused);
        let streams: Vec<(PathId, bool)> =
            streams.map(|(path, stream)| (*path, stream.order.told.is_some())).collect();
        for (path, is_told) in streams {
            self.try_memory(appliance, path);
            if is_told {
                self.try_rate(appliance, path);
            } else {
                self.try_processor(appliance, path);
            }
        }
    }

    /// When its first picture has told its size, or a later one another, a stream of which nothing was told is
    /// promised the memory it needs, and gets no more. One that has told its size gets what its coding needs.
    fn try_memory(&mut self, appliance: &mut Appliance, id: PathId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(mpeg) = appliance.paths().path(id).and_then(|path| path.stage::<MpegStage>()) else {
            return;
        };
        let told = stream.order.told.map(|told| told.size);
        let (Some(size), coding) = (told.or(mpeg.size()), mpeg.coding()) else { return };
        if stream.granted.replace((size, coding)) == Some((size, coding)) {
            return;
        }
        let Some(module) = appliance.paths_mut().module_mut::<Mpeg>() else { return };
        let memory = stream.order.wish.memory(module.need(&Wish { coding, ..stream.order.wish }, size));
        self.budget.free(0.0, stream.terms.memory);
        stream.terms.memory = 0;
        if memory > self.budget.free_memory() {
            return self.refuse(id, Needs::default(), Offer::NoMemory);
        }
        self.budget.promise(0.0, memory);
        stream.terms.memory = memory;
        if let Some(path) = appliance.paths_mut().path_mut(id) {
            path.state.account.set_memory_limit(memory);
        }
    }

    /// Where its film has told another rate than that which it was judged by, a stream is promised its share for that. Where there is
    /// too little, that may have been a guess: it has a while to tell better.
    fn try_rate(&mut self, appliance: &mut Appliance, id: PathId) {
        let now = appliance.now();
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let display = appliance.paths().path(id).and_then(|path| path.stage::<DisplayStage>());
        let Some((rate, options)) =
            display.and_then(|display| Some((display.output.rate()?, display.output.options())))
        else {
            return;
        };
        let (told, before) = (u64::from(rate.millis()), u64::from(stream.at.millis()));
        if told.abs_diff(before) * 100 <= before {
            stream.too_fast = None;
            return;
        }
        if let Ok(share) = self.budget.change(stream.terms.share, stream.at, rate) {
            (stream.terms.share, stream.at, stream.too_fast) = (share, rate, None);
        } else if now.since(*stream.too_fast.get_or_insert(now)) > DOUBT {
            let showing = Showing { every: options.every, without_b: options.without_b };
            self.judge_rate(appliance, id, (rate, showing));
        }
    }

    /// The stream is offered what fits at this rate.
    fn judge_rate(&mut self, appliance: &mut Appliance, id: PathId, (rate, showing): (Rate, Showing)) {
        let Some((stream, told)) = self.streams.get_mut(&id).and_then(|stream| {
            let told = stream.order.told?;
            Some((stream, told))
        }) else {
            return;
        };
        let model = appliance.paths_mut().module_mut::<Mpeg>().map_or_else(Model::default, |mpeg| mpeg.model);
        // Its memory has been promised already.
        let demand = Demand { pictures: told.pictures, ..stream.order.demand_at(rate, showing) };
        let before = stream.terms.share;
        self.budget.free(before, 0);
        let scaled = before * f64::from(rate.millis()) / f64::from(stream.at.millis());
        let needs = Needs { share: scaled, free: self.budget.free_share() };
        let offer = self.budget.consider(&demand, &model);
        if offer != Offer::Whole && !(offer.is_less() && stream.order.accept_less) {
            self.budget.promise(before, 0);
            return self.refuse(id, needs, offer);
        }
        let share = demand.share(offer, &model).unwrap_or(scaled);
        self.budget.promise(share, 0);
        (stream.terms.share, stream.at, stream.too_fast) = (share, rate, None);
        if offer != Offer::Whole {
            stream.terms.offer = offer;
            self.note(id, needs, offer, true);
            self.apply(appliance, id, offer);
        }
    }

    /// Once it has played for two seconds, it is promised what it uses of the processor.
    fn try_processor(&mut self, appliance: &mut Appliance, id: PathId) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.order.realtime) else { return };
        let Some(trial) = stream.trial.as_mut() else { return };
        let Some(demand) = demand(appliance, id, &stream.order, trial) else { return };
        stream.at = demand.rate;
        let model = appliance.paths_mut().module_mut::<Mpeg>().map_or_else(Model::default, |mpeg| mpeg.model);
        let offer = self.budget.consider(&demand, &model);
        let share = demand.share(offer, &model).unwrap_or(0.0);
        if offer == Offer::Whole {
            stream.terms.share = share;
            stream.trial = None;
            return self.budget.promise(share, 0);
        }
        trial.strikes += 1;
        if trial.strikes < STRIKES {
            return;
        }
        let needs = Needs { share: demand.measured.unwrap_or(0.0), free: self.budget.free_share() };
        if !(offer.is_less() && stream.order.accept_less) {
            return self.refuse(id, needs, offer);
        }
        stream.trial = None;
        (stream.terms.share, stream.terms.offer) = (share, offer);
        self.note(id, needs, offer, true);
        self.budget.promise(share, 0);
        self.apply(appliance, id, offer);
    }

    /// The stream is to end: it does not fit.
    fn refuse(&mut self, id: PathId, needs: Needs, offer: Offer) {
        self.note(id, needs, offer, false);
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.refused = true;
        }
    }

    fn note(&mut self, id: PathId, Needs { share: needs, free }: Needs, offer: Offer, accepted: bool) {
        let Some(stream) = self.streams.get(&id) else { return };
        self.judgements.push(Judgement { name: stream.order.name.clone(), needs, free, offer, accepted });
    }

    fn apply(&mut self, appliance: &mut Appliance, id: PathId, offer: Offer) {
        match offer {
            Offer::Every(every) => _ = self.set_every(appliance, id, every),
            Offer::WithoutB => _ = self.set_without_b(appliance, id, true),
            Offer::Slower(rate) => {
                self.set_rate(appliance, id, rate);
                self.streams.get_mut(&id).into_iter().for_each(|stream| stream.at = rate);
            }
            Offer::Whole | Offer::NoMemory | Offer::NoTime => {}
        }
    }
}

/// What a stream has shown that it needs, where it has played for another second.
fn demand(appliance: &Appliance, id: PathId, order: &Order, trial: &mut Trial) -> Option<Demand> {
    let path = appliance.paths().path(id)?;
    let (mpeg, display) = (path.stage::<MpegStage>()?, path.stage::<DisplayStage>()?);
    let (rate, span, options) = (display.output.rate()?, display.output.span(), display.output.options());
    let cpu = path.state.account.cpu_path;
    let before = trial.looked.map_or(0, |(span, _)| span);
    if span < before + second(rate) {
        return None;
    }
    let (since, used) = trial.looked.replace((span, cpu))?;
    let share = cpu.saturating_sub(used) as f64 * f64::from(rate.millis()) / ((span - since) as f64 * 1e12);
    Some(Demand {
        measured: Some(share),
        pictures: mpeg.seen(),
        // Its memory has been promised already.
        ..order.demand_at(rate, Showing { every: options.every, without_b: options.without_b })
    })
}

fn second(rate: Rate) -> u64 {
    u64::from(rate.millis() / 1000).max(PICTURES)
}
