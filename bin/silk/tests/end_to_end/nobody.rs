//! Ports and protocols that nobody has, at an address that is silk's alone: Linux, which answers for them where it shares
//! the address, has never heard of it.

use crate::host::Silk;
use crate::programs::text;
use silk_testkit::netns::{INTERFACE, SERVER, SERVER6};

const ASKING: &str = include_str!("nobody.py");
/// Silk's own addresses.
const OWN: [&str; 2] = ["10.99.0.9", "fd99::9"];

// RFC 9293 §3.5.2; RFC 1122 §3.2.2.1 and §4.1.3.1; RFC 4443 §3.1 and §3.4.
#[test]
fn who_asks_for_what_nobody_has_is_told_as_linux_tells() {
    let [v4, v6] = OWN;
    let device = format!(
        "kind = \"packet\"\ninterface = \"{INTERFACE}\"\naddress = \"{v4}/24\"\naddress6 = \"{v6}/64\"\n"
    );
    let classes = "[[class]]\nname = \"low\"\npriority = 0\ndefault = true\n\n\
                   [[class]]\nname = \"high\"\npriority = 2\nlocal_port = 4243\n";
    let Some(silk) = Silk::start_with(&device, classes) else { return };
    silk.write("nobody.py", ASKING);
    let told = |addresses: [&str; 2]| {
        let said = text(silk.on_peer("python3").arg("nobody.py").args(addresses));
        addresses.iter().enumerate().fold(said, |said, (place, address)| {
            said.replace(&format!("{address} "), &format!("IP {place} "))
        })
    };
    let by_linux = told([&SERVER.to_string(), &SERVER6.to_string()]);
    assert_eq!(by_linux.matches("ECONNREFUSED").count(), 6, "{by_linux}");
    assert_eq!(told(OWN), by_linux);
}
