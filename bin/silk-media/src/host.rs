//! Hosts as people write them: `HOST[:PORT]`, a name or an address of either IP.

use crate::trouble::Trouble;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The address that `text` names, at the port `usual` where it names none. What is a whole address of IPv6
/// is that: a port stands behind brackets.
///
/// # Errors
/// It names no host, or none that is found.
pub fn address(text: &str, usual: u16) -> Result<SocketAddr, Trouble> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok((ip, usual).into());
    }
    let found = text.to_socket_addrs().or_else(|_| (bare, usual).to_socket_addrs());
    let unknown = |why: String| Trouble::Usage(format!("`{text}` is no host, or not found: {why}"));
    found.map_err(|error| unknown(error.to_string()))?.next().ok_or_else(|| unknown("no address".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_group_of_an_address_is_no_port() {
        let found = |text| address(text, 5544).unwrap().to_string();
        for (text, expected) in [
            ("10.0.0.1", "10.0.0.1:5544"),
            ("10.0.0.1:7", "10.0.0.1:7"),
            ("fd00::1:7", "[fd00::1:7]:5544"),
            ("fd00::1", "[fd00::1]:5544"),
            ("::1", "[::1]:5544"),
            ("[fd00::1:7]", "[fd00::1:7]:5544"),
            ("[fd00::1]:7", "[fd00::1]:7"),
            ("1:2:3:4:5:6:7:8", "[1:2:3:4:5:6:7:8]:5544"),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }
}
