use super::*;
extern crate std;
use proptest::prelude::*;

fn sample(macroblocks: f64, bits: f64) -> Sample {
    Sample { macroblocks, bits }
}

fn cost(costs: Costs, sample: Sample) -> f64 {
    costs.picture + costs.macroblock * sample.macroblocks + costs.bit * sample.bits
}

/// Pictures of three sizes, each with more and fewer bits.
fn various(pictures: u32) -> impl Iterator<Item = Sample> {
    (0..pictures).map(|n| {
        let macroblocks = [80.0, 330.0, 1350.0][n as usize % 3];
        sample(macroblocks, macroblocks * f64::from(50 + n * 37 % 400))
    })
}

#[test]
fn pictures_of_many_sorts_predict_others_whatever_the_machine() {
    let truth = Costs { picture: 100_000.0, macroblock: 330.0, bit: 2.8 };
    let mut model = Model::default();
    various(2000).for_each(|sample| model.learn(sample, cost(truth, sample)));
    for sample in [sample(80.0, 5_000.0), sample(680.0, 50_000.0), sample(3600.0, 900_000.0)] {
        let ratio = model.predict(sample).unwrap() / cost(truth, sample);
        assert!((0.9..1.1).contains(&ratio), "{ratio} of {sample:?}");
    }
}

#[test]
fn one_stream_teaches_the_speed_of_the_machine_to_all() {
    let twice = Costs { picture: 100_000.0, macroblock: 400.0, bit: 4.0 };
    let mut model = Model::default();
    (0..200).for_each(|_| model.learn(sample(330.0, 120_000.0), cost(twice, sample(330.0, 120_000.0))));
    let small = sample(80.0, 20_000.0);
    let ratio = model.predict(small).unwrap() / cost(twice, small);
    assert!((0.99..1.01).contains(&ratio), "{ratio}");
}

#[test]
fn pictures_all_alike_predict_their_like() {
    let mut model = Model::default();
    (0..100).for_each(|_| model.learn(sample(330.0, 20_000.0), 1e6));
    let predicted = model.predict(sample(330.0, 20_000.0)).unwrap();
    assert!((predicted / 1e6 - 1.0).abs() < 0.02, "{predicted}");
}

#[test]
fn a_picture_that_was_held_up_teaches_little() {
    let mut model = Model::default();
    for n in 0..500 {
        model.learn(sample(330.0, 20_000.0), if n == 400 { 1e10 } else { 1e6 });
    }
    let predicted = model.predict(sample(330.0, 20_000.0)).unwrap();
    assert!((predicted / 1e6 - 1.0).abs() < 0.05, "{predicted}");
}

#[test]
fn nothing_is_predicted_from_little() {
    let mut model = Model::default();
    (0..FEWEST - 1).for_each(|_| model.learn(sample(330.0, 20_000.0), 1e6));
    assert_eq!(model.predict(sample(1.0, 1.0)), None);
}

#[test]
fn no_cost_is_below_zero() {
    let mut model = Model::default();
    for n in 0..200u32 {
        // Fewer bits cost more: a bit would cost less than nothing.
        model.learn(sample(330.0, f64::from(10_000 + 10_000 * n)), 1e7 - f64::from(40_000 * n));
    }
    let Costs { picture, macroblock, bit } = model.costs().unwrap();
    assert!(picture >= 0.0 && macroblock >= 0.0 && bit >= 0.0);
}

#[test]
fn the_smallest_picture_tells_what_streams_that_are_alike_do_not() {
    // Waking costs a fifth of what is usual: the processor is busy, and its caches are warm.
    let truth = Costs { picture: 10_000.0, macroblock: 200.0, bit: 2.0 };
    let alike = |n: u32| sample(330.0, f64::from(60_000 + n * 1_000 % 120_000));
    let small = sample(80.0, 20_000.0);
    let mut model = Model::default();
    (0..500).for_each(|n| model.learn(alike(n), cost(truth, alike(n))));
    let ratio = |model: &Model| model.predict(small).unwrap() / cost(truth, small);
    assert!(ratio(&model) > 1.2, "{}", ratio(&model));
    (0..FEWEST_SMALLEST).for_each(|_| model.learn_smallest(truth.picture));
    model.learn_smallest(1e9);
    (0..SMALLEST_OVER).for_each(|_| model.learn_smallest(truth.picture));
    assert!((0.95..1.05).contains(&ratio(&model)), "{}", ratio(&model));
}

#[test]
fn pictures_that_cost_no_more_than_the_smallest_cost_what_it_does() {
    let mut model = Model::default();
    (0..100).for_each(|_| model.learn(sample(330.0, 20_000.0), 10_000.0));
    (0..100).for_each(|_| model.learn_smallest(50_000.0));
    let Costs { picture, macroblock, bit } = model.costs().unwrap();
    assert!((picture - 50_000.0).abs() < 1.0 && macroblock == 0.0 && bit == 0.0);
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), 0.0..1e6, Just(0.0)]
}

proptest! {
    /// Whatever it is taught, it predicts a number, and never less than nothing.
    #[test]
    fn what_is_predicted_is_a_number(
        taught in proptest::collection::vec((any_number(), any_number(), any_number()), 30..200),
        smallest in proptest::collection::vec(any_number(), 0..20),
        (macroblocks, bits) in (0.0..1e7, 0.0..1e10),
    ) {
        let mut model = Model::default();
        smallest.into_iter().for_each(|nanos| model.learn_smallest(nanos));
        for (macroblocks, bits, nanos) in taught {
            model.learn(sample(macroblocks, bits), nanos);
        }
        if let Some(cost) = model.predict(sample(macroblocks, bits)) {
            prop_assert!(cost.is_finite() && cost >= 0.0, "{cost}");
        }
    }

    /// Costs in about the usual proportions are found again, at any speed of the machine.
    #[test]
    fn costs_are_found_again(
        speed in 0.01..100.0f64,
        odd in proptest::array::uniform3(0.67..1.5f64),
    ) {
        let [picture, macroblock, bit] = [0, 1, 2].map(|part| USUAL[part] * odd[part] * speed);
        let truth = Costs { picture, macroblock, bit };
        let mut model = Model::default();
        various(1000).for_each(|sample| model.learn(sample, cost(truth, sample)));
        for sample in various(9) {
            let ratio = model.predict(sample).unwrap() / cost(truth, sample);
            prop_assert!((0.8..1.25).contains(&ratio), "{} of {:?}", ratio, sample);
        }
    }
}
