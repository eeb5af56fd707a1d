//! The kinds of modules a graph can have: those of `silk-modules`, with no surroundings,
//! since nothing is made of them here.

use silk_modules::{Setup, catalogue as modules};
use silk_path::Catalogue;
use silk_path::classify::Tables;

/// The catalogue to check graphs against.
pub fn catalogue() -> impl Catalogue {
    modules(Setup::new(Tables::with_room(1, 0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_config::{Graph, Source};
    use std::path::Path;

    #[test]
    fn the_graphs_that_silk_comes_with_are_right() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs");
        let mut checked = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let source = Source::read(&entry.unwrap().path()).unwrap();
            Graph::check(&source.name, &source.text, &catalogue())
                .unwrap_or_else(|faults| panic!("{faults}"));
            checked += 1;
        }
        assert!(checked >= 2);
    }
}
