//! The daemon with the rights that its unit of systemd leaves it.

use crate::files::{fetch_all, site};
use crate::host::Silk;
use silk_testkit::netns::{INTERFACE, PREFERRED};

const UNIT: &str = include_str!("../../../../packaging/silkd.service");

/// As setpriv(1) is told them.
fn rights() -> String {
    let line = UNIT.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).unwrap();
    let each = line.split(' ').map(|right| format!(",+{}", right.trim_start_matches("CAP_").to_lowercase()));
    format!("-all{}", each.collect::<String>())
}

/// A daemon with these alone, and a preferred class.
pub fn start() -> Option<Silk> {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n");
    let classes = format!(
        "[[class]]\nname = \"preferred\"\npriority = 2\nsource = \"{PREFERRED}\"\n\n\
         [[class]]\nname = \"standard\"\ndefault = true\n"
    );
    let mut silk = Silk::without_daemon(&device, &classes)?;
    silk.start_daemon_by(&["setpriv", "--no-new-privs", "--bounding-set", &rights()]);
    Some(silk)
}

#[test]
fn programs_with_more_rights_than_the_service_have_low_ports() {
    let Some(silk) = start() else { return };
    site(&silk);
    let _server = silk.serve("python3", &["-m", "http.server", "80", "--directory", "site"], 80);
    fetch_all(&silk, 80);
}
