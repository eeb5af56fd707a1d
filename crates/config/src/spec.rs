//! From the text of a graph to what `silk-path` builds, and from what it finds wrong back to
//! places in the text.

use crate::fault::Fault;
use crate::graph::{Endpoint, Graph};
use silk_path::{End, GraphSpec, LinkSpec, ModuleSpec, Place, What};
use std::ops::Range;

impl Graph {
    /// The graph as plain data, in the order of the file.
    pub fn spec(&self) -> GraphSpec {
        let modules = self.modules.iter().map(|module| ModuleSpec {
            name: module.name.clone(),
            kind: module.kind.clone(),
            parameters: module.params.iter().map(|p| (p.key.clone(), p.value.clone())).collect(),
        });
        let links = self.links.iter().map(|link| LinkSpec { from: end(&link.from), to: end(&link.to) });
        GraphSpec { modules: modules.collect(), links: links.collect() }
    }

    /// What a check of [`Graph::spec`] found, at its places in the text, without what
    /// [`Graph::parse`] finds itself.
    pub(crate) fn faults(&self, found: &[silk_path::Fault]) -> Vec<Fault> {
        let new = found.iter().filter(|fault| !is_known(&fault.what));
        new.map(|fault| translated(&fault.what, self.place(&fault.place))).collect()
    }

    fn place(&self, place: &Place) -> Range<usize> {
        let module = |n: usize| self.modules.get(n);
        let link = |n: usize| self.links.get(n);
        let place = match place {
            Place::Module(n) => module(*n).map(|module| module.span.clone()),
            Place::Parameter(n, key) => module(*n)
                .and_then(|module| module.params.iter().find(|param| param.key == *key))
                .map(|param| param.span.clone()),
            Place::From(n) => link(*n).map(|link| link.from.span.clone()),
            Place::To(n) => link(*n).map(|link| link.to.span.clone()),
            Place::Link(n) => link(*n).map(|link| link.span.clone()),
        };
        place.unwrap_or(0..0)
    }
}

fn end(end: &Endpoint) -> End {
    End { module: end.module.clone(), service: end.service.clone() }
}

/// What parsing finds by itself, for every reader of a graph.
fn is_known(what: &What) -> bool {
    matches!(what, What::DuplicateModule(_) | What::UnknownModule { .. } | What::DuplicateLink)
}

/// The advice, where there is one, follows a semicolon.
fn translated(what: &What, span: Range<usize>) -> Fault {
    let text = what.to_string().replace('"', "`");
    match text.split_once("; ") {
        Some((message, help)) => Fault { span, message: message.to_owned(), help: Some(help.to_owned()) },
        None => Fault { span, message: text, help: None },
    }
}
