//! What a picture costs (Scout §4.4): a model of processor time against bits and macroblocks,
//! fitted from the paths that run, so nobody has to know the machine's speed. There is a good
//! correlation between a picture's bits and its time; what its size costs besides is fitted too.

/// One picture, as the model sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Macroblocks: squares of 16 by 16 samples.
    pub macroblocks: f64,
    /// Bits of its code.
    pub bits: f64,
}

/// Least squares of time over macroblocks and bits, the oldest pictures forgotten slowly.
#[derive(Clone, Copy, Debug, Default)]
pub struct Model {
    // Sums of products, each new picture weighing most: m macroblocks, b bits, t time.
    mm: f64,
    mb: f64,
    bb: f64,
    mt: f64,
    bt: f64,
    tt: f64,
    pictures: u64,
}

/// What is left of the weight of earlier pictures with each new one: 2 000 pictures, about a
/// minute, are remembered.
const KEPT: f64 = 1.0 - 1.0 / 2000.0;
/// Pictures before which nothing is predicted.
const FEWEST: u64 = 30;

impl Model {
    /// A picture took `nanos` of processor time.
    pub fn learn(&mut self, sample: Sample, nanos: f64) {
        let Sample { macroblocks: m, bits: b } = sample;
        for (sum, product) in [
            (&mut self.mm, m * m),
            (&mut self.mb, m * b),
            (&mut self.bb, b * b),
            (&mut self.mt, m * nanos),
            (&mut self.bt, b * nanos),
            (&mut self.tt, nanos * nanos),
        ] {
            *sum = *sum * KEPT + product;
        }
        self.pictures += 1;
    }

    /// Pictures it has learnt from.
    pub fn pictures(&self) -> u64 {
        self.pictures
    }

    /// What a macroblock and a bit cost, ns; `None` before enough has been learnt. Neither is below
    /// zero: where least squares would make one so, the other explains all.
    pub fn costs(&self) -> Option<(f64, f64)> {
        if self.pictures < FEWEST {
            return None;
        }
        let Self { mm, mb, bb, mt, bt, .. } = *self;
        let determinant = mm * bb - mb * mb;
        // Pictures that are all alike do not tell one from the other.
        if determinant > 1e-6 * mm * bb {
            let (m, b) = ((mt * bb - bt * mb) / determinant, (bt * mm - mt * mb) / determinant);
            if m >= 0.0 && b >= 0.0 {
                return Some((m, b));
            }
        }
        let alone = [(mt, mm, true), (bt, bb, false)];
        let best = alone.into_iter().filter(|(_, square, _)| *square > 0.0);
        // What explains more of the time: the larger share of the squares.
        let best = best.max_by(|a, b| (a.0 * a.0 / a.1).total_cmp(&(b.0 * b.0 / b.1)))?;
        let cost = best.0 / best.1;
        Some(if best.2 { (cost, 0.0) } else { (0.0, cost) })
    }

    /// What a picture of this sort will cost, ns.
    pub fn predict(&self, sample: Sample) -> Option<f64> {
        let (macroblock, bit) = self.costs()?;
        Some(macroblock * sample.macroblocks + bit * sample.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(macroblocks: f64, bits: f64) -> Sample {
        Sample { macroblocks, bits }
    }

    #[test]
    fn it_finds_the_costs_again() {
        let mut model = Model::default();
        for n in 0..300u32 {
            let sample = sample(if n % 2 == 0 { 330.0 } else { 1350.0 }, f64::from(4000 + n * 37 % 9000));
            model.learn(sample, 900.0 * sample.macroblocks + 25.0 * sample.bits);
        }
        let (macroblock, bit) = model.costs().unwrap();
        assert!((macroblock - 900.0).abs() < 1.0 && (bit - 25.0).abs() < 0.1, "{macroblock} {bit}");
    }

    #[test]
    fn pictures_all_alike_predict_their_like() {
        let mut model = Model::default();
        (0..100).for_each(|_| model.learn(sample(330.0, 20_000.0), 1e6));
        assert!((model.predict(sample(330.0, 20_000.0)).unwrap() - 1e6).abs() < 1.0);
    }

    #[test]
    fn nothing_is_predicted_from_little_or_from_nothing() {
        let mut model = Model::default();
        (0..FEWEST - 1).for_each(|_| model.learn(sample(330.0, 20_000.0), 1e6));
        assert_eq!(model.predict(sample(1.0, 1.0)), None);
        let mut empty = Model::default();
        (0..100).for_each(|_| empty.learn(sample(0.0, 0.0), 0.0));
        assert_eq!(empty.costs(), None);
    }

    #[test]
    fn no_cost_is_below_zero() {
        let mut model = Model::default();
        for n in 0..200u32 {
            // Fewer bits cost more: a bit would cost less than nothing.
            model.learn(sample(330.0, f64::from(10_000 + 100 * n)), 1e6 - f64::from(1000 * n));
        }
        let (macroblock, bit) = model.costs().unwrap();
        assert!(macroblock > 0.0 && bit >= 0.0);
    }
}
