//! From the text of a graph to what `silk-path` builds, and from what it finds wrong back to
//! places in the text.

use crate::fault::Fault;
use crate::graph::{Endpoint, Graph};
use crate::suggest::suggestion;
use silk_path::{Catalogue, End, GraphSpec, LinkSpec, ModuleSpec, Place, What};
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

    /// What is wrong with [`Graph::spec`] for this catalogue, at its places in the text,
    /// without what [`Graph::parse`] finds itself.
    pub(crate) fn faults(&self, catalogue: &dyn Catalogue) -> Vec<Fault> {
        let found = silk_path::check(&self.spec(), catalogue);
        let new = found.iter().filter(|fault| !is_known(&fault.what));
        new.map(|fault| Fault {
            span: self.place(&fault.place),
            message: self.message(fault),
            help: self.help(fault, catalogue),
        })
        .collect()
    }

    /// What is wrong, and with which module where its place, the line `[[module]]`, does not tell.
    fn message(&self, fault: &silk_path::Fault) -> String {
        let (text, _) = in_words(&fault.what);
        let lacks = matches!(fault.what, What::MissingLink { .. } | What::MissingParameter(_));
        let Place::Module(n) = &fault.place else { return text };
        match self.modules.get(*n) {
            Some(module) if lacks && !module.name.is_empty() => format!("module `{}`: {text}", module.name),
            _ => text,
        }
    }

    /// What to do about it: the nearest of what there is, or what the check itself says.
    fn help(&self, fault: &silk_path::Fault, catalogue: &dyn Catalogue) -> Option<String> {
        let kinds = catalogue.kinds();
        match (&fault.what, &fault.place) {
            (What::UnknownKind { kind, .. }, _) => {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
                Some(suggestion(kind, &names))
            }
            (What::UnknownParameter { name, .. }, Place::Parameter(n, _)) => {
                let kind =
                    kinds.iter().find(|kind| self.modules.get(*n).is_some_and(|m| m.kind == kind.name))?;
                let names: Vec<&str> = kind.parameters.iter().map(|parameter| parameter.name).collect();
                Some(suggestion(name, &names))
            }
            (what, _) => in_words(what).1,
        }
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

/// What is wrong, and the advice, which follows a semicolon where there is any.
fn in_words(what: &What) -> (String, Option<String>) {
    let text = what.to_string().replace('"', "`");
    match text.split_once("; ") {
        Some((message, help)) => (message.to_owned(), Some(help.to_owned())),
        None => (text, None),
    }
}
