//! Modules (Scout's routers, §3.1): the unit of development. A module offers services, makes
//! its stage for a path, and classifies. What all its stages share (a cache, a table) is its
//! own state, reached through [`Cx::module`](crate::Cx::module): no locks, one domain, one
//! thread.

use crate::classify::{Answer, Between, View};
use crate::id::{ModuleId, PathId};
use crate::service::Service;
use crate::stream::ByteStream;
use crate::{Attr, Attrs, AttrsFull, Endpoint, Port, Refused, Stage};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;
use core::net::IpAddr;
use silk_instant::Instant;

/// Where a path goes on after a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It ends here: a leaf, or attributes too weak to decide.
    End,
    /// Through this service. With several links there, the path name decides; where it does
    /// not, the path ends.
    Service(u8),
    /// Through this service to the module that its n-th link leads to.
    Link(u8, u8),
}

/// A module's answer to path creation.
pub struct Step {
    /// Its stage; none from a module that only decides.
    pub stage: Option<Box<dyn Stage>>,
    /// Where the path goes on.
    pub next: Next,
}

/// A path in creation, phase 1.
pub struct Create<'a> {
    /// The time.
    pub now: Instant,
    /// The id the path will have.
    pub id: PathId,
    /// The attributes so far: a module may add, change and remove them.
    pub attrs: &'a mut Attrs,
    /// The program's buffers, for the stage that is to hold them.
    pub stream: &'a mut Option<Box<dyn ByteStream>>,
}

impl Create<'_> {
    /// Sets an attribute.
    pub fn set(&mut self, attr: Attr) -> Result<(), CreateError> {
        Ok(self.attrs.set(attr)?)
    }
}

/// Why a path was not created. Nothing is left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateError {
    /// The module to begin at does not exist.
    NoModule,
    /// The module cannot be part of a path, or not in this place.
    NotForPaths(&'static str),
    /// An attribute the module cannot do without.
    Missing(&'static str),
    /// More attributes than a path can have.
    AttrsFull,
    /// More stages than a path can have: the route runs in a circle.
    TooLong,
    /// There is no route to this address.
    NoRoute(IpAddr),
    /// The addresses are another path's already.
    Overlap {
        /// Our side.
        local: Endpoint,
        /// The other side.
        remote: Endpoint,
    },
    /// The classifier has no room for the path.
    ClassifierFull,
    /// As many paths as the table can hold.
    TableFull,
    /// Not admitted.
    Refused(Refused),
    /// What the attributes name is no longer there (a handshake that was given up).
    Gone,
}

impl From<AttrsFull> for CreateError {
    fn from(AttrsFull: AttrsFull) -> Self {
        Self::AttrsFull
    }
}

impl From<Refused> for CreateError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoModule => f.write_str("there is no such module in the graph"),
            Self::NotForPaths(kind) => write!(f, "a {kind} module cannot be in this place of a path"),
            Self::Missing(name) => write!(f, "the attribute {name} is missing"),
            Self::AttrsFull => f.write_str("too many attributes"),
            Self::TooLong => f.write_str("too many stages: the route runs in a circle"),
            Self::NoRoute(address) => write!(f, "no route to {address}"),
            Self::Overlap { local, remote } => {
                write!(f, "another path has the addresses {local} and {remote}")
            }
            Self::ClassifierFull => f.write_str("the classifier has no room for these addresses"),
            Self::TableFull => f.write_str("the path table is full"),
            Self::Refused(Refused::ClassPaths) => f.write_str("the class has all the paths it may have"),
            Self::Refused(Refused::ClassMemory) => f.write_str("the class has all the memory it may have"),
            Self::Refused(Refused::PathMemory) => f.write_str("the path needs more memory than it may have"),
            Self::Gone => f.write_str("what the path was for is gone"),
        }
    }
}

impl core::error::Error for CreateError {}

/// The answer of a [`Resolve`]r.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The neighbour's Ethernet address.
    Known([u8; 6]),
    /// Being asked for; the waiting path gets [`Report::Resolved`](crate::Report::Resolved).
    Pending,
    /// Being asked for, by as many paths as may wait: this one will not be told.
    Crowded,
    /// It does not answer.
    Failed,
}

/// A packet without an exact entry, as the modules are asked whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parcel {
    /// ARP.
    Arp,
    /// Neighbour discovery over IPv6.
    Discovery,
    /// ICMP.
    Icmp,
    /// ICMP of IPv6.
    Icmp6,
    /// IGMP.
    Groups,
    /// MLD.
    Groups6,
    /// A fragment, for the path that leads up to IP.
    Fragment,
    /// A fragment of an IPv6 packet.
    Fragment6,
    /// A whole IPv6 packet that no path takes, whose sender is to be told.
    Nobodys6,
    /// For a port of ours.
    Listen(Between),
}

/// Scout's `nsProvider`: translates a neighbour's network address into its link address.
pub trait Resolve {
    /// The link address of a neighbour, which is named by the device that it is beside and its address; `waiter`
    /// is told when that changes from pending.
    fn resolve(
        &mut self,
        now: Instant,
        neighbour: (u8, IpAddr),
        waiter: PathId,
        port: &mut dyn Port,
    ) -> Resolution;
}

/// A module. Implementations are plain data and code; they read no clock and do no I/O.
pub trait Module: Any + Send {
    /// What sort of module it is, as graph files name it: `ip`.
    fn kind(&self) -> &'static str;

    /// Its services; their positions are what [`Next`] and [`Answer::Ask`] name.
    fn services(&self) -> &'static [Service];

    /// How the module below knows it (Ethernet's kind, IP's protocol), where it does.
    fn protocol(&self) -> Option<u16> {
        None
    }

    /// Called once, in an order in which everything the module needs comes before it.
    fn initialise(&mut self, id: ModuleId) {
        let _ = id;
    }

    /// Phase 1 of path creation: makes the stage and says where the path goes on.
    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError>;

    /// Its part of the classifier (Scout §3.4): looks at its own header, moves the view
    /// behind it, and answers or asks the next. Must not change anything.
    fn classify(&self, view: &mut View<'_>) -> Answer {
        let _ = view;
        Answer::Pass
    }

    /// The path for a packet that has no exact entry, where this module's paths take it.
    fn takes(&self, parcel: &Parcel) -> Option<PathId> {
        let _ = parcel;
        None
    }

    /// The resolver, where the module is one.
    fn resolver(&mut self) -> Option<&mut dyn Resolve> {
        None
    }
}

/// The other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its module.
    pub module: ModuleId,
    /// Its service.
    pub service: u8,
}

pub(crate) struct Node {
    pub name: String,
    pub module: Box<dyn Module>,
    // By service: the links there.
    pub peers: Vec<Vec<Peer>>,
}

/// The modules of a graph and their links.
pub struct Modules(pub(crate) Vec<Node>);

impl Modules {
    /// The module called `name`.
    pub fn find(&self, name: &str) -> Option<ModuleId> {
        self.0.iter().position(|node| node.name == name).map(|at| ModuleId(at as u8))
    }

    /// The first module of this kind.
    pub fn of_kind(&self, kind: &str) -> Option<ModuleId> {
        self.0.iter().position(|node| node.module.kind() == kind).map(|at| ModuleId(at as u8))
    }

    /// The module's name.
    pub fn name(&self, id: ModuleId) -> &str {
        self.0.get(usize::from(id.0)).map_or("?", |node| &node.name)
    }

    /// The module with this id.
    pub fn module(&self, id: ModuleId) -> Option<&dyn Module> {
        Some(&*self.0.get(usize::from(id.0))?.module)
    }

    /// The module with this id, to be changed.
    pub fn module_mut(&mut self, id: ModuleId) -> Option<&mut dyn Module> {
        Some(&mut *self.0.get_mut(usize::from(id.0))?.module)
    }

    /// The module with this id, when it is a `T`.
    pub fn of_mut<T: Module>(&mut self, id: ModuleId) -> Option<&mut T> {
        (self.module_mut(id)? as &mut dyn Any).downcast_mut()
    }

    /// The first module that is a `T`.
    pub fn first<T: Module>(&self) -> Option<&T> {
        self.0.iter().find_map(|node| (&*node.module as &dyn Any).downcast_ref())
    }

    /// The first module that is a `T`, to be changed.
    pub fn first_mut<T: Module>(&mut self) -> Option<&mut T> {
        self.0.iter_mut().find_map(|node| (&mut *node.module as &mut dyn Any).downcast_mut())
    }

    /// What is linked to a module's service.
    pub fn peers(&self, id: ModuleId, service: u8) -> &[Peer] {
        self.0
            .get(usize::from(id.0))
            .and_then(|node| node.peers.get(usize::from(service)))
            .map_or(&[], Vec::as_slice)
    }

    /// Every module: id, name and itself.
    pub fn iter(&self) -> impl Iterator<Item = (ModuleId, &str, &dyn Module)> {
        self.0.iter().enumerate().map(|(at, node)| (ModuleId(at as u8), &*node.name, &*node.module))
    }

    /// The module a path goes on to after `from` decided for `next`.
    pub(crate) fn follow(&self, from: ModuleId, next: Next, attrs: &Attrs) -> Option<ModuleId> {
        match next {
            Next::End => None,
            Next::Link(service, nth) => Some(self.peers(from, service).get(usize::from(nth))?.module),
            Next::Service(service) => match self.peers(from, service) {
                [only] => Some(only.module),
                several => {
                    let route = attrs.path_name()?;
                    Some(several.iter().find(|peer| route.contains(peer.module))?.module)
                }
            },
        }
    }
}
