//! Reads a command. Every byte is hostile: what is not exactly a command is refused with one line
//! that says why, and nothing panics.

use super::command::{Bits, Command, Fps, Pictures, Target};
use alloc::string::String;
use core::fmt;
use core::str::FromStr;
use silk_path::{Endpoint, PathId};

/// The most bytes of a command that are looked at: what a datagram of either IP holds on Ethernet.
pub const MAX_REQUEST: usize = 1452;
/// The most letters of a name.
const MAX_NAME: usize = 32;
/// The most pictures in a second.
const MAX_FPS: u32 = 1000;

/// A command with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What the controller calls it.
    pub number: u32,
    /// What is to be done.
    pub command: Command,
}

/// Not a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Its number, where that could be read.
    pub number: Option<u32>,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Longer than [`MAX_REQUEST`].
    TooLong,
    /// Something else than printable ASCII.
    NotText,
    /// No number in front.
    NoNumber,
    /// No command of that name.
    Unknown,
    /// A word is missing.
    Missing(&'static str),
    /// A word that is not understood.
    Wrong(&'static str),
    /// More words than the command has, or one twice.
    TooMany,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("too long"),
            Self::NotText => f.write_str("not plain text"),
            Self::NoNumber => f.write_str("no number in front"),
            Self::Unknown => f.write_str("no such command"),
            Self::Missing(what) => write!(f, "{what} is missing"),
            Self::Wrong(what) => write!(f, "wrong {what}"),
            Self::TooMany => f.write_str("too many words"),
        }
    }
}

/// Reads a datagram.
///
/// # Errors
/// [`Malformed`]: it is the sender's fault.
pub fn parse(bytes: &[u8]) -> Result<Request, Malformed> {
    let without = |fault| Malformed { number: None, fault };
    if bytes.len() > MAX_REQUEST {
        return Err(without(Fault::TooLong));
    }
    let text = core::str::from_utf8(bytes).map_err(|_| without(Fault::NotText))?;
    let text = text.trim_end_matches([' ', '\r', '\n']);
    if !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err(without(Fault::NotText));
    }
    let mut words = text.split(' ').filter(|word| !word.is_empty());
    let number: Option<u32> = words.next().and_then(number);
    let number = number.ok_or(without(Fault::NoNumber))?;
    match command(&mut words) {
        Ok(command) => Ok(Request { number, command }),
        Err(fault) => Err(Malformed { number: Some(number), fault }),
    }
}

fn command<'w>(words: &mut impl Iterator<Item = &'w str>) -> Result<Command, Fault> {
    let command = match words.next().ok_or(Fault::Missing("a command"))? {
        "mpeg_decode" => return decode(words),
        "stop" => Command::Stop(target(words)?),
        "list" => Command::List,
        "rate" => Command::Rate(target(words)?, fps(words.next().ok_or(Fault::Missing("the rate"))?)?),
        "every" => Command::Every(target(words)?, count(words.next(), "the number")?),
        _ => return Err(Fault::Unknown),
    };
    if words.next().is_some() { Err(Fault::TooMany) } else { Ok(command) }
}

fn decode<'w>(words: &mut impl Iterator<Item = &'w str>) -> Result<Command, Fault> {
    let source: Endpoint =
        words.next().ok_or(Fault::Missing("HOST:PORT"))?.parse().map_err(|_| Fault::Wrong("HOST:PORT"))?;
    if source.port() == 0 || source.ip().is_unspecified() || source.ip().is_multicast() {
        return Err(Fault::Wrong("HOST:PORT"));
    }
    let (mut rate, mut every, mut name, mut queue, mut port, mut over) = (None, None, None, None, None, None);
    let (mut bits, mut group, mut extent, mut without, mut less) = (None, None, None, None, None);
    for word in words {
        let (key, value) = word.split_once('=').ok_or(Fault::Wrong("option"))?;
        let again = match key {
            "fps" => rate.replace(fps(value)?).is_some(),
            "every" => every.replace(count(Some(value), "every")?).is_some(),
            "name" => name.replace(named(value)?).is_some(),
            "queue" => queue.replace(count(Some(value), "queue")?).is_some(),
            "port" => port.replace(count(Some(value), "port")?).is_some(),
            "over" => over.replace(is_rtp(value)?).is_some(),
            "without" => {
                without.replace((value == "b").then_some(true).ok_or(Fault::Wrong("without"))?).is_some()
            }
            "less" => less.replace(yes(value)?).is_some(),
            "bits" => bits.replace(value).is_some(),
            "group" => group.replace(value).is_some(),
            "size" => extent.replace(size(value)?).is_some(),
            _ => return Err(Fault::Wrong("option")),
        };
        if again {
            return Err(Fault::TooMany);
        }
    }
    let pictures = match (bits, extent) {
        (Some(bits), Some(size)) => Some(Pictures { bits: bits_of(bits, group)?, size }),
        (None, None) if group.is_none() => None,
        (Some(_), None) => return Err(Fault::Missing("size")),
        (None, _) => return Err(Fault::Missing("bits")),
    };
    let (without_b, less) = (without.unwrap_or(false), less.unwrap_or(false));
    let rtp = over.unwrap_or(false);
    Ok(Command::Decode { source, fps: rate, every, without_b, name, queue, port, rtp, pictures, less })
}

fn yes(value: &str) -> Result<bool, Fault> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(Fault::Wrong("less")),
    }
}

/// `93000`, or `200000,150000,60000` with the group `1,4,10`.
fn bits_of(bits: &str, group: Option<&str>) -> Result<Bits, Fault> {
    let Some(group) = group else {
        let mean = number(bits).filter(|bits| *bits > 0).ok_or(Fault::Wrong("bits"))?;
        return Ok(Bits::Mean(mean));
    };
    let bits: [u32; 3] = three(bits).ok_or(Fault::Wrong("bits"))?;
    let counts: [u16; 3] = three(group).ok_or(Fault::Wrong("group"))?;
    if counts == [0; 3] {
        return Err(Fault::Wrong("group"));
    }
    let kinds = [0, 1, 2].map(|kind| (counts[kind], bits[kind]));
    if kinds.iter().any(|(count, bits)| *count > 0 && *bits == 0) {
        return Err(Fault::Wrong("bits"));
    }
    Ok(Bits::Group(kinds))
}

/// Three numbers with commas between them.
fn three<N: FromStr + Copy>(word: &str) -> Option<[N; 3]> {
    let mut numbers = word.split(',').map(number);
    let three = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(three)
}

fn is_rtp(value: &str) -> Result<bool, Fault> {
    match value {
        "mflow" => Ok(false),
        "rtp" => Ok(true),
        _ => Err(Fault::Wrong("over")),
    }
}

/// A number as people write it: digits alone.
fn number<N: FromStr>(word: &str) -> Option<N> {
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    if digits { word.parse().ok() } else { None }
}

/// A number that is not 0.
fn count(word: Option<&str>, what: &'static str) -> Result<u16, Fault> {
    let word = word.ok_or(Fault::Missing(what))?;
    number(word).filter(|count| *count > 0).ok_or(Fault::Wrong(what))
}

/// `352x240`.
fn size(word: &str) -> Result<(u16, u16), Fault> {
    let (width, height) = word.split_once('x').ok_or(Fault::Wrong("size"))?;
    Ok((count(Some(width), "size")?, count(Some(height), "size")?))
}

/// `30`, `29.97` or `max`.
fn fps(word: &str) -> Result<Fps, Fault> {
    let wrong = Fault::Wrong("rate");
    if word == "max" {
        return Ok(Fps::Max);
    }
    let (whole, part) = word.split_once('.').unwrap_or((word, "0"));
    let whole: u32 = number(whole).filter(|whole| *whole <= MAX_FPS).ok_or(wrong)?;
    let digits = u32::try_from(part.len()).ok().filter(|digits| *digits <= 3).ok_or(wrong)?;
    let part: u32 = number(part).ok_or(wrong)?;
    match whole * 1000 + part * 10u32.pow(3 - digits) {
        0 => Err(wrong),
        millis => Ok(Fps::Millis(millis)),
    }
}

fn named(word: &str) -> Result<String, Fault> {
    let fits = word.len() <= MAX_NAME
        && word.starts_with(|first: char| first.is_ascii_alphabetic())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    if fits { Ok(word.into()) } else { Err(Fault::Wrong("name")) }
}

fn target<'w>(words: &mut impl Iterator<Item = &'w str>) -> Result<Target, Fault> {
    let word = words.next().ok_or(Fault::Missing("NAME|PATH"))?;
    match word.split_once('.').and_then(|(index, generation)| Some((number(index)?, number(generation)?))) {
        Some((index, generation)) => Ok(Target::Path(PathId { index, generation })),
        None => named(word).map(Target::Name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;
    use std::format;
    use std::string::ToString;

    fn read(text: &str) -> Result<Command, Fault> {
        match parse(text.as_bytes()) {
            Ok(Request { command, .. }) => Ok(command),
            Err(Malformed { fault, .. }) => Err(fault),
        }
    }

    #[test]
    fn every_command_is_read() {
        let source = "10.0.0.1:6000".parse().unwrap();
        let plain = Command::Decode {
            source,
            fps: None,
            every: None,
            without_b: false,
            name: None,
            queue: None,
            port: None,
            rtp: false,
            pictures: None,
            less: false,
        };
        assert_eq!(read("1 mpeg_decode 10.0.0.1:6000"), Ok(plain));
        assert_eq!(
            read(
                "1 mpeg_decode [fd00::1]:6000 queue=128 name=red.1 fps=29.97 every=3 port=5004 over=rtp bits=9000 size=352x240 without=b less=yes  \r\n"
            ),
            Ok(Command::Decode {
                source: "[fd00::1]:6000".parse().unwrap(),
                fps: Some(Fps::Millis(29_970)),
                every: Some(3),
                without_b: true,
                name: Some("red.1".to_string()),
                queue: Some(128),
                port: Some(5004),
                rtp: true,
                pictures: Some(Pictures { bits: Bits::Mean(9000), size: (352, 240) }),
                less: true,
            })
        );
        let Ok(Command::Decode { pictures: Some(pictures), .. }) =
            read("1 mpeg_decode 10.0.0.1:6000 bits=90,40,0 group=1,4,0 size=352x240")
        else {
            panic!("no pictures")
        };
        assert_eq!(pictures.bits, Bits::Group([(1, 90), (4, 40), (0, 0)]));
        let path = PathId { index: 3, generation: 1 };
        assert_eq!(read("1 stop 3.1"), Ok(Command::Stop(Target::Path(path))));
        assert_eq!(read("1 stop canyon"), Ok(Command::Stop(Target::Name("canyon".to_string()))));
        assert_eq!(read("4294967295   list"), Ok(Command::List));
        assert_eq!(read("1 rate 3.1 max"), Ok(Command::Rate(Target::Path(path), Fps::Max)));
        assert_eq!(read("1 every 3.1 3"), Ok(Command::Every(Target::Path(path), 3)));
    }

    #[test]
    fn each_fault_has_its_line() {
        for (text, line) in [
            ("", "no number in front"),
            ("list", "no number in front"),
            ("4294967296 list", "no number in front"),
            ("+1 list", "no number in front"),
            ("1", "a command is missing"),
            ("1 reboot", "no such command"),
            ("1 list all", "too many words"),
            ("1 li\tst", "not plain text"),
            ("1 stöp 3.1", "not plain text"),
            ("1 stop", "NAME|PATH is missing"),
            ("1 stop 3", "wrong name"),
            ("1 stop 3.1 4.1", "too many words"),
            ("1 mpeg_decode", "HOST:PORT is missing"),
            ("1 mpeg_decode host", "wrong HOST:PORT"),
            ("1 mpeg_decode 224.0.0.1:6000", "wrong HOST:PORT"),
            ("1 mpeg_decode 10.0.0.1:0", "wrong HOST:PORT"),
            ("1 mpeg_decode 10.0.0.1:6000 loud", "wrong option"),
            ("1 mpeg_decode 10.0.0.1:6000 volume=11", "wrong option"),
            ("1 mpeg_decode 10.0.0.1:6000 every=0", "wrong every"),
            ("1 mpeg_decode 10.0.0.1:6000 every=65536", "wrong every"),
            ("1 mpeg_decode 10.0.0.1:6000 fps=1 fps=2", "too many words"),
            ("1 mpeg_decode 10.0.0.1:6000 name=a$b", "wrong name"),
            ("1 mpeg_decode 10.0.0.1:6000 over=tcp", "wrong over"),
            ("1 mpeg_decode 10.0.0.1:6000 bits=9", "size is missing"),
            ("1 mpeg_decode 10.0.0.1:6000 bits=0 size=1x1", "wrong bits"),
            ("1 mpeg_decode 10.0.0.1:6000 bits=9 size=352", "wrong size"),
            ("1 mpeg_decode 10.0.0.1:6000 bits=9,9,9 size=352x240", "wrong bits"),
            ("1 mpeg_decode 10.0.0.1:6000 bits=9 group=1,1,1 size=352x240", "wrong bits"),
            ("1 mpeg_decode 10.0.0.1:6000 bits=9,9,0 group=1,1,1 size=352x240", "wrong bits"),
            ("1 mpeg_decode 10.0.0.1:6000 bits=9,9,9 group=0,0,0 size=352x240", "wrong group"),
            ("1 mpeg_decode 10.0.0.1:6000 bits=9,9,9 group=1,1,1,1 size=352x240", "wrong group"),
            ("1 mpeg_decode 10.0.0.1:6000 group=1,1,1", "bits is missing"),
            ("1 mpeg_decode 10.0.0.1:6000 without=i", "wrong without"),
            ("1 mpeg_decode 10.0.0.1:6000 less=1", "wrong less"),
            ("1 rate a", "the rate is missing"),
            ("1 rate a 0", "wrong rate"),
            ("1 rate a 1.2345", "wrong rate"),
            ("1 rate a -1", "wrong rate"),
            ("1 rate a 1001", "wrong rate"),
            ("1 every a", "the number is missing"),
        ] {
            assert_eq!(read(text).map_err(|fault| fault.to_string()), Err(line.to_string()), "{text}");
        }
        assert_eq!(parse(&[b' '; MAX_REQUEST + 1]).map_err(|m| m.fault), Err(Fault::TooLong));
        assert_eq!(parse(b"7 x").map_err(|m| m.number), Err(Some(7)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn what_looks_like_a_command_is_read_or_refused(
            number: u32,
            name in "mpeg_decode|stop|list|rate|every",
            words in proptest::collection::vec("[a-z0-9.:=\\[\\]-]{0,12}|10\\.0\\.0\\.1:[0-9]{1,6}|(fps|every|name|queue|port|over|bits|group|size|without|less)=[0-9a-z.,]{0,8}", 0..6),
        ) {
            let text = format!("{number} {name} {}", words.join(" "));
            if let Err(malformed) = parse(text.as_bytes()) {
                prop_assert_eq!(malformed.number, Some(number));
            }
        }
    }
}
