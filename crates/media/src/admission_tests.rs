use super::*;
extern crate std;
use proptest::prelude::*;

/// Each picture costs 50 µs, a macroblock 0.2 µs, a bit 2 ns: as the model expects.
fn model() -> Model {
    let mut model = Model::default();
    for n in 0..600u32 {
        let macroblocks = [80.0, 330.0, 1350.0][n as usize % 3];
        let bits = macroblocks * f64::from(50 + n * 71 % 400);
        model.learn(Sample { macroblocks, bits }, 50_000.0 + 200.0 * macroblocks + 2.0 * bits);
    }
    model
}

/// A group of fifteen with two B pictures between the others: 330 macroblocks, 93 400 bits on average,
/// so 0.3 ms a picture, 0.9 % of the processor at 30 a second.
fn demand() -> Demand {
    let kind = |count, bits| Kind { count, bits };
    let kinds = [kind(1.0, 200_000.0), kind(4.0, 150_000.0), kind(10.0, 60_000.0)];
    Demand {
        rate: Rate::from_millis(30_000).unwrap(),
        pictures: Pictures { macroblocks: 330.0, kinds },
        showing: Showing::ALL,
        waits: true,
        measured: None,
        memory: 1 << 20,
    }
}

/// What is offered where only this part of what is asked for is free.
fn offered(demand: &Demand, part: f64) -> Offer {
    let model = model();
    let whole = demand.share(Offer::Whole, &model).unwrap();
    let budget = Budget::new(whole * part, 1 << 30);
    let offer = budget.consider(demand, &model);
    if offer.is_less() {
        assert!(demand.share(offer, &model).unwrap() <= budget.share * 1.0001, "{offer:?} does not fit");
    }
    offer
}

#[test]
fn what_fits_is_let_in_whole_until_it_does_not() {
    let (model, demand) = (model(), demand());
    let mut budget = Budget::new(0.065, 1 << 30);
    let mut admitted = 0;
    while budget.consider(&demand, &model) == Offer::Whole {
        budget.promise(demand.share(Offer::Whole, &model).unwrap(), demand.memory);
        admitted += 1;
    }
    assert_eq!(admitted, 7, "of 0.9 % each");
    budget.free(0.05, 0);
    assert_eq!(budget.consider(&demand, &model), Offer::Whole);
}

#[test]
fn what_keeps_the_pace_and_shows_most_is_offered_first() {
    let demand = demand();
    assert_eq!(offered(&demand, 1.01), Offer::Whole);
    assert_eq!(offered(&demand, 0.85), Offer::Every(2));
    assert_eq!(offered(&demand, 0.6), Offer::WithoutB);
    let Offer::Slower(rate) = offered(&demand, 0.2) else { panic!("not slower") };
    assert_eq!(rate.millis() / 10, 600);
    assert_eq!(offered(&demand, 0.01), Offer::NoTime);
}

#[test]
fn where_each_picture_stands_alone_every_third_costs_a_third() {
    let kinds = [Kind { count: 9.0, bits: 150_000.0 }, Kind::default(), Kind::default()];
    let alone = Demand { pictures: Pictures { macroblocks: 330.0, kinds }, ..demand() };
    assert_eq!(offered(&alone, 0.34), Offer::Every(3));
    assert_eq!(offered(&alone, 0.032), Offer::NoTime, "one a second is the least");
}

#[test]
fn where_types_are_not_known_only_a_lower_rate_saves_anything() {
    let alike = Demand { pictures: Pictures::alike(330.0, 93_400.0), ..demand() };
    assert!(matches!(offered(&alike, 0.9), Offer::Slower(_)));
    let live = Demand { waits: false, ..alike };
    assert_eq!(offered(&live, 0.9), Offer::NoTime);
}

#[test]
fn what_is_shown_already_of_it_is_what_is_paid_for() {
    let (model, all) = (model(), demand());
    let share = |showing| Demand { showing, ..all }.share(Offer::Whole, &model).unwrap();
    let references = share(Showing { every: 1, without_b: true });
    assert!((share(Showing { every: 3, without_b: false }) / references - 1.0).abs() < 1e-9);
    assert!((share(Showing { every: 6, without_b: false }) / references - 1.0).abs() < 1e-9);
    assert!(share(Showing { every: 2, without_b: false }) > references * 1.2);
    let third = Demand { showing: Showing { every: 1, without_b: true }, ..all };
    assert!(matches!(offered(&third, 0.5), Offer::Slower(_)));
}

#[test]
fn what_was_measured_counts_instead_of_the_model() {
    let demand = Demand { measured: Some(0.4), ..demand() };
    assert_eq!(demand.share(Offer::Whole, &model()), Some(0.4));
    assert_eq!(demand.share(Offer::Whole, &Model::default()), Some(0.4));
    let half = Offer::Slower(Rate::from_millis(15_000).unwrap());
    assert!((demand.share(half, &model()).unwrap() - 0.2).abs() < 1e-9);
}

#[test]
fn another_rate_has_another_share_as_long_as_that_fits() {
    let rate = |millis| Rate::from_millis(millis).unwrap();
    let mut budget = Budget::new(0.9, 0);
    budget.promise(0.2, 0);
    budget.promise(0.5, 0);
    assert_eq!(budget.change(0.2, rate(10_000), rate(30_000)), Err(Offer::Slower(rate(20_000))));
    assert_eq!(budget.change(0.2, rate(10_000), rate(15_000)), Ok(0.2 * 15_000.0 / 10_000.0));
    assert_eq!(budget.change(0.0, rate(10_000), rate(30_000)), Ok(0.0), "nothing is known of its cost");
    assert!((budget.share_used - 0.8).abs() < 1e-9);
}

#[test]
fn memory_is_granted_first() {
    let mut budget = Budget::new(0.9, 3 << 20);
    budget.promise(0.0, 5 << 19);
    assert_eq!(budget.consider(&demand(), &model()), Offer::NoMemory);
}

#[test]
fn the_first_stream_teaches() {
    assert_eq!(Budget::new(0.0, 1 << 30).consider(&demand(), &Model::default()), Offer::Whole);
}

#[test]
fn types_are_told_apart_as_pictures_are_seen() {
    let mut pictures = Pictures::default();
    for (kind, bits) in [(1, 10.0), (2, 4.0), (3, 1.0), (3, 3.0), (0, 8.0), (9, 0.0)] {
        pictures.note(kind, bits);
    }
    let kind = |count, bits| Kind { count, bits };
    assert_eq!(pictures.kinds, [kind(1.0, 10.0), kind(3.0, 4.0), kind(2.0, 2.0)]);
}

proptest! {
    /// Whatever is asked for, what is offered fits, and is something that can be asked for.
    #[test]
    fn what_is_offered_fits(
        counts in proptest::array::uniform3(0u16..2000),
        bits in proptest::array::uniform3(any::<u32>()),
        (macroblocks, millis) in (0u32..20_000_000, 1u32..1_000_000),
        (every, without_b, waits) in (0u32..70_000, any::<bool>(), any::<bool>()),
        free in 0.0..1.0f64,
    ) {
        let kinds = core::array::from_fn(|n| Kind { count: counts[n].into(), bits: bits[n].into() });
        let demand = Demand {
            rate: Rate::from_millis(millis).unwrap(),
            pictures: Pictures { macroblocks: macroblocks.into(), kinds },
            showing: Showing { every, without_b },
            waits,
            ..demand()
        };
        let (model, budget) = (model(), Budget::new(free, 1 << 30));
        let offer = budget.consider(&demand, &model);
        let share = demand.share(offer, &model);
        if offer == Offer::Whole || offer.is_less() {
            prop_assert!(share.is_none_or(|share| (0.0..=free * 1.001).contains(&share)), "{offer:?} {share:?}");
        }
        prop_assert!(!matches!(offer, Offer::Every(n) if !(2..=MOST).contains(&n)));
    }
}
