//! `[[class]]`: which packets matter how much, and what each class may use. A packet belongs
//! to the first class of the file that has a rule it matches, else to the default class. A
//! class's rules are all combinations of its sources, code points and local ports.

use crate::address::{Dscp, Prefix};
use crate::device::DeviceKind;
use crate::policy::{self, SharedPolicy};
use crate::read::{Notes, Section};
use crate::scheduler::{Scheduler, read_priority};
use crate::tcp::Congestion;
use crate::value::{ByteSize, Percent};
use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

/// The most rules of all classes together: what the classifier's table holds.
pub const RULES: usize = 64;
/// The most different priorities of the classes and the listen paths: one domain each.
pub const PRIORITIES: usize = 16;

/// `[[class]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// What it is called in `silk paths`.
    pub name: String,
    /// Higher runs first; 0 is that of ordinary work.
    pub priority: u8,
    /// Up to which priority a program may raise its own paths of this class (SILK §5.3).
    /// Lowering is always allowed.
    pub max_priority: u8,
    /// Where its packets come from; empty for anywhere.
    pub source: Vec<Prefix>,
    /// Their code points; empty for any.
    pub dscp: Vec<Dscp>,
    /// The ports of this machine they are for; empty for any.
    pub local_port: Vec<u16>,
    /// Whether it has the packets no other class has.
    pub default: bool,
    /// The weight of each of its paths (WFQ, BERT).
    pub weight: u32,
    /// How long a message may take, which makes its deadline (EDF, deadline/workahead).
    pub delay: Option<Duration>,
    /// Processor time set aside for each of its paths (BERT, EDF); its period stands in for a delay (EDF).
    pub reserve: Option<Reserve>,
    /// Whether its deadlines may take from others and others' not from it (BERT).
    pub important: bool,
    /// The congestion control of its connections; `None` for that of `[tcp]`.
    pub congestion: Option<Congestion>,
    /// Which of the policies orders its paths: its place in [`Config::policies`](crate::Config::policies), 0 where there is one.
    pub policy: u8,
    /// What it may use.
    pub limits: Limits,
}

/// `reserve = { budget = …, period = … }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Processor time per period.
    pub budget: Duration,
    /// The period, at least the budget.
    pub period: Duration,
}

/// `[class.limits]`: what a class may use; beyond it paths are refused and packets dropped,
/// each with a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Paths at once; `None` for as many as memory allows.
    pub paths: Option<u32>,
    /// Memory of all its paths; `None` for what the daemon has.
    pub memory: Option<ByteSize>,
    /// Memory of one path.
    pub path_memory: Option<ByteSize>,
    /// Messages in the input queue of one path.
    pub queue: u32,
    /// TCP segments in a second that belong to no connection, on each CPU that receives (xdp); `None` for
    /// as many as come.
    pub openings: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { paths: None, memory: None, path_memory: None, queue: 256, openings: None }
    }
}

/// One rule of a class. What is `None` matches anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where the packet comes from, over either IP.
    pub source: Option<Prefix>,
    /// Its code point.
    pub dscp: Option<Dscp>,
    /// The port of this machine it is for.
    pub local_port: Option<u16>,
}

impl Rule {
    /// Whether a packet matches.
    pub fn matches(&self, source: IpAddr, dscp: u8, local_port: u16) -> bool {
        self.source.is_none_or(|own| own.contains(source))
            && self.dscp.is_none_or(|own| own.get() == dscp)
            && self.local_port.is_none_or(|own| own == local_port)
    }

    /// Whether every packet that matches `other` matches this.
    fn covers(&self, other: &Self) -> bool {
        self.source.is_none_or(|own| other.source.is_some_and(|other| own.covers(other)))
            && (self.dscp.is_none() || self.dscp == other.dscp)
            && (self.local_port.is_none() || self.local_port == other.local_port)
    }
}

impl Reserve {
    /// The part of a CPU that it is.
    fn part(self) -> Percent {
        Percent::of_time(self.budget, self.period)
    }
}

impl Class {
    /// The class there is when the file has none.
    pub(crate) fn ordinary() -> Self {
        Self {
            name: "standard".to_owned(),
            priority: 0,
            max_priority: 0,
            source: Vec::new(),
            dscp: Vec::new(),
            local_port: Vec::new(),
            default: true,
            weight: 1,
            delay: None,
            reserve: None,
            important: false,
            congestion: None,
            policy: 0,
            limits: Limits::default(),
        }
    }

    /// Its rules: none for the default class, which needs none.
    pub fn rules(&self) -> impl Iterator<Item = Rule> {
        let sources = or_any(&self.source).filter(|_| self.selects());
        sources.flat_map(move |source| {
            or_any(&self.dscp).flat_map(move |dscp| {
                or_any(&self.local_port).map(move |local_port| Rule { source, dscp, local_port })
            })
        })
    }

    /// Whether it says which packets it has.
    fn selects(&self) -> bool {
        !(self.source.is_empty() && self.dscp.is_empty() && self.local_port.is_empty())
    }

    /// How many rules it has.
    fn rule_count(&self) -> usize {
        let lists = [self.source.len(), self.dscp.len(), self.local_port.len()];
        if self.selects() { lists.into_iter().fold(1, |all, len| all.saturating_mul(len.max(1))) } else { 0 }
    }

    pub(crate) fn read(
        mut section: Section<'_, '_>,
        scheduler: &Scheduler,
        policies: &[SharedPolicy],
    ) -> Placed {
        let faults = section.notes.faults.len();
        let priority = read_priority(&mut section, "priority", scheduler, 0);
        let class = Self {
            name: section.or("name", String::new()),
            priority,
            max_priority: read_priority(&mut section, "max_priority", scheduler, priority),
            source: section.or("source", Vec::new()),
            dscp: section.or("dscp", Vec::new()),
            local_port: section.or("local_port", Vec::new()),
            default: section.or("default", false),
            weight: section.within("weight", 1, 1..=1 << 20),
            delay: section.between("delay", Duration::from_micros(1)..=Duration::from_secs(60)),
            reserve: read_reserve(&mut section),
            important: section.or("important", false),
            congestion: section.read("congestion"),
            policy: policy::of_class(&mut section, policies),
            limits: read_limits(section.table("limits", "[class.limits]")),
        };
        check_name(&class, &mut section);
        check_selectors(&class, &mut section);
        check_max_priority(&class, &mut section);
        let placed = Placed {
            sound: section.notes.faults.len() == faults,
            default_is_known: !section.is_wrong("default"),
            span: section.span(),
            name: section.span_of("name"),
            default: section.span_of("default"),
            limits: section.span_of("limits"),
            reserve: section.span_of("reserve"),
            class,
        };
        section.finish();
        placed
    }
}

/// Each of a list, or once anything.
fn or_any<T: Copy>(list: &[T]) -> impl Iterator<Item = Option<T>> {
    list.iter().copied().map(Some).chain(list.is_empty().then_some(None))
}

/// A class and where it, its name, its `default`, its limits and its `reserve` stand.
pub(crate) struct Placed {
    pub(crate) class: Class,
    /// Nothing was wrong with it; otherwise its rules may not be what was meant.
    sound: bool,
    /// Whether it is the default is known: what it says of that is not wrong.
    default_is_known: bool,
    span: Range<usize>,
    name: Range<usize>,
    default: Range<usize>,
    limits: Range<usize>,
    reserve: Range<usize>,
}

fn check_name(class: &Class, section: &mut Section<'_, '_>) {
    section.require("name", "every class has one: `name = \"preferred\"`");
    let plain = class.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if section.has("name") && (!plain || class.name.is_empty() || class.name.len() > 32) {
        let span = section.span_of("name");
        let help = "1 to 32 letters, digits, `-`, `_` and `.`";
        section.notes.advise(span, "this cannot be the name of a class", help);
    }
}

fn check_selectors(class: &Class, section: &mut Section<'_, '_>) {
    const SELECTORS: [&str; 3] = ["source", "dscp", "local_port"];
    let selects = SELECTORS.iter().any(|key| section.has(key));
    if class.default {
        for key in SELECTORS {
            section.forbid(key, "the default class has every packet no other class has");
        }
    } else if !selects && !section.is_wrong("default") {
        let span = section.span();
        section.notes.missing(
            span,
            "this class has no packets".to_owned(),
            "give it a `source`, `dscp` or `local_port`, or make it the default: `default = true`".to_owned(),
        );
    }
    for key in SELECTORS {
        let empty = match key {
            "source" => class.source.is_empty(),
            "dscp" => class.dscp.is_empty(),
            _ => class.local_port.is_empty(),
        };
        if section.has(key) && empty && !section.is_wrong(key) {
            let span = section.span_of(key);
            section.notes.advise(span, "an empty list matches nothing", "leave it out to match anything");
        }
    }
    if class.local_port.contains(&0) {
        let span = section.span_of("local_port");
        section.notes.fault(span, "0 is no port");
    }
}

fn check_max_priority(class: &Class, section: &mut Section<'_, '_>) {
    let span = section.span_of("max_priority");
    if class.max_priority < class.priority {
        section.notes.advise(
            span,
            format!("paths of this class begin with priority {}, above `max_priority`", class.priority),
            "leave it out to forbid raising: a program may lower its paths without it",
        );
    }
}

fn read_reserve(section: &mut Section<'_, '_>) -> Option<Reserve> {
    let given = section.has("reserve");
    let mut table = section.table("reserve", "reserve");
    let (budget, period) = (table.read::<Duration>("budget"), table.read::<Duration>("period"));
    if given {
        let why = "a reservation is `{ budget = \"1ms\", period = \"10ms\" }`";
        table.require("budget", why);
        table.require("period", why);
    }
    if let (Some(budget), Some(period)) = (budget, period)
        && (budget.is_zero() || budget > period)
    {
        let span = table.span_of("budget");
        table.notes.fault(span, "the budget must be more than nothing and at most the period");
    }
    table.finish();
    Some(Reserve { budget: budget?, period: period? })
}

fn read_limits(mut section: Section<'_, '_>) -> Limits {
    let limits = Limits {
        paths: section.between("paths", 1..=1 << 24),
        memory: section.read("memory"),
        path_memory: section.read("path_memory"),
        queue: section.within("queue", Limits::default().queue, 1..=65536),
        openings: section.between("openings", 1..=u32::MAX),
    };
    if let (Some(memory), Some(path)) = (limits.memory, limits.path_memory)
        && path > memory
    {
        let span = section.span_of("path_memory");
        section.notes.fault(span, format!("one path may not have more than the class's {memory}"));
    }
    section.finish();
    limits
}

/// What the classes must be together, on a device of this kind, and whether one executor serves them all.
pub(crate) fn check_all(
    classes: &[Placed],
    listen_priority: u8,
    (kind, together): (DeviceKind, bool),
    notes: &mut Notes,
) {
    for (i, later) in classes.iter().enumerate() {
        let same = |earlier: &&Placed| earlier.class.name == later.class.name && !later.class.name.is_empty();
        if classes[..i].iter().any(|earlier| same(&earlier)) {
            let message = format!("there is a class `{}` already", later.class.name);
            notes.advise(later.name.clone(), message, "classes are told apart by their names");
        }
    }
    let counting = classes.iter().filter(|placed| placed.class.limits.openings.is_some());
    for placed in counting.filter(|_| kind != DeviceKind::Xdp) {
        let help = "only `kind = \"xdp\"` counts them";
        notes.advise(placed.limits.clone(), "`openings` has no meaning here", help);
    }
    if kind == DeviceKind::Xdp {
        check_openings(classes, together, notes);
    }
    check_default(classes, notes);
    check_priorities(classes, listen_priority, notes);
    check_rules(classes, notes);
}

/// No class reserves what its policy can never promise: its paths would all go without.
pub(crate) fn check_reserves(
    classes: &[Placed],
    scheduler: &Scheduler,
    policies: &[SharedPolicy],
    notes: &mut Notes,
) {
    for placed in classes.iter().filter(|placed| placed.sound) {
        let Some(asked) = placed.class.reserve.map(Reserve::part) else { continue };
        let shared = policies.get(usize::from(placed.class.policy));
        let kind = shared.map_or(scheduler.policy, |policy| policy.kind);
        let most = kind.promises(scheduler.part_of(kind, shared.map(|policy| policy.share)));
        if kind.reserves() && asked > most {
            let message = format!("this is {asked} of a CPU, and its policy can promise at most {most}");
            let help = match shared {
                None => "take a smaller `budget`, or a smaller `linux_share`".to_owned(),
                Some(SharedPolicy { name, .. }) => format!(
                    "take a smaller `budget`, a smaller `linux_share`, or a larger `share` of the policy `{}`",
                    name.escape_debug()
                ),
            };
            notes.advise(placed.reserve.clone(), message, help);
        }
    }
}

/// Where openings are counted together, those of a class without a limit have none, and nobody's have.
fn check_openings(classes: &[Placed], together: bool, notes: &mut Notes) {
    for placed in classes.iter().filter(|placed| placed.class.limits.openings.is_some()) {
        let is_beside = |other: &&Placed| together || other.class.priority == placed.class.priority;
        let mut beside = classes.iter().filter(is_beside);
        let Some(other) = beside.find(|other| other.class.limits.openings.is_none()) else { continue };
        let name = other.class.name.escape_debug();
        let message =
            format!("`openings` limits nothing here: class `{name}` has none, and they are counted together");
        let whose = if together { "with this policy those of all classes" } else { "those of one priority" };
        notes.advise(placed.limits.clone(), message, format!("{whose} are: give each of them `openings`"));
    }
}

fn check_default(classes: &[Placed], notes: &mut Notes) {
    let mut defaults = classes.iter().filter(|placed| placed.class.default);
    let first = defaults.next();
    let all_are_known = classes.iter().all(|placed| placed.default_is_known);
    if let (None, Some(class), true) = (first, classes.first(), all_are_known) {
        let help = "one class must have the packets no other has: `default = true`";
        notes.missing(class.span.clone(), "no class is the default".to_owned(), help.to_owned());
    }
    for another in defaults {
        let name = first.map_or("", |placed| &placed.class.name);
        let message = "only one class can be the default";
        notes.advise(another.default.clone(), message, format!("class `{name}` is already"));
    }
}

fn check_priorities(classes: &[Placed], listen_priority: u8, notes: &mut Notes) {
    let mut seen = vec![listen_priority];
    for placed in classes {
        if seen.contains(&placed.class.priority) {
            continue;
        }
        seen.push(placed.class.priority);
        if seen.len() == PRIORITIES + 1 {
            notes.fault(
                placed.span.clone(),
                format!("classes and listen paths have more than {PRIORITIES} different priorities"),
            );
        }
    }
}

fn check_rules(classes: &[Placed], notes: &mut Notes) {
    let count = classes.iter().map(|placed| placed.class.rule_count()).fold(0, usize::saturating_add);
    if count > RULES {
        let largest = classes.iter().max_by_key(|placed| placed.class.rule_count());
        notes.advise(
            largest.map_or(0..0, |placed| placed.span.clone()),
            format!("the classes have {count} rules together; there is room for {RULES}"),
            "a class has a rule for each combination of its sources, code points and local ports",
        );
        return;
    }
    let classes: Vec<&Placed> = classes.iter().filter(|placed| placed.sound).collect();
    for (i, later) in classes.iter().enumerate() {
        for rule in later.class.rules() {
            let hides = |placed: &&&Placed| placed.class.rules().any(|earlier| earlier.covers(&rule));
            if let Some(earlier) = classes[..i].iter().find(hides) {
                notes.advise(
                    later.span.clone(),
                    format!("a rule of class `{}` never matches: {}", later.class.name, described(&rule)),
                    format!("class `{}` comes first and has those packets already", earlier.class.name),
                );
            }
        }
    }
}

fn described(rule: &Rule) -> String {
    let mut parts = Vec::new();
    parts.extend(rule.source.map(|source| format!("source {source}")));
    parts.extend(rule.dscp.map(|dscp| format!("code point {}", dscp.get())));
    parts.extend(rule.local_port.map(|port| format!("local port {port}")));
    parts.join(", ")
}
