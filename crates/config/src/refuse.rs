//! `[refuse]`: whom programs on silk do not serve. The file is one that other programs may write, such as those that read
//! logs: an address or a network in each line.

use crate::address::Prefix;
use crate::fault::{Fault, Faults};
use crate::read::{Notes, Section};
use crate::source::{Source, Unreadable};
use silk_path::classify::Refused;
use silk_path::classify::layout::REFUSED;
use std::fmt;
use std::path::PathBuf;

/// The longest file of this kind that is read: 1 MiB, room for as many as the classifier has room for.
const LONGEST_LIST: usize = 1 << 20;
/// So many faults of a file are told: of one of another kind each line is one.
const FAULTS: usize = 16;

/// `[refuse]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refuse {
    /// Networks from which nothing is taken.
    pub source: Vec<Prefix>,
    /// A file with more of them; `None` for none.
    pub file: Option<PathBuf>,
}

/// Why it is not known whom to refuse.
#[derive(Debug)]
pub enum Unlisted {
    /// The file cannot be read.
    Unreadable(Unreadable),
    /// What is in it is wrong.
    Wrong(Faults),
}

impl Refuse {
    pub(crate) fn read(mut section: Section<'_, '_>) -> Self {
        let refuse = Self { source: section.or("source", Vec::new()), file: section.read("file") };
        section.finish();
        refuse
    }

    /// Everybody, those in the file included. `configuration` is what messages call the file that names it.
    ///
    /// # Errors
    /// [`Unlisted`] names the file and says why.
    pub fn everybody(&self, configuration: &str) -> Result<Refused, Unlisted> {
        let Some(file) = &self.file else { return Ok(refused(&self.source)) };
        let source = Source::read_up_to(file, LONGEST_LIST)
            .map_err(|why| Unlisted::Unreadable(why.named_by(configuration, "in its `[refuse]`")))?;
        self.and(&source).map_err(Unlisted::Wrong)
    }

    /// Everybody, where this is in the file.
    fn and(&self, list: &Source) -> Result<Refused, Faults> {
        let all = refused(&[&self.source[..], &networks(list)?].concat());
        if all.ranges().iter().all(|ranges| *ranges <= REFUSED) {
            return Ok(all);
        }
        // So many do not fit into a configuration: most are in the file.
        let message = format!(
            "with these `[refuse]` has {all}, those that touch taken together; there is room for {REFUSED} of each"
        );
        let help = Some("leave some to whatever is in front of this machine".to_owned());
        Err(Faults::new(&list.name, &list.text, vec![Fault { span: 0..0, message, help }]))
    }
}

fn refused(networks: &[Prefix]) -> Refused {
    Refused::of(networks.iter().map(|prefix| (prefix.address(), prefix.length())))
}

impl fmt::Display for Unlisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => fmt::Display::fmt(why, f),
            Self::Wrong(faults) => fmt::Display::fmt(faults, f),
        }
    }
}

impl std::error::Error for Unlisted {}

/// The networks in a text, one in each line; what is behind a `#` is not looked at.
///
/// # Errors
/// All its [`Faults`], or the first of very many.
pub fn networks(source: &Source) -> Result<Vec<Prefix>, Faults> {
    let (mut notes, mut all, mut at) = (Notes::default(), Vec::new(), 0);
    for line in source.text.split_inclusive('\n') {
        let written = line.split('#').next().unwrap_or_default();
        let begin = at + written.len() - written.trim_start().len();
        at += line.len();
        let written = written.trim();
        if !written.is_empty() {
            all.extend(Prefix::of_text(written, begin..begin + written.len(), &mut notes));
        }
        if notes.faults.len() == FAULTS {
            break;
        }
    }
    if notes.faults.is_empty() { Ok(all) } else { Err(Faults::new(&source.name, &source.text, notes.faults)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn of(text: &str) -> Result<Vec<String>, String> {
        let source = Source { name: "refused".into(), text: text.into() };
        let told = |all: Vec<Prefix>| all.iter().map(ToString::to_string).collect();
        networks(&source).map(told).map_err(|faults| faults.to_string())
    }

    #[test]
    fn each_line_is_an_address_or_a_network() {
        let text = "# by hand\n\n192.0.2.7\r\n  198.51.100.0/24 # a neighbour\n2001:db8::/32\n::1";
        assert_eq!(of(text).unwrap(), ["192.0.2.7/32", "198.51.100.0/24", "2001:db8::/32", "::1/128"]);
        assert_eq!(of("").unwrap(), [""; 0]);
    }

    #[test]
    fn every_fault_is_told_with_its_place() {
        let told = of("192.0.2.7\nexample.org # who?\n\n  192.0.2.7/24\n192.0.2.8 192.0.2.9\n").unwrap_err();
        for part in [
            "refused:2:1: `example.org` is not",
            "refused:4:3: `192.0.2.7/24` has bits",
            "refused:5:1: `192.0.2.8 192.0.2.9`",
        ] {
            assert!(told.contains(part), "{told}");
        }
        assert!(!told.contains("refused:1:"), "{told}");
    }

    #[test]
    fn more_than_there_is_room_for_are_a_fault() {
        let own = Refuse { source: vec![Prefix::containing(IpAddr::from([255, 0, 0, 1]), 32)], file: None };
        let and = |count: usize| {
            let text =
                (0..count as u32).map(|n| format!("{}\n", IpAddr::from((2 * n).to_be_bytes()))).collect();
            own.and(&Source { name: "refused".into(), text })
        };
        let told = and(REFUSED).unwrap_err().to_string();
        assert!(
            told.contains("refused:1:1: ") && told.contains("16385 ranges of IPv4 addresses, 0 of IPv6"),
            "{told}"
        );
        assert_eq!(and(REFUSED - 1).unwrap().ranges(), [REFUSED, 0]);
    }

    #[test]
    fn of_a_file_of_another_kind_some_faults_are_told() {
        let told = of(&"<html>\n".repeat(100_000)).unwrap_err();
        assert_eq!(told.matches("is not an IP prefix").count(), FAULTS);
    }
}
