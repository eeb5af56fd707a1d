//! Every module's file opens with its manual: the documentation is made from it.

use std::fs;
use std::path::{Path, PathBuf};

const SECTIONS: [&str; 5] = ["Configuration", "Services", "Attributes", "Example", "See also"];

/// The file of a kind of module.
fn file(kind: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let alone = source.join(format!("{kind}.rs"));
    if alone.exists() { alone } else { source.join(kind).join("mod.rs") }
}

/// The lines of a file's opening comment, without their slashes.
fn opening(kind: &str) -> Vec<String> {
    let text = fs::read_to_string(file(kind)).unwrap_or_else(|error| panic!("{kind}: {error}"));
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| line.trim().to_string()).collect()
}

/// What stands under a section.
fn section<'l>(lines: &'l [String], name: &str) -> &'l [String] {
    let heading = format!("# {name}");
    let start = lines.iter().position(|line| *line == heading).map_or(lines.len(), |at| at + 1);
    let length = lines[start..].iter().position(|line| line.starts_with("# ")).unwrap_or(lines.len() - start);
    &lines[start..start + length]
}

#[test]
fn every_module_has_a_manual() {
    for kind in silk_modules::KINDS {
        let lines = opening(kind.name);
        let headings: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("# ")).collect();
        assert_eq!(headings, SECTIONS, "{}", kind.name);
        for name in SECTIONS {
            assert!(
                section(&lines, name).iter().any(|line| !line.is_empty()),
                "{}: {name} is empty",
                kind.name
            );
        }
        assert!(lines[0].starts_with(&kind.name.to_uppercase()), "{}: {}", kind.name, lines[0]);
    }
}

#[test]
fn the_manual_names_every_service_and_parameter() {
    for kind in silk_modules::KINDS {
        let lines = opening(kind.name);
        let services = section(&lines, "Services").join(" ");
        for service in kind.services {
            assert!(services.contains(&format!("`{}`", service.name)), "{}: {}", kind.name, service.name);
        }
        let configuration = section(&lines, "Configuration").join(" ");
        for parameter in kind.parameters {
            assert!(
                configuration.contains(&format!("`{}`", parameter.name)),
                "{}: {}",
                kind.name,
                parameter.name
            );
        }
        assert_eq!(kind.parameters.is_empty(), configuration.starts_with("None"), "{}", kind.name);
    }
}

#[test]
fn the_example_is_of_the_module_itself() {
    for kind in silk_modules::KINDS {
        let example = opening(kind.name);
        let example = section(&example, "Example").join("\n");
        assert!(example.contains(&format!("kind = \"{}\"", kind.name)), "{}", kind.name);
    }
}
