//! The text of a module graph (Scout §3.1): which modules there are and which of their
//! services are connected. [`Graph::parse`] checks what the text alone tells;
//! [`Graph::check`] also asks a catalogue whether the kinds exist, have these parameters and
//! services, and whether the types of linked services match; [`Graph::check_for`] whether it is one for a configuration. Nothing is
//! made or run here.

use crate::config::{Config, parse_document};
use crate::device::DeviceKind;
use crate::fault::{Fault, Faults};
use crate::name::{is_name, read_name};
use crate::path::NamedPath;
use crate::read::{Notes, Section, Value, expected};
use crate::source::LONGEST;
use crate::suggest::suggestion;
use silk_path::Catalogue;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A module graph: names are unique and links lead to modules that exist.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The modules, in the order of the file.
    pub modules: Vec<Module>,
    /// The links, in the order of the file.
    pub links: Vec<Link>,
    /// Paths that have a name, for sockets of `PF_SCOUT` (SILK §3.1).
    pub paths: Vec<NamedPath>,
}

/// `[[module]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// What links call it.
    pub name: String,
    /// Which module it is, such as `tcp`; its name unless given.
    pub kind: String,
    /// Everything else that is given: the module's own affair.
    pub params: Vec<Param>,
    /// Where it stands.
    pub span: Range<usize>,
}

/// One parameter of a module.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: silk_path::Value,
    /// Where the value stands.
    pub span: Range<usize>,
}

/// A link between two services. Links have no direction; `from` is the upper by custom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The end written first.
    pub from: Endpoint,
    /// The end written second.
    pub to: Endpoint,
    /// Where it stands.
    pub span: Range<usize>,
}

/// A service of a module: `udp.down`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The module's name.
    pub module: String,
    /// The service's name.
    pub service: String,
    /// Where it stands.
    pub span: Range<usize>,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.module, self.service)
    }
}

impl Graph {
    /// Parses a graph; `name` is what messages call it.
    ///
    /// # Errors
    /// All its [`Faults`] that the text alone tells.
    pub fn parse(name: &str, text: &str) -> Result<Self, Faults> {
        Self::parse_with(name, text, |_| Vec::new())
    }

    /// Parses a graph and checks it against the modules there are.
    ///
    /// # Errors
    /// All its [`Faults`].
    pub fn check(name: &str, text: &str, catalogue: &dyn Catalogue) -> Result<Self, Faults> {
        Self::parse_with(name, text, |graph| graph.faults(catalogue))
    }

    /// As [`Self::check`], for a daemon with this configuration.
    ///
    /// # Errors
    /// All its [`Faults`]: besides, a `vnet` stands for a device that there is, and for all of them where there are several.
    pub fn check_for(
        config: &Config,
        (name, text): (&str, &str),
        catalogue: &dyn Catalogue,
    ) -> Result<Self, Faults> {
        Self::parse_with(name, text, |graph| {
            let devices = graph.modules.iter().filter(|module| module.kind == "vnet");
            let numbers = devices.flat_map(|module| &module.params).filter(|param| param.key == "device");
            let wrong = numbers.filter_map(|number| device_fault(config, number));
            graph.faults(catalogue).into_iter().chain(wrong).collect()
        })
    }

    fn parse_with(name: &str, text: &str, more: impl FnOnce(&Self) -> Vec<Fault>) -> Result<Self, Faults> {
        let mut notes = Notes::default();
        let (modules, links, paths) = parse_document(text, &mut notes, read);
        let graph = Self { modules, links, paths };
        notes.faults.extend(more(&graph));
        if notes.faults.is_empty() { Ok(graph) } else { Err(Faults::new(name, text, notes.faults)) }
    }

    /// Whether a text is a graph rather than a configuration: it has modules, links or
    /// paths. A text that is neither is taken for a configuration.
    pub fn is_one(text: &str) -> bool {
        let (table, _) = DeTable::parse_recoverable(if text.len() > LONGEST { "" } else { text });
        ["module", "link", "links", "path"].iter().any(|key| table.get_ref().contains_key(*key))
    }

    /// The module of this name.
    pub fn module(&self, name: &str) -> Option<&Module> {
        self.modules.iter().find(|module| module.name == name)
    }
}

/// What is wrong with the number of a `vnet`'s device. What is no number at all is its own fault.
fn device_fault(config: &Config, param: &Param) -> Option<Fault> {
    let silk_path::Value::Number(number) = param.value else { return None };
    // Where the address is silk's alone, what leads back to it is the next.
    let there_are = if config.device.kind == DeviceKind::Xdp { 1 } else { 2 };
    let message = if !config.further.is_empty() {
        "the configuration has several devices, and a `vnet` stands for all of them".to_owned()
    } else if !(0..there_are).contains(&number) {
        format!("the configuration has no device {number}")
    } else {
        return None;
    };
    Some(Fault { span: param.span.clone(), message, help: Some("leave `device` out".to_owned()) })
}

type Parts = (Vec<Module>, Vec<Link>, Vec<NamedPath>);

fn read(mut file: Section<'_, '_>) -> Parts {
    let modules: Vec<Module> = file.tables("module", "[[module]]", read_module);
    let mut links: Vec<Link> = file.or("links", Vec::new());
    links.extend(file.tables("link", "[[link]]", read_link).into_iter().flatten());
    let paths = file.tables("path", "[[path]]", NamedPath::read);
    let end = file.span().end;
    if modules.is_empty() && (!file.has("module") || file.is_empty_list("module")) {
        let help = "a graph has a `[[module]]` for each module and a `[[link]]` for each connection";
        file.notes.missing(end..end, "there are no modules".to_owned(), help.to_owned());
    }
    check_names(&modules, &paths, file.notes);
    check_links(&modules, &links, file.notes);
    for path in &paths {
        check_exists(&modules, &path.module, &path.module_span, file.notes);
        path.check(
            modules.iter().find(|module| module.name == path.module).map(|module| &*module.kind),
            file.notes,
        );
    }
    file.finish();
    (modules, links, paths)
}

fn read_module(mut section: Section<'_, '_>) -> Module {
    section.require("name", "every module has one: `name = \"tcp\"`");
    let name = read_name(&mut section, "name").unwrap_or_default();
    let kind = read_name(&mut section, "kind").unwrap_or_else(|| name.clone());
    let span = section.span();
    let params = read_params(&mut section);
    Module { name, kind, params, span }
}

fn read_link(mut section: Section<'_, '_>) -> Option<Link> {
    let why = "a link is `from = \"udp.down\"` and `to = \"ip.up\"`";
    section.require("from", why);
    section.require("to", why);
    let (from, to) = (section.read("from"), section.read("to"));
    let span = section.span();
    section.finish();
    Some(Link { from: from?, to: to?, span })
}

/// Everything in the section that was not asked for.
fn read_params(section: &mut Section<'_, '_>) -> Vec<Param> {
    let others: Vec<_> = section.others().collect();
    let mut params = Vec::new();
    for (key, _, value) in others {
        let setting = silk_path::Value::read(value, section.notes);
        params.extend(setting.map(|setting| Param {
            key: key.to_owned(),
            value: setting,
            span: value.span(),
        }));
    }
    params
}

impl Value for silk_path::Value {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        match value.get_ref() {
            DeValue::Boolean(flag) => Some(Self::Flag(*flag)),
            DeValue::String(text) => Some(Self::Text(text.to_string())),
            DeValue::Integer(integer) => {
                let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
                if number.is_none() {
                    notes.fault(value.span(), "this number is too large");
                }
                number.map(Self::Number)
            }
            DeValue::Array(array) => {
                Some(Self::List(array.iter().filter_map(|item| Self::read(item, notes)).collect()))
            }
            _ => expected("a text, a whole number, `true`, `false` or a list", value, notes),
        }
    }
}

impl Endpoint {
    fn parse(text: &str, span: Range<usize>) -> Option<Self> {
        let (module, service) = text.trim().split_once('.')?;
        (is_name(module) && is_name(service)).then(|| Self {
            module: module.to_owned(),
            service: service.to_owned(),
            span,
        })
    }
}

impl Value for Endpoint {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        let endpoint = Self::parse(&String::read(value, notes)?, value.span());
        if endpoint.is_none() {
            let help = "write the module's name, a point and the service's name: `udp.down`";
            notes.advise(value.span(), "this is no service of a module", help);
        }
        endpoint
    }
}

/// The compact form, `"udp.down -> ip.up"`.
impl Value for Link {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        let text = String::read(value, notes)?;
        let end = |text| Endpoint::parse(text, value.span());
        let ends = text.split_once("->").map(|(from, to)| (end(from), end(to)));
        let Some((Some(from), Some(to))) = ends else {
            notes.advise(value.span(), "this is no link", "write it like `\"udp.down -> ip.up\"`");
            return None;
        };
        Some(Self { from, to, span: value.span() })
    }
}

fn check_names(modules: &[Module], paths: &[NamedPath], notes: &mut Notes) {
    let modules = modules.iter().map(|module| ("module", &module.name, &module.span));
    let paths = paths.iter().map(|path| ("path", &path.name, &path.span));
    let mut seen = BTreeSet::new();
    for (what, name, span) in modules.chain(paths) {
        if !name.is_empty() && !seen.insert((what, name)) {
            let message = format!("there is a {what} `{name}` already");
            let help = match what {
                "module" => "a module used twice needs two names and one `kind`",
                _ => "programs ask for a path by its name",
            };
            notes.advise(span.clone(), message, help);
        }
    }
}

fn check_links(modules: &[Module], links: &[Link], notes: &mut Notes) {
    let mut seen = BTreeSet::new();
    for link in links {
        for end in [&link.from, &link.to] {
            check_exists(modules, &end.module, &end.span, notes);
        }
        let mut ends = [link.from.to_string(), link.to.to_string()];
        ends.sort();
        if ends[0] == ends[1] {
            notes.fault(link.span.clone(), format!("`{}` is linked to itself", link.from));
        } else if !seen.insert(ends) {
            notes.fault(link.span.clone(), format!("`{}` and `{}` are linked already", link.from, link.to));
        }
    }
}

fn check_exists(modules: &[Module], name: &str, span: &Range<usize>, notes: &mut Notes) {
    if !name.is_empty() && !modules.iter().any(|module| module.name == name) {
        // One whose name is missing, wrong or another's is a fault of its own.
        let mut seen = BTreeSet::from([""]);
        let names: Vec<&str> =
            modules.iter().map(|module| module.name.as_str()).filter(|&name| seen.insert(name)).collect();
        let message = format!("there is no module `{}`", name.escape_debug());
        notes.missing(span.clone(), message, suggestion(name, &names));
    }
}
