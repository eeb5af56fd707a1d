//! Checks a graph: names, kinds, parameters, links and their types, what must be linked, and
//! that there is an order in which the modules can be initialised (Scout §3.1 allows circles
//! of links, but not of needs). Finds every fault in one go.

use super::fault::{Fault, Place, What};
use super::spec::{Catalogue, End, GraphSpec, Kind, ModuleSpec, Parameter, ParameterKind, Value};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;

/// The most modules of a graph.
pub const MAX_MODULES: usize = 64;

/// A link as indices: module and service at either end.
pub(super) type Link = [(usize, usize); 2];

/// What a check leaves: the links as indices and the order of initialisation, both to be used
/// only when there were no faults.
pub(super) struct Checked {
    pub links: Vec<Link>,
    pub order: Vec<usize>,
    pub faults: Vec<Fault>,
}

/// Every fault of `spec`.
pub fn check(spec: &GraphSpec, catalogue: &dyn Catalogue) -> Vec<Fault> {
    check_all(spec, catalogue).faults
}

pub(super) fn check_all(spec: &GraphSpec, catalogue: &dyn Catalogue) -> Checked {
    let mut faults = Vec::new();
    let kinds: Vec<Option<&Kind>> = spec
        .modules
        .iter()
        .map(|module| catalogue.kinds().iter().find(|kind| kind.name == module.kind))
        .collect();
    for (n, module) in spec.modules.iter().enumerate() {
        check_module(spec, n, module, kinds[n], catalogue, &mut faults);
    }
    let mut links = Vec::new();
    for n in 0..spec.links.len() {
        check_link(spec, n, &kinds, &mut links, &mut faults);
    }
    missing_links(&kinds, &links, &mut faults);
    let order = order(spec, &kinds, &links, &mut faults);
    Checked { links, order, faults }
}

fn check_module(
    spec: &GraphSpec,
    n: usize,
    module: &ModuleSpec,
    kind: Option<&Kind>,
    catalogue: &dyn Catalogue,
    faults: &mut Vec<Fault>,
) {
    let mut fault = |what| faults.push(Fault { place: Place::Module(n), what });
    if n == MAX_MODULES {
        fault(What::TooManyModules(MAX_MODULES));
    }
    if spec.modules[..n].iter().any(|other| other.name == module.name) {
        fault(What::DuplicateModule(module.name.clone()));
    }
    match kind {
        Some(kind) => check_parameters(n, module, kind, faults),
        None => {
            let names = catalogue.kinds().iter().map(|kind| kind.name);
            fault(What::UnknownKind { kind: module.kind.clone(), nearest: nearest(&module.kind, names) });
        }
    }
}

fn check_parameters(n: usize, module: &ModuleSpec, kind: &Kind, faults: &mut Vec<Fault>) {
    for (name, value) in &module.parameters {
        let place = Place::Parameter(n, name.clone());
        let Some(parameter) = kind.parameters.iter().find(|known| known.name == name) else {
            let nearest = nearest(name, kind.parameters.iter().map(|known| known.name));
            faults.push(Fault { place, what: What::UnknownParameter { name: name.clone(), nearest } });
            continue;
        };
        if let Err(wanted) = fits(value, parameter.kind) {
            faults.push(Fault { place, what: What::BadParameter(format!("this must be {wanted}")) });
        }
    }
    let missing = |p: &&Parameter| p.required && module.parameter(p.name).is_none();
    for parameter in kind.parameters.iter().filter(missing) {
        faults.push(Fault { place: Place::Module(n), what: What::MissingParameter(parameter.name) });
    }
}

/// Whether the value is of the sort; else what it must be.
fn fits(value: &Value, kind: ParameterKind) -> Result<(), String> {
    let good = match (value, kind) {
        (Value::Text(_), ParameterKind::Text) | (Value::Flag(_), ParameterKind::Flag) => true,
        (Value::Text(text), ParameterKind::OneOf(texts)) => texts.contains(&text.as_str()),
        (Value::Number(number), ParameterKind::Number(from, to)) => (from..=to).contains(number),
        (Value::Text(text), ParameterKind::Address) => text.parse::<IpAddr>().is_ok(),
        (Value::Text(text), ParameterKind::Network) => network(text).is_some(),
        (Value::Text(text), ParameterKind::LinkAddress) => link_address(text).is_some(),
        (Value::List(values), ParameterKind::List(kind)) => {
            return values.iter().try_for_each(|value| fits(value, *kind));
        }
        _ => false,
    };
    if good { Ok(()) } else { Err(wanted(kind)) }
}

fn wanted(kind: ParameterKind) -> String {
    match kind {
        ParameterKind::Text => "a text".to_string(),
        ParameterKind::OneOf(texts) => format!("one of \"{}\"", texts.join("\", \"")),
        ParameterKind::Number(from, to) => format!("a number from {from} to {to}"),
        ParameterKind::Flag => "true or false".to_string(),
        ParameterKind::Address => "an address such as \"10.0.0.1\"".to_string(),
        ParameterKind::Network => "an address with its prefix such as \"10.0.0.1/24\"".to_string(),
        ParameterKind::LinkAddress => "an Ethernet address such as \"02:00:00:00:00:01\"".to_string(),
        ParameterKind::List(kind) => format!("a list, each {}", wanted(*kind)),
    }
}

/// Reads `10.0.0.1/24` or `2001:db8::1/64`: an address and the length of its network's prefix.
pub fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv6() { 128 } else { 32 };
    Some((address, length.parse().ok().filter(|length| *length <= most)?))
}

/// Reads an Ethernet address.
pub fn link_address(text: &str) -> Option<[u8; 6]> {
    let mut parts = text.split(':');
    let mut bytes = [0; 6];
    for byte in &mut bytes {
        let part = parts.next().filter(|part| part.len() == 2 && !part.starts_with('+'))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(bytes)
}

fn check_link(
    spec: &GraphSpec,
    n: usize,
    kinds: &[Option<&Kind>],
    links: &mut Vec<Link>,
    faults: &mut Vec<Fault>,
) {
    let link = &spec.links[n];
    let from = find(spec, kinds, &link.from, Place::From(n), faults);
    let to = find(spec, kinds, &link.to, Place::To(n), faults);
    let (Some(from), Some(to)) = (from, to) else { return };
    let kind_of = |(module, service): (usize, usize)| kinds[module].map(|kind| kind.services[service].kind);
    let (Some(from_kind), Some(to_kind)) = (kind_of(from), kind_of(to)) else { return };
    let mut fault = |what| faults.push(Fault { place: Place::Link(n), what });
    if !from_kind.matches(to_kind) {
        fault(What::TypeMismatch { from: from_kind, to: to_kind });
    } else if links.contains(&[from, to]) || links.contains(&[to, from]) {
        fault(What::DuplicateLink);
    } else {
        links.push([from, to]);
    }
}

/// The module and service that an end names. `None` without a fault where the module's kind
/// is unknown, which has been said already.
fn find(
    spec: &GraphSpec,
    kinds: &[Option<&Kind>],
    end: &End,
    place: Place,
    faults: &mut Vec<Fault>,
) -> Option<(usize, usize)> {
    let Some(module) = spec.modules.iter().position(|module| module.name == end.module) else {
        let nearest = nearest(&end.module, spec.modules.iter().map(|module| module.name.as_str()));
        let what = What::UnknownModule { module: end.module.clone(), nearest };
        faults.push(Fault { place, what });
        return None;
    };
    let services = kinds[module]?.services;
    let service = services.iter().position(|service| service.name == end.service);
    if service.is_none() {
        let known = services.iter().map(|service| service.name).collect();
        faults.push(Fault { place, what: What::UnknownService { end: end.clone(), known } });
    }
    Some((module, service?))
}

fn missing_links(kinds: &[Option<&Kind>], links: &[Link], faults: &mut Vec<Fault>) {
    for (module, kind) in kinds.iter().enumerate() {
        for (n, service) in kind.map_or(&[][..], |kind| kind.services).iter().enumerate() {
            if service.required && !links.iter().flatten().any(|end| *end == (module, n)) {
                let what = What::MissingLink { service: service.name, kind: service.kind };
                faults.push(Fault { place: Place::Module(module), what });
            }
        }
    }
}

/// An order in which every module comes after those it needs.
fn order(spec: &GraphSpec, kinds: &[Option<&Kind>], links: &[Link], faults: &mut Vec<Fault>) -> Vec<usize> {
    let needs = |(module, service): (usize, usize)| kinds[module].is_some_and(|k| k.services[service].needs);
    let mut needed = vec![Vec::new(); spec.modules.len()];
    for [from, to] in links {
        if needs(*from) {
            needed[from.0].push(to.0);
        }
        if needs(*to) {
            needed[to.0].push(from.0);
        }
    }
    let mut order: Vec<usize> = Vec::new();
    loop {
        let ready = |n: &usize| !order.contains(n) && needed[*n].iter().all(|need| order.contains(need));
        match (0..spec.modules.len()).find(ready) {
            Some(n) => order.push(n),
            None => break,
        }
    }
    let stuck: Vec<usize> = (0..spec.modules.len()).filter(|n| !order.contains(n)).collect();
    if let Some(first) = stuck.first() {
        let names = stuck.iter().map(|n| spec.modules[*n].name.clone()).collect();
        faults.push(Fault { place: Place::Module(*first), what: What::NoOrder(names) });
    }
    order
}

/// The candidate nearest to `text`, when one is near: at most a third of it mistyped.
fn nearest<'c>(text: &str, candidates: impl Iterator<Item = &'c str>) -> Option<String> {
    let near = |candidate: &&str| distance(text, candidate) <= text.len().max(candidate.len()).div_ceil(3);
    candidates.filter(near).min_by_key(|candidate| distance(text, candidate)).map(String::from)
}

/// Levenshtein's distance, in bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = core::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
