//! A program on silk that speaks with its own host, at an address that Linux does not have: through the stack, and across
//! classes.

use crate::host::Silk;
use crate::programs::text;
use silk_testkit::netns::{INTERFACE, SERVER, SERVER6};

const SPEAKING: &str = include_str!("itself.py");
/// Silk's own addresses.
const OWN: [&str; 2] = ["10.99.0.9", "fd99::9"];

/// What the program says, without the addresses.
fn said(said: &str, addresses: &[&str]) -> String {
    addresses.iter().enumerate().fold(said.to_owned(), |said, (place, address)| {
        said.replace(&format!("{address} "), &format!("IP {place} "))
    })
}

/// Of the two ends one may be of a class whose packets another executor has.
fn speaks_with_itself(classes: &str) {
    let [v4, v6] = OWN;
    let device = format!(
        "kind = \"packet\"\ninterface = \"{INTERFACE}\"\naddress = \"{v4}/24\"\naddress6 = \"{v6}/64\"\n"
    );
    let Some(silk) = Silk::start_with(&device, classes) else { return };
    silk.write("itself.py", SPEAKING);
    let theirs = [SERVER.to_string(), SERVER6.to_string()];
    let theirs = [&*theirs[0], &*theirs[1]];
    let by_linux = said(&text(silk.on_linux("python3").arg("itself.py").args(theirs)), &theirs);
    assert_eq!(by_linux.matches("True").count(), 6, "{by_linux}");
    assert_eq!(said(&text(silk.on_paths("python3").arg("itself.py").args(OWN)), &OWN), by_linux);
}

#[test]
fn within_one_class() {
    speaks_with_itself("");
}

#[test]
fn across_classes() {
    let class = |(number, port): (usize, u16)| {
        format!("[[class]]\nname = \"c{number}\"\npriority = {number}\nlocal_port = {port}\n\n")
    };
    let high: String = (1..).zip([7000, 7002, 7004]).map(class).collect();
    speaks_with_itself(&format!("{high}[[class]]\nname = \"low\"\ndefault = true\n"));
}
