//! What can be wrong with a graph: every fault is found, none stops the search for others.

use super::spec::End;
use crate::service::ServiceType;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The part of the [`GraphSpec`](super::GraphSpec) a fault is in, so that whoever read it
/// from a file can say where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The n-th module.
    Module(usize),
    /// A parameter of the n-th module.
    Parameter(usize, String),
    /// The n-th link's `from`.
    From(usize),
    /// The n-th link's `to`.
    To(usize),
    /// The n-th link.
    Link(usize),
}

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// What.
    pub what: What,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// No such kind of module.
    UnknownKind {
        /// The kind.
        kind: String,
        /// The nearest there is.
        nearest: Option<String>,
    },
    /// The name is another module's.
    DuplicateModule(String),
    /// More modules than a graph can have.
    TooManyModules(usize),
    /// No such parameter.
    UnknownParameter {
        /// The parameter.
        name: String,
        /// The nearest there is.
        nearest: Option<String>,
    },
    /// A parameter that has to be there.
    MissingParameter(&'static str),
    /// A parameter's value is of the wrong sort, or out of its range.
    BadParameter(String),
    /// No module of this name.
    UnknownModule {
        /// The name.
        module: String,
        /// The nearest there is.
        nearest: Option<String>,
    },
    /// The module has no such service.
    UnknownService {
        /// The end of the link.
        end: End,
        /// The services it has.
        known: Vec<&'static str>,
    },
    /// The types of the two services do not match.
    TypeMismatch {
        /// The type at `from`.
        from: ServiceType,
        /// The type at `to`.
        to: ServiceType,
    },
    /// The two services are linked already.
    DuplicateLink,
    /// A service that has to be linked is not.
    MissingLink {
        /// The service.
        service: &'static str,
        /// Its type.
        kind: ServiceType,
    },
    /// These modules need one another: there is no order to initialise them in.
    NoOrder(Vec<String>),
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind { kind, nearest } => {
                write!(f, "there is no module of kind \"{kind}\"")?;
                suggest(f, nearest.as_deref())
            }
            Self::DuplicateModule(name) => write!(f, "there is a module \"{name}\" already"),
            Self::TooManyModules(most) => write!(f, "a graph has at most {most} modules"),
            Self::UnknownParameter { name, nearest } => {
                write!(f, "there is no parameter \"{name}\"")?;
                suggest(f, nearest.as_deref())
            }
            Self::MissingParameter(name) => write!(f, "the parameter \"{name}\" is missing"),
            Self::BadParameter(what) => f.write_str(what),
            Self::UnknownModule { module, nearest } => {
                write!(f, "there is no module \"{module}\"")?;
                suggest(f, nearest.as_deref())
            }
            Self::UnknownService { end, known } => {
                write!(f, "module \"{}\" has no service \"{}\"", end.module, end.service)?;
                match &known[..] {
                    [] => f.write_str("; it has none"),
                    known => write!(f, "; it has {}", known.join(", ")),
                }
            }
            Self::TypeMismatch { from, to } => {
                write!(f, "a service of type {from} cannot be linked to one of type {to}")
            }
            Self::DuplicateLink => f.write_str("these services are linked already"),
            Self::MissingLink { service, kind } => {
                write!(f, "its service \"{service}\" of type {kind} must be linked")
            }
            Self::NoOrder(modules) => {
                write!(
                    f,
                    "these modules need one another, so none can be initialised first: {}",
                    modules.join(", ")
                )
            }
        }
    }
}

fn suggest(f: &mut fmt::Formatter<'_>, nearest: Option<&str>) -> fmt::Result {
    nearest.map_or(Ok(()), |nearest| write!(f, "; did you mean \"{nearest}\"?"))
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Module(n) => write!(f, "module {}: ", n + 1)?,
            Place::Parameter(n, name) => write!(f, "module {}, parameter {name}: ", n + 1)?,
            Place::From(n) => write!(f, "link {}, from: ", n + 1)?,
            Place::To(n) => write!(f, "link {}, to: ", n + 1)?,
            Place::Link(n) => write!(f, "link {}: ", n + 1)?,
        }
        self.what.fmt(f)
    }
}

impl core::error::Error for Fault {}
