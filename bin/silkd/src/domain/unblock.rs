//! How long threads take from being unblocked to running (SILK Table 2), in power-of-two
//! buckets: 256 bytes, one addition a measurement.

use silk_control::UnblockReport;

/// The measurements.
#[derive(Clone, Debug)]
pub struct Histogram {
    bucket: [u64; 64],
    sum: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { bucket: [0; 64], sum: 0, max: 0 }
    }
}

/// Longer than any real wait: such a claim of a program is not believed, ns.
const ABSURD: u64 = 60_000_000_000;

impl Histogram {
    /// Takes one measurement, ns.
    pub fn add(&mut self, nanos: u64) {
        if nanos > ABSURD {
            return;
        }
        self.bucket[nanos.max(1).ilog2() as usize] += 1;
        self.sum += nanos;
        self.max = self.max.max(nanos);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.bucket.iter().sum()
    }

    /// The upper edge of the bucket below which `share` of the measurements lie, at most the
    /// longest, ns.
    fn quantile(&self, share: f64) -> u64 {
        let wanted = (self.count() as f64 * share).ceil() as u64;
        let mut seen = 0;
        let found = self.bucket.iter().position(|n| {
            seen += n;
            seen >= wanted
        });
        found.map_or(0, |bucket| (2u64 << bucket) - 1).min(self.max)
    }

    /// As a row of the report.
    pub fn report(&self, class: &str) -> UnblockReport {
        let count = self.count();
        UnblockReport {
            class: class.to_owned(),
            count,
            mean: self.sum.checked_div(count).unwrap_or(0),
            p50: self.quantile(0.5),
            p99: self.quantile(0.99),
            max: self.max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_mean_quantiles_and_longest() {
        let mut times = Histogram::default();
        (0..99).for_each(|_| times.add(1000));
        times.add(1_000_000);
        let row = times.report("preferred");
        assert_eq!((row.count, row.max, row.p50), (100, 1_000_000, 1023));
        assert_eq!(row.mean, 10_990);
        assert_eq!(times.quantile(1.0), 1_000_000);
    }

    #[test]
    fn nonsense_is_not_counted() {
        let mut times = Histogram::default();
        times.add(u64::MAX);
        assert_eq!(times.report("x").count, 0);
    }
}
