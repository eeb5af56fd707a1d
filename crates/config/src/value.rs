//! The plain values of a configuration: numbers, texts, lists, durations, amounts of memory
//! and parts of a whole. Past this file their types say what was checked.

use crate::read::{Notes, Shown, Value, expected};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeInteger, DeValue};

impl Value for bool {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        match value.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            _ => expected("`true` or `false`", value, notes),
        }
    }
}

impl Value for String {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            _ => expected("a text in quotes", value, notes),
        }
    }
}

/// An absolute path of the file system.
impl Value for PathBuf {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        let text = String::read(value, notes)?;
        if text.starts_with('/') && !text.contains('\0') {
            return Some(Self::from(text));
        }
        notes.advise(
            value.span(),
            "this must be an absolute path",
            "begin it with `/`: the daemon does not run where you are",
        );
        None
    }
}

fn whole(integer: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(integer.as_str(), integer.radix()).ok()
}

macro_rules! numbers {
    ($($number:ident)*) => {$(
        impl Value for $number {
            fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
                let DeValue::Integer(integer) = value.get_ref() else {
                    return expected("a whole number", value, notes);
                };
                let number = whole(integer).and_then(|number| Self::try_from(number).ok());
                if number.is_none() {
                    let most = Self::MAX;
                    notes.fault(value.span(), format!("{integer} is not between 0 and {most}"));
                }
                number
            }

            fn beyond(value: &Spanned<DeValue<'_>>) -> Option<String> {
                let DeValue::Integer(integer) = value.get_ref() else { return None };
                let fits = whole(integer).is_some_and(|number| Self::try_from(number).is_ok());
                (!fits).then(|| integer.to_string())
            }
        }

        impl Shown for $number {
            fn shown(&self) -> String {
                self.to_string()
            }
        }
    )*};
}
numbers!(u8 u16 u32);

/// A list; one value stands for a list of one. What is wrong in it is noted and left out.
impl<T: Value> Value for Vec<T> {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        let DeValue::Array(array) = value.get_ref() else {
            return T::read(value, notes).map(|one| vec![one]);
        };
        Some(array.iter().filter_map(|item| T::read(item, notes)).collect())
    }
}

/// An amount of memory: `"64K"`, `"1M"`, `"2G"` (powers of 1024), or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

impl ByteSize {
    /// This many bytes.
    pub const fn bytes(bytes: u64) -> Self {
        Self(bytes)
    }
    /// This many times 1024 bytes.
    pub const fn kib(kib: u64) -> Self {
        Self(kib << 10)
    }
    /// This many times 1024² bytes.
    pub const fn mib(mib: u64) -> Self {
        Self(mib << 20)
    }
    /// In bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Reads what [`fmt::Display`] writes.
    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = split(text)?;
        let shift = match unit {
            "" | "B" => 0,
            "K" | "KiB" => 10,
            "M" | "MiB" => 20,
            "G" | "GiB" => 30,
            _ => return None,
        };
        number.checked_mul(1 << shift).filter(|&bytes| bytes <= 1 << 50).map(Self)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |shift: u32| self.0 != 0 && self.0.trailing_zeros() >= shift;
        match self.0 {
            bytes if exact(30) => write!(f, "{}G", bytes >> 30),
            bytes if exact(20) => write!(f, "{}M", bytes >> 20),
            bytes if exact(10) => write!(f, "{}K", bytes >> 10),
            bytes => write!(f, "{bytes}"),
        }
    }
}

impl Shown for ByteSize {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Value for ByteSize {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        let size = match value.get_ref() {
            DeValue::String(text) => Self::parse(text),
            DeValue::Integer(integer) => whole(integer).and_then(|bytes| Self::parse(&bytes.to_string())),
            _ => return expected("an amount of memory such as `\"64K\"`", value, notes),
        };
        if size.is_none() {
            let help = "write a whole number of bytes, or one with `K`, `M` or `G`: `\"64K\"` is 65536";
            notes.advise(value.span(), "this is no amount of memory", help);
        }
        size
    }
}

const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl Shown for Duration {
    /// In the largest unit that is exact.
    fn shown(&self) -> String {
        let nanos = u64::try_from(self.as_nanos()).unwrap_or(u64::MAX);
        let exact = |(_, unit): &&(&str, u64)| nanos != 0 && nanos.is_multiple_of(*unit);
        let (name, unit) = UNITS.iter().find(exact).unwrap_or(&("s", 1));
        format!("{}{name}", nanos / unit)
    }
}

/// A time such as `"200ms"`.
impl Value for Duration {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        let parse = |text: &str| {
            let (number, name) = split(text)?;
            let name = if name == "µs" { "us" } else { name };
            let (_, unit) = UNITS.iter().find(|(unit, _)| *unit == name)?;
            number.checked_mul(*unit).map(Self::from_nanos)
        };
        let time = match value.get_ref() {
            DeValue::String(text) => parse(text),
            DeValue::Integer(_) => None,
            _ => return expected("a time such as `\"200ms\"`", value, notes),
        };
        if time.is_none() {
            let help = "write a whole number and a unit, `ns`, `us`, `ms`, `s`, `m`, `h` or `d`: `\"200ms\"`";
            notes.advise(value.span(), "this is no time", help);
        }
        time
    }
}

/// A whole number and what follows it.
fn split(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim_start()))
}

/// A part of a whole: `"90%"` or `0.9`. Exact to a millionth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u32);

impl Percent {
    /// All of it.
    pub const WHOLE: Self = Self(1_000_000);

    /// This many hundredths; at most all of it.
    pub const fn of_hundred(percent: u32) -> Self {
        if percent < 100 { Self(percent * 10_000) } else { Self::WHOLE }
    }
    /// In millionths, from 0 to 1 000 000.
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// What is left of the whole.
    pub(crate) const fn rest(self) -> Self {
        Self(Self::WHOLE.0 - self.0)
    }

    /// This part of another part, rounded down.
    pub(crate) const fn times(self, other: Self) -> Self {
        Self((self.0 as u64 * other.0 as u64 / Self::WHOLE.0 as u64) as u32)
    }

    /// What `part`, more than nothing, is of `whole`, at least as long, rounded up.
    pub(crate) fn of_time(part: Duration, whole: Duration) -> Self {
        let part = part.as_nanos() * u128::from(Self::WHOLE.0);
        u32::try_from(part.div_ceil(whole.as_nanos().max(1))).map_or(Self::WHOLE, Self)
    }

    fn of(part: f64) -> Option<Self> {
        (0.0..=1.0).contains(&part).then(|| Self((part * 1e6).round() as u32))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.0) / 10_000.0)
    }
}

impl Shown for Percent {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Value for Percent {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        let part = match value.get_ref() {
            DeValue::String(text) => text
                .strip_suffix('%')
                .and_then(|number| number.trim_end().parse::<f64>().ok())
                .and_then(|percent| Self::of(percent / 100.0)),
            DeValue::Float(float) => float.as_str().parse().ok().and_then(Self::of),
            DeValue::Integer(integer) if matches!(integer.as_str(), "0" | "1") => {
                Some(if integer.as_str() == "1" { Self::WHOLE } else { Self(0) })
            }
            DeValue::Integer(_) => None,
            _ => return expected("a part such as `\"90%\"` or `0.9`", value, notes),
        };
        if part.is_none() {
            let help = "write per cent in quotes, `\"90%\"`, or a number from 0 to 1, `0.9`";
            notes.advise(value.span(), "this is no part of a whole", help);
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::de::DeTable;

    fn read<T: Value>(text: &str) -> Option<T> {
        let document = format!("v = {text}");
        let table = DeTable::parse(&document).unwrap();
        T::read(table.get_ref().get("v").unwrap(), &mut Notes::default())
    }

    #[test]
    fn amounts_of_memory() {
        assert_eq!(read("\"64K\""), Some(ByteSize::kib(64)));
        assert_eq!(read("\"3 MiB\""), Some(ByteSize::mib(3)));
        assert_eq!(read("4096"), Some(ByteSize::kib(4)));
        for wrong in ["\"64KB\"", "\"K\"", "-1", "\"99999999999G\"", "\"1.5M\"", "true"] {
            assert_eq!(read::<ByteSize>(wrong), None, "{wrong}");
        }
        assert_eq!(ByteSize::mib(1024).to_string(), "1G");
        assert_eq!(ByteSize::bytes(1500).to_string(), "1500");
    }

    #[test]
    fn an_amount_that_no_number_has_room_for_is_told() {
        let document = format!("v = 1{}", "0".repeat(60));
        let table = DeTable::parse(&document).unwrap();
        let mut notes = Notes::default();
        assert_eq!(ByteSize::read(table.get_ref().get("v").unwrap(), &mut notes), None);
        assert_eq!(notes.faults.len(), 1, "what is refused in silence is taken for the default");
    }

    #[test]
    fn times() {
        assert_eq!(read("\"200ms\""), Some(Duration::from_millis(200)));
        assert_eq!(read("\"2 h\""), Some(Duration::from_secs(7200)));
        assert_eq!(read("\"5µs\""), Some(Duration::from_micros(5)));
        for wrong in ["200", "\"200\"", "\"fast\"", "\"99999999999999d\"", "\"-1s\"", "[]"] {
            assert_eq!(read::<Duration>(wrong), None, "{wrong}");
        }
        assert_eq!(Duration::from_secs(7200).shown(), "2h");
        assert_eq!(Duration::from_micros(1500).shown(), "1500us");
        assert_eq!(Duration::ZERO.shown(), "0s");
    }

    #[test]
    fn parts_of_a_whole() {
        assert_eq!(read("\"90%\""), Some(Percent::of_hundred(90)));
        assert_eq!(read("0.9"), Some(Percent::of_hundred(90)));
        assert_eq!(read("1"), Some(Percent::WHOLE));
        for wrong in ["90", "\"101%\"", "-0.1", "nan", "\"%\"", "\"nan%\""] {
            assert_eq!(read::<Percent>(wrong), None, "{wrong}");
        }
        assert_eq!(Percent::of_hundred(90).to_string(), "90%");
    }

    #[test]
    fn a_part_of_a_part_is_rounded_down_and_of_a_time_up() {
        assert_eq!(Percent(333_333).times(Percent(500_000)), Percent(166_666));
        let of_time =
            |part, whole| Percent::of_time(Duration::from_millis(part), Duration::from_millis(whole));
        assert_eq!([of_time(1, 3), of_time(1, 2), of_time(2, 2)], [333_334, 500_000, 1_000_000].map(Percent));
    }

    #[test]
    fn one_value_stands_for_a_list_of_one() {
        assert_eq!(read("80"), Some(vec![80u16]));
        assert_eq!(read("[80, 443]"), Some(vec![80u16, 443]));
        assert_eq!(read("[80, 70000, 443]"), Some(vec![80u16, 443]));
    }
}
