//! The graph of modules (Scout §3.1): checked as a whole before any of it runs, then fixed.
//! [`GraphSpec`] is the plain data that a file or a program says, [`check()`] finds every
//! fault, [`Graph::build`] makes the modules and initialises them in order.

mod check;
mod fault;
mod spec;

pub use check::{MAX_MODULES, check, link_address, network};
pub use fault::{Fault, Place, What};
pub use spec::{
    BadParameter, Catalogue, End, GraphSpec, Kind, LinkSpec, ModuleSpec, Parameter, ParameterKind, Value,
};

use crate::classify::{Answer, Belongs, View};
use crate::id::ModuleId;
use crate::module::{Modules, Node, Peer};
use alloc::vec;
use alloc::vec::Vec;

/// A checked graph with its modules.
pub struct Graph {
    pub(crate) modules: Modules,
    // Where classification begins: the modules that need no net service below.
    bottoms: Vec<ModuleId>,
}

impl Graph {
    /// Makes and initialises the modules of `spec`, or says everything that is wrong with it.
    pub fn build(spec: &GraphSpec, catalogue: &dyn Catalogue) -> Result<Self, Vec<Fault>> {
        let checked = check::check_all(spec, catalogue);
        if !checked.faults.is_empty() {
            return Err(checked.faults);
        }
        let (mut nodes, mut faults) = (Vec::new(), Vec::new());
        for (n, module) in spec.modules.iter().enumerate() {
            match catalogue.make(module) {
                Ok(made) => {
                    let peers = vec![Vec::new(); made.services().len()];
                    nodes.push(Node { name: module.name.clone(), module: made, peers });
                }
                Err(bad) => {
                    let place = Place::Parameter(n, bad.name);
                    faults.push(Fault { place, what: What::BadParameter(bad.what) });
                }
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        for [from, to] in checked.links {
            nodes[from.0].peers[from.1].push(peer(to));
            nodes[to.0].peers[to.1].push(peer(from));
        }
        for n in checked.order {
            nodes[n].module.initialise(ModuleId(n as u8));
        }
        let bottoms = bottoms(&nodes);
        Ok(Self { modules: Modules(nodes), bottoms })
    }

    /// The modules.
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    /// The modules, to be changed.
    pub fn modules_mut(&mut self) -> &mut Modules {
        &mut self.modules
    }

    /// Classifies an Ethernet frame by asking the modules, from the bottom up (Scout §3.4).
    /// Answers the same as the compiled tables, only slower; changes nothing. The frame came over the
    /// first device, which may be the only one.
    pub fn classify(&self, frame: &[u8]) -> Belongs {
        self.classify_over(frame, 0)
    }

    /// The same for a frame that came over this device.
    pub fn classify_over(&self, frame: &[u8], device: u8) -> Belongs {
        for bottom in &self.bottoms {
            let mut view = View::new(frame, device);
            match self.ask(*bottom, &mut view) {
                Belongs::Pass => {}
                belongs => return belongs,
            }
        }
        Belongs::Pass
    }

    fn ask(&self, first: ModuleId, view: &mut View<'_>) -> Belongs {
        let mut asked = first;
        for _ in 0..crate::route::MAX_STAGES {
            let Some(module) = self.modules.module(asked) else { return Belongs::Pass };
            match module.classify(view) {
                Answer::Found(belongs) => return belongs,
                Answer::Pass => return Belongs::Pass,
                Answer::Ask { service, protocol } => match self.above(asked, service, protocol) {
                    Some(next) => asked = next,
                    None => return Belongs::Pass,
                },
            }
        }
        Belongs::Pass
    }

    /// The module linked at `service` that is known by `protocol`, or the only one where the
    /// protocol is not asked for.
    fn above(&self, below: ModuleId, service: u8, protocol: Option<u16>) -> Option<ModuleId> {
        let peers = self.modules.peers(below, service);
        match protocol {
            None => peers.first().map(|peer| peer.module),
            Some(_) => peers
                .iter()
                .map(|peer| peer.module)
                .find(|id| self.modules.module(*id).is_some_and(|module| module.protocol() == protocol)),
        }
    }
}

fn peer((module, service): (usize, usize)) -> Peer {
    Peer { module: ModuleId(module as u8), service: service as u8 }
}

/// The modules with an offered net service and no needed one: devices.
fn bottoms(nodes: &[Node]) -> Vec<ModuleId> {
    let is_bottom = |node: &Node| {
        let net = |needs: bool| {
            node.module.services().iter().any(|s| s.kind == crate::service::NET && s.needs == needs)
        };
        net(false) && !net(true)
    };
    nodes.iter().enumerate().filter(|(_, node)| is_bottom(node)).map(|(n, _)| ModuleId(n as u8)).collect()
}
