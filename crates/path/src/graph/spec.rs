//! A graph as plain data: what a configuration file or a program says, before anything has
//! been checked. Also the catalogue of module kinds it is checked against.

use crate::module::Module;
use crate::service::Service;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// The value of a module's parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Number(i64),
    /// Yes or no.
    Flag(bool),
    /// Several values.
    List(Vec<Value>),
}

/// One module of the graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModuleSpec {
    /// Its name in this graph.
    pub name: String,
    /// Its kind: which module it is.
    pub kind: String,
    /// Its parameters.
    pub parameters: Vec<(String, Value)>,
}

impl ModuleSpec {
    /// The parameter called `name`.
    pub fn parameter(&self, name: &str) -> Option<&Value> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

/// One end of a link: a module's service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// The module's name.
    pub module: String,
    /// The service's name.
    pub service: String,
}

impl End {
    /// Reads `module.service`.
    pub fn parse(text: &str) -> Option<Self> {
        let (module, service) = text.split_once('.')?;
        Some(Self { module: module.into(), service: service.into() })
    }
}

/// A link between two services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkSpec {
    /// One end.
    pub from: End,
    /// The other.
    pub to: End,
}

/// A graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphSpec {
    /// Its modules, in the order of their ids.
    pub modules: Vec<ModuleSpec>,
    /// Its links.
    pub links: Vec<LinkSpec>,
}

impl GraphSpec {
    /// With a module of `kind` called `name`.
    #[must_use]
    pub fn module(mut self, name: &str, kind: &str, parameters: &[(&str, Value)]) -> Self {
        let parameters = parameters.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        self.modules.push(ModuleSpec { name: name.into(), kind: kind.into(), parameters });
        self
    }

    /// With a link between two `module.service`s. A text without a dot names no service, which
    /// the check will say.
    #[must_use]
    pub fn link(mut self, from: &str, to: &str) -> Self {
        let end = |text: &str| {
            End::parse(text).unwrap_or_else(|| End { module: text.into(), service: String::new() })
        };
        self.links.push(LinkSpec { from: end(from), to: end(to) });
        self
    }
}

/// What a parameter may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// Any text.
    Text,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A whole number from the first to the second.
    Number(i64, i64),
    /// Yes or no.
    Flag,
    /// An IPv4 address.
    Address,
    /// An IPv4 address with the length of its network's prefix, `10.0.0.1/24`.
    Network,
    /// An Ethernet address.
    LinkAddress,
    /// Several values of one of the other sorts.
    List(&'static ParameterKind),
}

/// A parameter that a kind of module understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it may hold.
    pub kind: ParameterKind,
    /// The module cannot do without it.
    pub required: bool,
}

/// A kind of module.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name in graph files.
    pub name: &'static str,
    /// Its services.
    pub services: &'static [Service],
    /// Its parameters.
    pub parameters: &'static [Parameter],
}

/// The kinds there are, and how to make a module of each.
pub trait Catalogue {
    /// The kinds.
    fn kinds(&self) -> &[Kind];

    /// Makes the module that a checked `spec` describes, or says what is wrong with which
    /// parameter.
    fn make(&self, spec: &ModuleSpec) -> Result<Box<dyn Module>, BadParameter>;
}

/// A parameter's value that only its module can refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadParameter {
    /// The parameter.
    pub name: String,
    /// What is wrong.
    pub what: String,
}
