//! Admission of streams (Scout §4.4).

use crate::theatre::{Theatre, order, told};
use silk_media::{Offer, Playing, Rate, Wish};
use silk_player::{Order, Player, PlayerOptions, Refusal, Told};
use silk_wire::mflow::Coding;
use std::time::Duration;

/// A picture's: at this rate 10 % of the processor.
const COST: Duration = Duration::from_millis(4);

#[test]
fn what_is_told_is_admitted_by_what_the_streams_before_it_have_shown() {
    let mut theatre = Theatre::new(0.25);
    let first = theatre.begin(&order(5000, Some(told()), false)).unwrap();
    theatre.play(&[5000], 0..100, COST);
    theatre.player.end(&mut theatre.appliance, first);
    let second = theatre.begin(&order(5001, Some(told()), false)).unwrap();
    let promised = theatre.player.budget().share_used;
    assert!((0.085..0.115).contains(&promised), "{promised}");
    theatre.begin(&order(5002, Some(told()), false)).unwrap();
    // The third does not fit whole.
    let Err(Refusal::Offered(offer)) = theatre.begin(&order(5003, Some(told()), false)) else {
        panic!("let in")
    };
    assert!(offer.is_less(), "{offer:?}");
    let third = theatre.player.begin(&mut theatre.appliance, &order(5003, Some(told()), true)).unwrap();
    assert_eq!(third.terms.offer, offer);
    assert!(theatre.player.budget().share_used <= 0.25);
    // Each plays at what it was promised, with the memory it was promised.
    theatre.play(&[5001, 5002, 5003], 0..250, COST);
    for path in [second, third.path] {
        let figures = theatre.player.figures(&theatre.appliance, path).unwrap();
        assert_eq!((figures.shown.missed, figures.decoded.no_memory), (0, 0));
        assert_eq!(figures.account.memory_limit(), figures.promised.memory);
        let (used, promised) = (figures.used.unwrap(), figures.promised.share);
        assert!((0.8..1.25).contains(&(used / promised)), "{used} of {promised}");
    }
}

#[test]
fn of_streams_on_trial_the_one_that_is_too_much_goes_or_plays_with_less() {
    for accepts in [false, true] {
        let mut theatre = Theatre::new(0.25);
        let ports = [5000, 5001, 5002];
        let paths = ports.map(|port| {
            let path = theatre.begin(&order(port, None, accepts)).unwrap();
            theatre.play(&ports[..=usize::from(port - 5000)], 0..1, COST);
            path
        });
        theatre.play(&ports, 1..300, COST);
        let judgements = std::mem::take(&mut theatre.player.judgements);
        let [judgement] = &judgements[..] else { panic!("{judgements:?}") };
        assert_eq!((judgement.accepted, judgement.offer.is_less()), (accepts, true), "{judgement}");
        let judged = paths[ports.iter().position(|port| judgement.name == format!("port{port}")).unwrap()];
        assert_eq!(theatre.player.over(&mut theatre.appliance), if accepts { vec![] } else { vec![judged] });
        if accepts {
            let options = theatre.display(judged).output.options();
            assert!(options.every > 1 || options.without_b, "{options:?}");
            assert!(theatre.player.budget().share_used <= 0.25);
        }
        for path in paths.into_iter().filter(|path| *path != judged) {
            let figures = theatre.player.figures(&theatre.appliance, path).unwrap();
            assert_eq!((figures.on_trial, figures.promised.offer), (false, Offer::Whole));
            let (used, promised) = (figures.used.unwrap(), figures.promised.share);
            assert!((0.9..1.1).contains(&(used / promised)), "{used} of {promised}");
            assert_eq!(figures.account.memory_limit(), figures.promised.memory);
        }
    }
}

/// A player that knows what pictures cost.
fn taught(share: f64) -> Theatre {
    let mut theatre = Theatre::new(share);
    let first = theatre.begin(&order(5000, Some(told()), false)).unwrap();
    theatre.play(&[5000], 0..100, COST);
    theatre.player.end(&mut theatre.appliance, first);
    theatre
}

/// One that is shown at the film's own rate.
fn own(accept_less: bool) -> Order {
    let order = order(5001, Some(told()), accept_less);
    Order { wish: Wish { playing: Playing::Own, ..order.wish }, ..order }
}

#[test]
fn what_a_film_is_promised_follows_the_rate_that_it_tells() {
    // As many pictures as were shown while it was taught take 10 %.
    for (own_rate, expected) in [(0, 0.12), (3, 0.1), (6, 0.2)] {
        let mut theatre = taught(0.9);
        let path = theatre.begin(&own(false)).unwrap();
        theatre.own_rate = own_rate;
        theatre.play(&[5001], 0..5, COST);
        let promised = theatre.player.figures(&theatre.appliance, path).unwrap().promised.share;
        assert!((0.9..1.1).contains(&(promised / expected)), "{promised} for {expected}");
        assert_eq!(theatre.player.budget().share_used, promised);
    }
}

#[test]
fn a_film_whose_own_rate_is_too_much_goes_or_plays_with_less() {
    for accepts in [false, true] {
        let mut theatre = taught(0.15);
        let path = theatre.begin(&own(accepts)).unwrap();
        theatre.own_rate = 6;
        theatre.play(&[5001], 0..50, COST);
        assert_eq!(theatre.player.judgements, [], "it may tell better");
        theatre.play(&[5001], 50..100, COST);
        let judgements = std::mem::take(&mut theatre.player.judgements);
        let [judgement] = &judgements[..] else { panic!("{judgements:?}") };
        assert!(judgement.needs > 0.18 && (judgement.free - 0.15).abs() < 1e-9, "{judgement}");
        assert_eq!((judgement.accepted, judgement.offer.is_less()), (accepts, true), "{judgement}");
        assert_eq!(theatre.player.over(&mut theatre.appliance), if accepts { vec![] } else { vec![path] });
        if accepts {
            let options = theatre.display(path).output.options();
            assert!(options.every > 1 || options.without_b, "{options:?}");
            let used = theatre.player.budget().share_used;
            assert!(used > 0.0 && used <= 0.15 + 1e-9, "{used}");
            // A command changes it from there.
            let slower = Rate::from_millis(25_000).unwrap();
            assert_eq!(theatre.player.change_rate(&mut theatre.appliance, path, slower), Ok(true));
            assert!((theatre.player.budget().share_used - used / 2.0).abs() < 1e-9);
        }
    }
}

#[test]
fn a_rate_that_was_a_guess_ends_no_film() {
    let mut theatre = taught(0.15);
    let path = theatre.begin(&own(false)).unwrap();
    theatre.own_rate = 6;
    theatre.play(&[5001], 0..10, COST);
    theatre.own_rate = 3;
    theatre.play(&[5001], 10..110, COST);
    assert_eq!((theatre.player.judgements.len(), theatre.player.over(&mut theatre.appliance)), (0, vec![]));
    let promised = theatre.player.figures(&theatre.appliance, path).unwrap().promised.share;
    assert!((0.09..0.11).contains(&promised), "{promised}");
}

#[test]
fn what_is_coded_otherwise_than_was_thought_has_the_memory_that_takes() {
    let mut theatre = Theatre::new(0.9);
    let path = theatre.begin(&order(5000, Some(told()), false)).unwrap();
    let promised =
        |theatre: &Theatre| theatre.player.figures(&theatre.appliance, path).unwrap().promised.memory;
    let before = promised(&theatre);
    theatre.coding = Coding::H264;
    theatre.play(&[5000], 0..5, COST);
    let figures = theatre.player.figures(&theatre.appliance, path).unwrap();
    assert!(promised(&theatre) > before + (1 << 20));
    assert_eq!(theatre.player.budget().memory_used, promised(&theatre));
    assert_eq!((figures.account.memory_limit(), figures.decoded.no_memory), (promised(&theatre), 0));
}

#[test]
fn on_trial_it_is_offered_less_than_what_it_shows_by_then() {
    let mut theatre = Theatre::new(0.05);
    let path = theatre.begin(&order(5000, None, true)).unwrap();
    assert!(theatre.player.set_every(&mut theatre.appliance, path, 2));
    theatre.play(&[5000], 0..300, COST);
    let [judgement] = &theatre.player.judgements[..] else { panic!("{:?}", theatre.player.judgements) };
    assert!(judgement.needs > 0.055 && judgement.needs < 0.08, "of fifteen it decodes ten: {judgement}");
    assert!(judgement.accepted, "{judgement}");
    assert!(!matches!(judgement.offer, Offer::Every(..=2)), "{judgement}");
}

#[test]
fn a_stream_that_told_too_little_gets_no_more_and_the_others_play_on() {
    let mut theatre = Theatre::new(0.9);
    let small = Told { size: (16, 16), ..told() };
    let liar = theatre.begin(&order(5000, Some(small), false)).unwrap();
    let honest = theatre.begin(&order(5001, Some(told()), false)).unwrap();
    theatre.play(&[5000, 5001], 0..100, COST);
    let figures = |path| theatre.player.figures(&theatre.appliance, path).unwrap();
    let (liar, honest) = (figures(liar), figures(honest));
    assert!(liar.account.memory_limit() == liar.promised.memory && liar.promised.memory < 1 << 20);
    assert!(liar.account.memory_peak <= liar.promised.memory);
    assert_eq!((honest.shown.missed, honest.shown.lost, honest.decoded.no_memory), (0, 0, 0));
    assert!(honest.shown.shown > 80, "{:?}", honest.shown);
}

#[test]
fn without_memory_nothing_is_made() {
    let mut theatre = Theatre::new(0.9);
    let vast = Order { wish: Wish { queue: 4096, ..Wish::default() }, ..order(5000, None, false) };
    let large = Told { size: (1920, 1088), ..told() };
    let refusal = theatre.begin(&Order { told: Some(large), ..vast.clone() }).unwrap_err();
    assert_eq!(refusal.to_string(), "there is not enough memory for its pictures");
    // One that does not tell is found out by its first picture.
    theatre.player = Player::new(PlayerOptions { memory: 1 << 20, ..PlayerOptions::default() });
    let path = theatre.begin(&vast).unwrap();
    theatre.play(&[5000], 0..10, COST);
    assert_eq!(theatre.player.over(&mut theatre.appliance), [path]);
    assert_eq!(theatre.player.judgements[0].offer, Offer::NoMemory);
}
