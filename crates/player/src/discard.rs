//! Early discard (Scout §4.4): packets of pictures that will not be shown, because only each n-th is or
//! because they are late already, are dropped where they are classified: with XDP before anything is
//! copied. Here the filters of the streams are kept up.

use crate::player::Player;
use crate::stream::Carrier;
use silk_appliance::Appliance;
use silk_media::{B_PICTURE, Coding, DisplayStage, Fall, I_PICTURE, MpegStage};
use silk_path::classify::{Filter, Found, Framed};
use std::time::Duration;

/// How often the filters are looked at: the time of the earliest picture moves on with each.
const INTERVAL: Duration = Duration::from_millis(5);

impl Player {
    /// Brings the filters up to date, and looks at what is on trial, now and then. Call it whenever the appliance has worked.
    pub fn tend(&mut self, appliance: &mut Appliance) {
        let now = appliance.now();
        if now.since(self.tended) < INTERVAL {
            return;
        }
        self.tended = now;
        self.try_streams(appliance);
        for (id, stream) in &self.streams {
            let Some(path) = appliance.paths().path(*id) else { continue };
            let stages = (path.stage::<MpegStage>(), path.stage::<DisplayStage>());
            let (Some(mpeg), Some(display)) = stages else { continue };
            let earliest = display.output.earliest(now);
            let without_b = display.output.options().without_b;
            let by_number = display.output.counts_by_number();
            let filter = match stream.order.carrier {
                // There is nothing in its packets that says which pictures others need.
                Carrier::Rtp if mpeg.coding() == Coding::H264 => Filter::none(Framed::RtpVideo),
                // What the sender stamped is not when its pictures are shown.
                _ if !mpeg.stamps_are_senders() => {
                    filter(stream.order.carrier, mpeg.fall(), (without_b, by_number), None)
                }
                _ => filter(stream.order.carrier, mpeg.fall(), (without_b, by_number), earliest),
            };
            set(appliance, Found { domain: 0, index: id.index }, &filter);
        }
    }
}

/// The filter of a stream: whether no B picture is shown, and whether those that are, of which each n-th is, are told by their numbers.
fn filter(
    carrier: Carrier,
    fall: Fall,
    (without_b, by_number): (bool, bool),
    earliest: Option<u32>,
) -> Filter {
    let no_b = 1 << B_PICTURE;
    match carrier {
        Carrier::Mflow => {
            let alone = fall.each_stands_alone();
            let only_shown = by_number && (alone || fall.only_shown_are_needed());
            let every = if only_shown { fall.every() as u16 } else { 1 };
            let skips = if alone { no_b | 1 << I_PICTURE } else { no_b };
            let types = if without_b { no_b } else { 0 };
            Filter { types, every, skips, not_before: earliest, ..Filter::none(Framed::Mflow) }
        }
        Carrier::Rtp => {
            let types = if without_b || fall.no_b_is_shown() { no_b } else { 0 };
            Filter { types, not_before: earliest, ..Filter::none(Framed::RtpVideo) }
        }
    }
}

/// Where only the time has moved on, one store; nothing where all is wanted.
fn set(appliance: &Appliance, path: Found, filter: &Filter) {
    let tables = appliance.tables();
    match (tables.filter(path), filter.not_before) {
        (Some(known), Some(least)) if Filter { not_before: filter.not_before, ..known } == *filter => {
            tables.discard_before(path, least);
        }
        (None, None) if *filter == Filter::none(filter.framed) => {}
        // Another path has the entry: then what is not wanted is dropped by MPEG.
        _ => _ = tables.discard(path, filter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_third_of_the_usual_groups_drops_the_rest() {
        let mut fall = Fall::default();
        for n in 0..30 {
            fall.note(if n % 3 == 0 { 2 } else { B_PICTURE }, n % 3 == 0, 3);
        }
        let mflow = filter(Carrier::Mflow, fall, (false, true), None);
        assert_eq!((mflow.every, mflow.types), (3, 0));
        // Where those that are shown have other numbers, nothing says which they are.
        assert_eq!(filter(Carrier::Mflow, fall, (false, false), None).every, 1);
        let rtp = filter(Carrier::Rtp, fall, (false, true), Some(9));
        assert_eq!((rtp.every, rtp.types, rtp.not_before), (1, 8, Some(9)));
        assert_eq!(
            filter(Carrier::Rtp, Fall::default(), (false, true), None),
            Filter::none(Framed::RtpVideo)
        );
    }

    #[test]
    fn without_b_pictures_they_are_dropped_whatever_carries_them() {
        let filters =
            [Carrier::Mflow, Carrier::Rtp].map(|over| filter(over, Fall::default(), (true, true), None));
        assert_eq!(filters.map(|filter| (filter.types, filter.every)), [(8, 1), (8, 1)]);
    }

    #[test]
    fn of_pictures_that_stand_alone_those_that_are_not_shown_are_dropped() {
        let mut fall = Fall::default();
        (0..9).for_each(|n| fall.note(I_PICTURE, n % 3 == 0, 3));
        let filter = filter(Carrier::Mflow, fall, (false, true), None);
        assert_eq!((filter.every, filter.skips), (3, 0b1010));
    }
}
