//! What a picture costs (Scout §4.4): a model of processor time against bits and macroblocks,
//! fitted from the paths that run, so nobody has to know the machine's speed. There is a good
//! correlation between a picture's bits and its time; what its size costs, and what each costs
//! whatever it is (waking, caches that have gone cold), is fitted too.
//!
//! Streams that are alike do not tell these three apart, and what they teach must hold for one that
//! is not. So what a picture costs whatever it is comes from pictures of one macroblock (`smallest.rs`), where
//! they are decoded; and the model begins with proportions between the costs, as they were measured once
//! (`docs/design/video.md`), learns the machine's speed at once, and the proportions as far as
//! the pictures tell them. It must never predict less than nothing, or no number.

use core::ops::Range;

/// One picture, as the model sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Macroblocks: squares of 16 by 16 samples.
    pub macroblocks: f64,
    /// Bits of its code.
    pub bits: f64,
}

/// What pictures cost, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Each, whatever it is.
    pub picture: f64,
    /// A macroblock.
    pub macroblock: f64,
    /// A bit.
    pub bit: f64,
}

/// Least squares of the relative error, over what a picture, its macroblocks and its bits cost, the
/// oldest pictures forgotten slowly.
#[derive(Clone, Copy, Debug, Default)]
pub struct Model {
    // Of each picture are kept: what it took by the usual costs would be 1, each part of that a
    // share, and what it took in truth a multiple of 1. Here are the sums of their products, each
    // new picture weighing most: shares by shares, shares by truth, the truth, and ones.
    squares: [[f64; PARTS]; PARTS],
    across: [f64; PARTS],
    truth: f64,
    weight: f64,
    pictures: u64,
    // What the smallest pictures took on average, ns, and how many there were.
    smallest: f64,
    smallest_pictures: u64,
}

/// What a picture's cost is made of: itself, its macroblocks, its bits.
const PARTS: usize = 3;
/// Their usual costs, ns: of these only the proportions matter.
const USUAL: [f64; PARTS] = [50_000.0, 200.0, 2.0];
/// How much the usual proportions are believed, beside what the pictures say.
const BELIEF: f64 = 0.05;
/// What is left of the weight of earlier pictures with each new one: 2 000 pictures, about a
/// minute, are remembered.
const KEPT: f64 = 1.0 - 1.0 / 2000.0;
/// Pictures before which nothing is predicted.
const FEWEST: u64 = 30;
/// A picture that took more than so many times the mean was held up by something else, and counts as
/// so many.
const OUTLIER: f64 = 5.0;
/// What the smallest picture costs is a mean over so many, and known after [`FEWEST_SMALLEST`].
const SMALLEST_OVER: u64 = 64;
const FEWEST_SMALLEST: u64 = 8;

impl Model {
    /// A picture took `nanos` of processor time. What cannot be is not learnt.
    pub fn learn(&mut self, sample: Sample, nanos: f64) {
        let Some((shares, usual)) = shares(sample) else { return };
        if !(0.0..=1e15).contains(&nanos) {
            return;
        }
        let mean = if self.pictures < FEWEST { f64::INFINITY } else { self.truth / self.weight };
        let truth = (nanos / usual).min(OUTLIER * mean);
        for (row, share) in shares.iter().enumerate() {
            for (column, other) in shares.iter().enumerate() {
                let sum = &mut self.squares[row][column];
                *sum = *sum * KEPT + share * other;
            }
            self.across[row] = self.across[row] * KEPT + share * truth;
        }
        self.truth = self.truth * KEPT + truth;
        self.weight = self.weight * KEPT + 1.0;
        self.pictures += 1;
    }

    /// A picture of next to nothing took `nanos` of processor time. What cannot be is not learnt.
    pub fn learn_smallest(&mut self, nanos: f64) {
        if !(0.0..=1e15).contains(&nanos) {
            return;
        }
        let most = if self.smallest_known() { OUTLIER * self.smallest } else { f64::INFINITY };
        self.smallest_pictures += 1;
        let over = self.smallest_pictures.min(SMALLEST_OVER) as f64;
        self.smallest += (nanos.min(most) - self.smallest) / over;
    }

    fn smallest_known(&self) -> bool {
        self.smallest_pictures >= FEWEST_SMALLEST
    }

    /// Pictures it has learnt from.
    pub fn pictures(&self) -> u64 {
        self.pictures
    }

    /// What pictures cost; `None` before enough has been learnt. None of the three is below zero.
    pub fn costs(&self) -> Option<Costs> {
        if self.pictures < FEWEST {
            return None;
        }
        let [picture, macroblock, bit] = self.multiples()?;
        Some(Costs { picture: picture * USUAL[0], macroblock: macroblock * USUAL[1], bit: bit * USUAL[2] })
    }

    /// What a picture of this sort will cost, ns.
    pub fn predict(&self, sample: Sample) -> Option<f64> {
        let Costs { picture, macroblock, bit } = self.costs()?;
        Some(picture + macroblock * sample.macroblocks + bit * sample.bits)
    }

    /// The multiples of the usual costs that fit best, none of them below zero: of all choices of
    /// parts that cost anything the best whose multiples are so. What the smallest picture costs is no choice.
    fn multiples(&self) -> Option<[f64; PARTS]> {
        let known = self.smallest_known().then(|| self.smallest / USUAL[0]);
        let free = if known.is_some() { 1..PARTS } else { 0..PARTS };
        let (matrix, known) = (self.believing(free.clone()), known.unwrap_or(0.0));
        let mut right = self.across;
        right.iter_mut().zip(&matrix).for_each(|(sum, row)| *sum -= row[0] * known);
        let all: usize = free.map(|part| 1 << part).sum();
        let choices = (0..1 << PARTS).filter(|chosen| chosen & !all == 0);
        let fits = choices.filter_map(|chosen| solve(matrix, right, chosen)).map(|[picture, size, bits]| {
            // It is 0 unless it was chosen.
            [picture + known, size, bits]
        });
        let possible = fits.filter(|x| x.iter().all(|x| x.is_finite() && *x >= 0.0));
        possible.min_by(|a, b| self.error(&matrix, a).total_cmp(&self.error(&matrix, b)))
    }

    /// The squares, and what it adds to the error when the multiples of these parts differ from one another.
    fn believing(&self, parts: Range<usize>) -> [[f64; PARTS]; PARTS] {
        let mut matrix = self.squares;
        for row in parts.clone() {
            for column in parts.clone() {
                let of_itself = if row == column { 1.0 } else { 0.0 };
                matrix[row][column] += BELIEF * self.weight * (of_itself - 1.0 / parts.len() as f64);
            }
        }
        matrix
    }

    /// The error of these multiples, but for what is the same for all.
    fn error(&self, matrix: &[[f64; PARTS]; PARTS], x: &[f64; PARTS]) -> f64 {
        let products = matrix.iter().zip(x).map(|(row, a)| a * dot(row, x)).sum::<f64>();
        products - 2.0 * dot(&self.across, x)
    }
}

/// What part of a picture's usual cost each of its parts is, and that cost.
fn shares(sample: Sample) -> Option<([f64; PARTS], f64)> {
    let Sample { macroblocks, bits } = sample;
    let possible = |number: f64| (0.0..=1e12).contains(&number);
    if !possible(macroblocks) || !possible(bits) {
        return None;
    }
    let costs = [USUAL[0], USUAL[1] * macroblocks, USUAL[2] * bits];
    let usual: f64 = costs.iter().sum();
    Some((costs.map(|cost| cost / usual), usual))
}

fn dot(a: &[f64; PARTS], b: &[f64; PARTS]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Solves `matrix` · x = `right` for the chosen parts (a bit each), the others 0, by elimination;
/// `None` where it has no one solution. The matrix is symmetric and not negative, so its diagonal
/// serves as pivots.
fn solve(mut matrix: [[f64; PARTS]; PARTS], mut right: [f64; PARTS], chosen: usize) -> Option<[f64; PARTS]> {
    let parts = || (0..PARTS).filter(move |part| chosen >> part & 1 == 1);
    for pivot in parts() {
        let own = matrix[pivot][pivot];
        if own <= 1e-12 {
            return None;
        }
        for row in parts().filter(|row| *row != pivot) {
            let factor = matrix[row][pivot] / own;
            let taken = matrix[pivot];
            matrix[row].iter_mut().zip(taken).for_each(|(sum, taken)| *sum -= factor * taken);
            right[row] -= factor * right[pivot];
        }
    }
    let mut x = [0.0; PARTS];
    parts().for_each(|part| x[part] = right[part] / matrix[part][part]);
    Some(x)
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
