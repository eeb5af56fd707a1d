//! The configuration as a whole: a text that is right becomes a [`Config`], one that is not
//! becomes all its [`Faults`]. Never something in between.

use crate::class::{self, Class, Rule};
use crate::daemon::Control;
use crate::device::{self, Device};
use crate::fault::{Fault, Faults};
use crate::memory::Memory;
use crate::policy::{self, SharedPolicy};
use crate::read::{Notes, Section};
use crate::refuse::Refuse;
use crate::scheduler::{Listen, Policy, Scheduler};
use crate::source::{LONGEST, Source};
use crate::tcp::Tcp;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::Range;
use std::path::PathBuf;
use toml::de::DeTable;

/// A configuration with nothing wrong in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The file of the module graph; `None` for that of a server, which is built in.
    pub graph: Option<PathBuf>,
    /// `[device]`, or the first `[[device]]`.
    pub device: Device,
    /// Each further `[[device]]`: with any, all are `xdp`.
    pub further: Vec<Device>,
    /// `[scheduler]`.
    pub scheduler: Scheduler,
    /// `[[policy]]`, in the order of the file; none where that of `[scheduler]` has all classes.
    pub policies: Vec<SharedPolicy>,
    /// `[listen]`.
    pub listen: Listen,
    /// `[[class]]`, in the order of the file; exactly one is the default.
    pub classes: Vec<Class>,
    /// `[refuse]`.
    pub refuse: Refuse,
    /// `[memory]`.
    pub memory: Memory,
    /// `[tcp]`.
    pub tcp: Tcp,
    /// `[control]`.
    pub control: Control,
}

impl Config {
    /// Parses a configuration; `name` is what messages call it.
    ///
    /// # Errors
    /// All its [`Faults`].
    pub fn parse(name: &str, text: &str) -> Result<Self, Faults> {
        let mut notes = Notes::default();
        let config = parse_document(text, &mut notes, Self::read);
        if notes.faults.is_empty() { Ok(config) } else { Err(Faults::new(name, text, notes.faults)) }
    }

    /// All devices, by number.
    pub fn devices(&self) -> impl Iterator<Item = &Device> {
        std::iter::once(&self.device).chain(&self.further)
    }

    /// The rules of all classes with the place of their class in [`Config::classes`]; the
    /// first that matches decides.
    pub fn rules(&self) -> impl Iterator<Item = (usize, Rule)> {
        self.classes.iter().enumerate().flat_map(|(i, class)| class.rules().map(move |rule| (i, rule)))
    }

    /// The place of the class of a packet in [`Config::classes`].
    pub fn class_of(&self, source: IpAddr, dscp: u8, local_port: u16) -> usize {
        let matching = self.rules().find(|(_, rule)| rule.matches(source, dscp, local_port));
        matching.map_or_else(|| self.default_class(), |(class, _)| class)
    }

    /// The place of the default class in [`Config::classes`].
    pub fn default_class(&self) -> usize {
        self.classes.iter().position(|class| class.default).unwrap_or(0)
    }

    /// Whether a text that may be wrong is meant as a configuration: it has a device, which no graph has.
    pub fn is_one(text: &str) -> bool {
        let (table, _) = DeTable::parse_recoverable(if text.len() > LONGEST { "" } else { text });
        table.get_ref().contains_key("device")
    }

    fn read(mut file: Section<'_, '_>) -> Self {
        if !file.has("device") {
            let help = "say at least where: `[device]` and `interface = \"eth0\"`";
            let start = file.span().start;
            file.notes.missing(start..start, "there is no `[device]`".to_owned(), help.to_owned());
        }
        let graph = file.read("graph");
        let (device, further) = device::read_all(&mut file);
        let faults = file.notes.faults.len();
        let policies = policy::read_all(&mut file);
        let scheduler = Scheduler::read(file.table("scheduler", "[scheduler]"), !policies.is_empty());
        let shares_are_sound = file.notes.faults.len() == faults && !file.notes.broken;
        let listen = Listen::read(file.table("listen", "[listen]"), &scheduler);
        let placed = file.tables("class", "[[class]]", |section| Class::read(section, &scheduler, &policies));
        // Of a policy that is wrong nobody knows.
        let together = scheduler.policy != Policy::FixedPriority || !policies.is_empty();
        class::check_all(&placed, listen.priority, (device.kind, together), file.notes);
        if shares_are_sound {
            class::check_reserves(&placed, &scheduler, &policies, file.notes);
        }
        let mut classes: Vec<Class> = placed.into_iter().map(|placed| placed.class).collect();
        if !file.has("class") {
            classes.push(Class::ordinary());
        }
        if file.is_empty_list("class") {
            let help = "leave `class` out for one class that has all packets";
            let place = file.span_of("class");
            file.notes.missing(place, "there is no class in the list".to_owned(), help.to_owned());
        }
        let config = Self {
            graph,
            device,
            further,
            scheduler,
            policies,
            listen,
            classes,
            refuse: Refuse::read(file.table("refuse", "[refuse]")),
            memory: Memory::read(file.table("memory", "[memory]")),
            tcp: Tcp::read(file.table("tcp", "[tcp]")),
            control: Control::read(file.table("control", "[control]")),
        };
        file.finish();
        config
    }
}

/// Reads a document with `read`, faults of its syntax first. What stands on a line with such
/// a fault is not held against it a second time.
///
/// A text longer than [`LONGEST`] is one fault, and read as an empty one.
pub(crate) fn parse_document<T>(text: &str, notes: &mut Notes, read: impl FnOnce(Section<'_, '_>) -> T) -> T {
    let too_long = text.len() > LONGEST;
    let (table, errors) = DeTable::parse_recoverable(if too_long { "" } else { text });
    let line = |at: usize| text.as_bytes()[..at.min(text.len())].iter().filter(|&&b| b == b'\n').count();
    let mut syntax: Vec<Fault> = errors
        .into_iter()
        .map(|error| {
            let span = error.span().unwrap_or(text.len()..text.len());
            syntax_fault(error.message(), span, text)
        })
        .collect();
    if too_long {
        let message = format!("there are more than {LONGEST} bytes, which no configuration has");
        syntax.push(Fault { span: 0..0, message, help: None });
    }
    notes.broken = !syntax.is_empty();
    let value = read(Section::new("the outermost table", 0..text.len(), Some(table.get_ref()), notes));
    notes.settle_unknown();
    let broken: BTreeSet<usize> = syntax.iter().map(|fault| line(fault.span.start)).collect();
    notes.faults.retain(|fault| !broken.contains(&line(fault.span.start)));
    let more = syntax.len().saturating_sub(SYNTAX_FAULTS);
    syntax.truncate(SYNTAX_FAULTS);
    if more > 0
        && let Some(last) = syntax.last_mut()
    {
        last.help = Some(format!("{more} more like these follow: is this TOML at all?"));
    }
    notes.faults.extend(syntax);
    value
}

/// So many faults of the syntax are told: of a file of another kind each line is one.
const SYNTAX_FAULTS: usize = 16;

/// The parser's message, where it is one that helps; else what it comes from.
fn syntax_fault(message: &str, span: Range<usize>, text: &str) -> Fault {
    if let Some(fault) = without_quotes(message, &span, text) {
        return fault;
    }
    let written = text.get(span.clone()).unwrap_or_default().trim();
    let (message, help) = match message.strip_prefix("string values must be quoted") {
        None => (message.replace('\n', " "), None),
        Some(_) if written.is_empty() => ("there is no value".to_owned(), None),
        Some(_) => {
            let help = format!("a text is in quotes: `\"{}\"`", written.escape_debug());
            ("this is no value".to_owned(), Some(help))
        }
    };
    Fault { span, message, help }
}

/// What begins as `true`, a number or a time of day does, and is none: a text whose quotes are missing, such
/// as `native` or `10.0.0.1`. The parser takes it for what it begins as.
fn without_quotes(message: &str, span: &Range<usize>, text: &str) -> Option<Fault> {
    const TAKEN_FOR: [&str; 3] = ["invalid float", "invalid boolean", "invalid datetime"];
    if !TAKEN_FOR.iter().any(|taken| message.starts_with(taken)) {
        return None;
    }
    let ends = |c: char| c.is_whitespace() || "=,[]{}#\"'".contains(c);
    let start = span.start - text.get(..span.start)?.rsplit(ends).next()?.len();
    let word = text.get(start..)?.split(ends).next()?;
    let small = word.to_ascii_lowercase();
    let help = match &*small {
        "true" | "false" => format!("it is written small: `{small}`"),
        _ if word.contains(|c: char| c.is_alphabetic() || c == ':') || word.matches('.').count() > 1 => {
            format!("a text is in quotes: `\"{}\"`", word.escape_debug())
        }
        _ => return None,
    };
    Some(Fault { span: start..start + word.len(), message: "this is no value".to_owned(), help: Some(help) })
}

/// Every key a configuration can have, with the section it is in, such as
/// `("[device]", "kind")`.
pub fn keys() -> Vec<(String, &'static str)> {
    let mut notes = Notes::default();
    let text = "[device]\n[[policy]]\n[[class]]\n[class.limits]\n";
    parse_document(text, &mut notes, Config::read);
    notes.keys.sort();
    notes.keys.dedup();
    notes.keys
}

impl TryFrom<&Source> for Config {
    type Error = Faults;
    fn try_from(source: &Source) -> Result<Self, Faults> {
        Self::parse(&source.name, &source.text)
    }
}
