//! The kinds of modules of this crate, added to those of the network: what a graph file of a video
//! appliance may name.

use crate::display::{self, Display, Screens};
use crate::mpeg::{self, Decoders, Mpeg};
use alloc::boxed::Box;
use alloc::vec::Vec;
use silk_path::{BadParameter, Catalogue, Kind, Module, ModuleSpec};

/// What decodes and shows: the libraries of whoever runs the paths.
pub trait Library {
    /// Decoders for a module MPEG.
    fn decoders(&self) -> Box<dyn Decoders>;
    /// Screens for a module DISPLAY.
    fn screens(&self) -> Box<dyn Screens>;
}

/// The kinds of modules that `network` has, MPEG and DISPLAY.
pub fn catalogue<L: Library>(network: impl Catalogue, library: L) -> impl Catalogue {
    let mut kinds: Vec<Kind> = network.kinds().to_vec();
    kinds.push(Kind { name: "mpeg", services: mpeg::SERVICES, parameters: &[] });
    kinds.push(Kind { name: "display", services: display::SERVICES, parameters: &[] });
    Media { network, library, kinds }
}

struct Media<C, L> {
    network: C,
    library: L,
    kinds: Vec<Kind>,
}

impl<C: Catalogue, L: Library> Catalogue for Media<C, L> {
    fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    fn make(&self, spec: &ModuleSpec) -> Result<Box<dyn Module>, BadParameter> {
        match spec.kind.as_str() {
            "mpeg" => Ok(Box::new(Mpeg::new(self.library.decoders()))),
            "display" => Ok(Box::new(Display::new(self.library.screens()))),
            _ => self.network.make(spec),
        }
    }
}
