//! What names things on a network: interfaces, addresses, prefixes, hardware addresses and
//! code points (RFC 2474).

use crate::read::{Notes, Value, expected};
use crate::suggest::suggestion;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use toml::Spanned;
use toml::de::DeValue;

/// A set of IPv4 addresses that begin alike: `10.0.0.0/8`. No bit is set beyond its length.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: Ipv4Addr,
    length: u8,
}

impl Prefix {
    /// Every address.
    pub const ALL: Self = Self { address: Ipv4Addr::UNSPECIFIED, length: 0 };

    /// The prefix of this length that holds `address`; lengths beyond 32 are 32.
    pub fn containing(address: Ipv4Addr, length: u8) -> Self {
        let length = length.min(32);
        Self { address: Ipv4Addr::from_bits(address.to_bits() & mask(length)), length }
    }

    /// The address that all of its addresses begin like; its other bits are 0.
    pub const fn address(self) -> Ipv4Addr {
        self.address
    }

    /// How many bits they have in common, 0 to 32.
    pub const fn length(self) -> u8 {
        self.length
    }

    /// Whether it holds this address.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        address.to_bits() & mask(self.length) == self.address.to_bits()
    }

    /// Whether it holds all addresses of `other`.
    pub fn covers(self, other: Self) -> bool {
        self.length <= other.length && self.contains(other.address)
    }
}

/// The first `length` bits.
fn mask(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An address and the length of its network's prefix, 32 if none is written.
fn address_and_length(value: &Spanned<DeValue<'_>>, what: &str, notes: &mut Notes) -> Option<(Ipv4Addr, u8)> {
    let DeValue::String(text) = value.get_ref() else { return expected(what, value, notes) };
    let (address, length) = text.split_once('/').unwrap_or((text, "32"));
    let parsed = address.parse().ok().zip(length.parse().ok().filter(|&length: &u8| length <= 32));
    if parsed.is_none() {
        let v6 = address.parse::<Ipv6Addr>().is_ok();
        let help = if v6 { "silk carries IPv4 only so far" } else { "write it like `10.0.0.3/24`" };
        notes.advise(value.span(), format!("`{}` is not {what}", text.escape_debug()), help);
    }
    parsed
}

impl Value for Prefix {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        let (address, length) = address_and_length(value, "an IPv4 prefix", notes)?;
        let prefix = Self::containing(address, length);
        if prefix.address == address {
            return Some(prefix);
        }
        notes.advise(
            value.span(),
            format!("`{address}/{length}` has bits set beyond its first {length}"),
            format!("write `{prefix}` for the network, or `{address}/32` for that host alone"),
        );
        None
    }
}

/// An address of ours and the network it is in: `10.0.0.2/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    /// The address.
    pub address: Ipv4Addr,
    /// The network it is in.
    pub prefix: Prefix,
}

impl Value for Network {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        let (address, length) = address_and_length(value, "an IPv4 address with its length", notes)?;
        if address.is_unspecified() || address.is_multicast() || address.is_broadcast() {
            notes.fault(value.span(), format!("{address} cannot be a host's address"));
            return None;
        }
        Some(Self { address, prefix: Prefix::containing(address, length) })
    }
}

impl Value for Ipv4Addr {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        match address_and_length(value, "an IPv4 address", notes)? {
            (address, 32) => Some(address),
            _ => {
                notes.fault(value.span(), "an address is wanted here, not a network");
                None
            }
        }
    }
}

/// The name of a network interface, as Linux allows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Interface(String);

impl Interface {
    /// The name, if it is one: 1 to 15 bytes, no `/`, no white space, not `.` or `..`.
    pub fn new(name: &str) -> Option<Self> {
        let fits = (1..=15).contains(&name.len()) && name != "." && name != "..";
        let clean = name.chars().all(|c| c != '/' && c != ':' && !c.is_whitespace() && !c.is_control());
        (fits && clean).then(|| Self(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Value for Interface {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        let name = Self::new(&String::read(value, notes)?);
        if name.is_none() {
            notes.fault(value.span(), "no interface can have this name: 1 to 15 bytes, no space, `/` or `:`");
        }
        name
    }
}

/// An Ethernet address of one station: `02:00:00:00:00:01`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2 && !part.starts_with('+'))?;
            *byte = u8::from_str_radix(part, 16).ok()?;
        }
        let single = bytes[0] & 1 == 0 && bytes != [0; 6];
        (parts.next().is_none() && single).then_some(Self(bytes))
    }
}

impl Value for Mac {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        let mac = Self::parse(&String::read(value, notes)?);
        if mac.is_none() {
            let help = "write six pairs of hexadecimal digits, the first even: `02:00:00:00:00:01`";
            notes.advise(value.span(), "this is no Ethernet address of a station", help);
        }
        mac
    }
}

/// A differentiated services code point (RFC 2474), 0 to 63 or its name (RFC 4594).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dscp(u8);

const CODE_POINTS: [(&str, u8); 22] = [
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("ef", 46),
    ("voice-admit", 44),
];

impl Dscp {
    /// The code point, below 64.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl Value for Dscp {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        let DeValue::String(text) = value.get_ref() else {
            let number = u8::read(value, notes)?;
            if number > 63 {
                notes.advise(
                    value.span(),
                    format!("{number} is not between 0 and 63"),
                    "a code point is the upper six bits of the type-of-service byte: divide by 4",
                );
            }
            return (number <= 63).then_some(Self(number));
        };
        let lower = text.to_lowercase();
        let found = CODE_POINTS.iter().find(|(name, _)| *name == lower);
        if found.is_none() {
            let names = CODE_POINTS.map(|(name, _)| name);
            let message = format!("there is no code point `{}`", text.escape_debug());
            notes.advise(value.span(), message, suggestion(text, &names));
        }
        found.map(|&(_, point)| Self(point))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::de::DeTable;

    fn read<T: Value>(text: &str) -> Option<T> {
        let document = format!("v = {text}");
        let table = DeTable::parse(&document).unwrap();
        T::read(table.get_ref().get("v").unwrap(), &mut Notes::default())
    }

    #[test]
    fn a_prefix_has_no_bits_beyond_its_length() {
        let ten = read::<Prefix>("\"10.0.0.0/8\"").unwrap();
        assert!(ten.contains(Ipv4Addr::new(10, 1, 2, 3)) && !ten.contains(Ipv4Addr::new(11, 0, 0, 0)));
        assert!(ten.covers(read("\"10.2.0.0/16\"").unwrap()) && Prefix::ALL.covers(ten));
        assert_eq!(read::<Prefix>("\"10.0.0.3\"").unwrap().length(), 32);
        for wrong in ["\"10.0.0.1/8\"", "\"10.0.0.0/33\"", "\"::1/128\"", "\"ten\"", "10"] {
            assert_eq!(read::<Prefix>(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn hardware_addresses_are_of_one_station() {
        assert_eq!(read("\"02:00:00:00:00:0a\""), Some(Mac([2, 0, 0, 0, 0, 10])));
        for wrong in ["\"01:00:00:00:00:0a\"", "\"02:00:00:00:00\"", "\"02:00:00:00:00:00:00\"", "\"\""] {
            assert_eq!(read::<Mac>(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn code_points_have_names_and_numbers() {
        assert_eq!(read("\"EF\""), Some(Dscp(46)));
        assert_eq!(read("10"), Some(Dscp(10)));
        assert_eq!((read::<Dscp>("64"), read::<Dscp>("\"fe\"")), (None, None));
    }

    #[test]
    fn interface_names_are_those_linux_allows() {
        assert!(Interface::new("eth0").is_some());
        for wrong in ["", "a-name-too-long!", "a b", "a/b", ".."] {
            assert_eq!(Interface::new(wrong), None, "{wrong}");
        }
    }
}
