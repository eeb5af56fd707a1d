//! What people write of a link: `100mbit`, `1.5ms`, `0.1%`. Past this file their types say what was
//! checked.

use std::num::NonZeroU64;
use std::time::Duration;

const RATES: [(&str, f64); 4] = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];
const TIMES: [(&str, f64); 3] = [("ms", 1e-3), ("us", 1e-6), ("s", 1.0)];

/// A number that is not negative, and its unit: the first of `units` that the text ends with.
fn number(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let split = |&(unit, factor): &(&str, f64)| Some((text.strip_suffix(unit)?, factor));
    let (digits, factor) = units.iter().find_map(split)?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    plain.then(|| digits.parse::<f64>().ok()).flatten().map(|number| number * factor)
}

/// Bits per second.
pub fn rate(text: &str) -> Result<NonZeroU64, String> {
    let bits = number(text, &RATES).filter(|bits| *bits < 1e13).map(|bits| bits.round() as u64);
    bits.and_then(NonZeroU64::new).ok_or_else(|| "a rate is written like 100mbit or 1.5gbit".into())
}

/// A time of at most an hour.
pub fn time(text: &str) -> Result<Duration, String> {
    let seconds = number(text, &TIMES).filter(|seconds| *seconds <= 3_600.0);
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "a time is written like 10ms, 200us or 1.5s".into())
}

/// A share of all packets, as a probability.
pub fn share(text: &str) -> Result<f64, String> {
    let share = number(text, &[("%", 0.01)]).filter(|share| *share <= 1.0);
    share.ok_or_else(|| "a share is written like 1% or 0.05%, and is 100% at most".into())
}

/// The mean length of a burst, in packets.
pub fn length(text: &str) -> Result<f64, String> {
    let length = number(text, &[("", 1.0)]).filter(|length| (1.0..=1e6).contains(length));
    length.ok_or_else(|| "the length of a burst is a number of packets, 1 at least".into())
}

/// The bytes of an IP packet: what IPv4 demands of every link at least (RFC 791 §3.2).
pub fn size(text: &str) -> Result<NonZeroU64, String> {
    let bytes = number(text, &[("", 1.0)]).filter(|bytes| (68.0..=65_535.0).contains(bytes));
    let bytes = bytes.and_then(|bytes| NonZeroU64::new(bytes as u64));
    bytes.ok_or_else(|| "a packet has a number of bytes, 68 at least".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_their_units() {
        assert_eq!(rate("100mbit").map(NonZeroU64::get), Ok(100_000_000));
        assert_eq!(rate("1.5gbit").map(NonZeroU64::get), Ok(1_500_000_000));
        assert_eq!((rate("9bit").map(NonZeroU64::get), time("2s")), (Ok(9), Ok(Duration::from_secs(2))));
        assert_eq!(
            (time("1.5ms"), time("20us")),
            (Ok(Duration::from_micros(1_500)), Ok(Duration::from_micros(20)))
        );
        assert_eq!(size("1400").map(NonZeroU64::get), Ok(1_400));
        assert_eq!((share("1%"), share("100%"), length("4.5")), (Ok(0.01), Ok(1.0), Ok(4.5)));
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in
            ["", "mbit", "0mbit", "-1mbit", "1e9bit", "NaNmbit", "infgbit", "99999gbit", "10", "1.2.3kbit"]
        {
            assert!(rate(text).is_err(), "{text}");
        }
        for text in ["", "ms", "10", "-1ms", "2h", "3601s", "NaNs"] {
            assert!(time(text).is_err(), "{text}");
        }
        for text in ["1", "101%", "-1%", "%", "NaN%"] {
            assert!(share(text).is_err(), "{text}");
        }
        assert!(size("67").is_err() && size("65536").is_err() && size("1k").is_err());
        assert!(length("0.5").is_err() && length("").is_err() && length("NaN").is_err());
    }
}
