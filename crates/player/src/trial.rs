//! Streams of which nothing was told are let in on trial (Scout §4.4): their first pictures tell how much
//! memory they need, and what they use of the processor within a few seconds is what they are
//! promised from then on. One that does not fit then plays with less where its order accepts that, and
//! is ended otherwise. Those that were promised something before it keep that.

use crate::player::Player;
use crate::stream::{Judgement, Order, Trial};
use silk_appliance::Appliance;
use silk_media::{Demand, DisplayStage, Model, Mpeg, MpegStage, Offer, Rate};
use silk_path::PathId;

/// So often a stream must be found not to fit, a second apart: something else may have held it up once.
const STRIKES: u32 = 3;
/// The fewest pictures from one look to the next.
const PICTURES: u64 = 30;

impl Player {
    /// Looks at the streams of which nothing was told.
    pub(crate) fn try_streams(&mut self, appliance: &mut Appliance) {
        let untold = self.streams.iter().filter(|(_, stream)| stream.order.told.is_none() && !stream.refused);
        let untold: Vec<PathId> = untold.map(|(path, _)| *path).collect();
        for path in untold {
            self.try_memory(appliance, path);
            self.try_processor(appliance, path);
        }
    }

    /// When its first picture has told its size, or a later one another, a stream of which nothing was told is
    /// promised the memory it needs, and gets no more.
    fn try_memory(&mut self, appliance: &mut Appliance, id: PathId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let mpeg = appliance.paths().path(id).and_then(|path| path.stage::<MpegStage>());
        let Some((size, coding)) = mpeg.and_then(|mpeg| Some((mpeg.size()?, mpeg.coding()))) else { return };
        if stream.size.replace(size) == Some(size) {
            return;
        }
        let Some(module) = appliance.paths_mut().module_mut::<Mpeg>() else { return };
        let memory = stream.order.wish.memory(module.need(coding, size));
        self.budget.free(0.0, stream.terms.memory);
        stream.terms.memory = 0;
        if memory > self.budget.free_memory() {
            return self.refuse(id, (0.0, Offer::NoMemory));
        }
        self.budget.promise(0.0, memory);
        stream.terms.memory = memory;
        if let Some(path) = appliance.paths_mut().path_mut(id) {
            path.state.account.set_memory_limit(memory);
        }
    }

    /// Once it has played for two seconds, it is promised what it uses of the processor.
    fn try_processor(&mut self, appliance: &mut Appliance, id: PathId) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.order.realtime) else { return };
        let Some(trial) = stream.trial.as_mut() else { return };
        let Some(demand) = demand(appliance, id, &stream.order, trial) else { return };
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
        let needs = demand.measured.unwrap_or(0.0);
        if !(offer.is_less() && stream.order.accept_less) {
            return self.refuse(id, (needs, offer));
        }
        stream.trial = None;
        (stream.terms.share, stream.terms.offer) = (share, offer);
        self.note(id, (needs, offer), true);
        self.budget.promise(share, 0);
        self.apply(appliance, id, offer);
    }

    /// The stream is to end: it does not fit.
    fn refuse(&mut self, id: PathId, why: (f64, Offer)) {
        self.note(id, why, false);
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.refused = true;
        }
    }

    fn note(&mut self, id: PathId, (needs, offer): (f64, Offer), accepted: bool) {
        let Some(stream) = self.streams.get(&id) else { return };
        let (name, free) = (stream.order.name.clone(), self.budget.free_share());
        self.judgements.push(Judgement { name, needs, free, offer, accepted });
    }

    fn apply(&mut self, appliance: &mut Appliance, id: PathId, offer: Offer) {
        match offer {
            Offer::Every(every) => _ = self.set_every(appliance, id, every),
            Offer::WithoutB => _ = self.set_without_b(appliance, id, true),
            Offer::Slower(rate) => _ = self.set_rate(appliance, id, rate),
            Offer::Whole | Offer::NoMemory | Offer::NoTime => {}
        }
    }
}

/// What a stream has shown that it needs, where it has played for another second.
fn demand(appliance: &Appliance, id: PathId, order: &Order, trial: &mut Trial) -> Option<Demand> {
    let path = appliance.paths().path(id)?;
    let (mpeg, display) = (path.stage::<MpegStage>()?, path.stage::<DisplayStage>()?);
    let (rate, span) = (display.output.rate()?, display.output.span());
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
        ..order.demand_at(rate)
    })
}

fn second(rate: Rate) -> u64 {
    u64::from(rate.millis() / 1000).max(PICTURES)
}
