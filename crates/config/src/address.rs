//! What names things on a network: interfaces, addresses, prefixes, hardware addresses and
//! code points (RFC 2474).

use crate::read::{Notes, Value, expected};
use crate::suggest::suggestion;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::str::FromStr;
use toml::Spanned;
use toml::de::DeValue;

/// A set of addresses of one family that begin alike: `10.0.0.0/8`, `2001:db8::/32`. No bit is
/// set beyond its length.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// The prefix of this length that holds `address`; longer ones are the address alone.
    pub fn containing(address: IpAddr, length: u8) -> Self {
        let length = length.min(bits(address));
        Self { address: cut(address, length), length }
    }

    /// The address that all of its addresses begin like; its other bits are 0.
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// How many bits they have in common, 0 to 32 or 128.
    pub const fn length(self) -> u8 {
        self.length
    }

    /// Whether it holds this address.
    pub fn contains(self, address: IpAddr) -> bool {
        address.is_ipv6() == self.address.is_ipv6() && cut(address, self.length) == self.address
    }

    /// Whether it holds all addresses of `other`.
    pub fn covers(self, other: Self) -> bool {
        self.length <= other.length && self.contains(other.address)
    }
}

/// Bits of an address of this one's family.
const fn bits(address: IpAddr) -> u8 {
    if address.is_ipv6() { 128 } else { 32 }
}

/// The first `length` bits of an address, the others 0.
fn cut(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
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

/// An address and the length of its network's prefix, all of it if none is written. `example` is
/// what to write.
fn address_and_length<A: FromStr + Into<IpAddr> + Copy>(
    value: &Spanned<DeValue<'_>>,
    what: &str,
    example: &str,
    notes: &mut Notes,
) -> Option<(A, u8)> {
    let DeValue::String(text) = value.get_ref() else { return expected(what, value, notes) };
    parse_address(text, value.span(), (what, example), notes)
}

/// The same of a text that stands there.
fn parse_address<A: FromStr + Into<IpAddr> + Copy>(
    text: &str,
    span: Range<usize>,
    (what, example): (&str, &str),
    notes: &mut Notes,
) -> Option<(A, u8)> {
    let (address, length) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
    let parsed = address.parse::<A>().ok().and_then(|address| {
        let most = bits(address.into());
        let length = length.map_or(Some(most), |length| length.parse().ok())?;
        (length <= most).then_some((address, length))
    });
    if parsed.is_none() {
        let help = format!("write it like `{example}`");
        notes.advise(span, format!("`{}` is not {what}", text.escape_debug()), help);
    }
    parsed
}

impl Value for Prefix {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        let DeValue::String(text) = value.get_ref() else { return expected(Self::WHAT.0, value, notes) };
        Self::of_text(text, value.span(), notes)
    }
}

impl Prefix {
    /// What it is, and an example of it.
    const WHAT: (&str, &str) = ("an IP prefix", "10.0.0.0/24` or `2001:db8::/32");

    /// The one that this text says, which stands there.
    pub(crate) fn of_text(text: &str, span: Range<usize>, notes: &mut Notes) -> Option<Self> {
        let (address, length) = parse_address::<IpAddr>(text, span.clone(), Self::WHAT, notes)?;
        let prefix = Self::containing(address, length);
        if prefix.address == address {
            return Some(prefix);
        }
        notes.advise(
            span,
            format!("`{address}/{length}` has bits set beyond its first {length}"),
            format!("write `{prefix}` for the network, or `{address}/{}` for that host alone", bits(address)),
        );
        None
    }
}

/// An address of ours and the network it is in: `10.0.0.2/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network<A = Ipv4Addr> {
    /// The address.
    pub address: A,
    /// The network it is in.
    pub prefix: Prefix,
}

/// Whether no host can have the address.
fn is_nobodys(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    address.is_unspecified() || address.is_multicast() || broadcast
}

fn read_network<A: FromStr + Into<IpAddr> + Copy>(
    value: &Spanned<DeValue<'_>>,
    what: &str,
    example: &str,
    notes: &mut Notes,
) -> Option<Network<A>> {
    let (address, length) = address_and_length::<A>(value, what, example, notes)?;
    let whole = address.into();
    if is_nobodys(whole) {
        notes.fault(value.span(), format!("{whole} cannot be a host's address"));
        return None;
    }
    Some(Network { address, prefix: Prefix::containing(whole, length) })
}

impl Value for Network {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        read_network(value, "an IPv4 address with its length", "10.0.0.3/24", notes)
    }
}

impl Value for Network<Ipv6Addr> {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        read_network(value, "an IPv6 address with its length", "2001:db8::3/64", notes)
    }
}

fn read_address<A: FromStr + Into<IpAddr> + Copy>(
    value: &Spanned<DeValue<'_>>,
    what: &str,
    example: &str,
    notes: &mut Notes,
) -> Option<A> {
    let (address, length) = address_and_length::<A>(value, what, example, notes)?;
    if length < bits(address.into()) {
        notes.fault(value.span(), "an address is wanted here, not a network");
        return None;
    }
    Some(address)
}

impl Value for Ipv4Addr {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        read_address(value, "an IPv4 address", "10.0.0.3", notes)
    }
}

impl Value for IpAddr {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        read_address(value, "an IP address", "10.0.0.3", notes)
    }
}

impl Value for Ipv6Addr {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        read_address(value, "an IPv6 address", "2001:db8::3", notes)
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
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(ten.contains(ip("10.1.2.3")) && !ten.contains(ip("11.0.0.0")) && !ten.contains(ip("a00::")));
        assert!(ten.covers(read("\"10.2.0.0/16\"").unwrap()));
        assert_eq!(read::<Prefix>("\"10.0.0.3\"").unwrap().length(), 32);
        let six = read::<Prefix>("\"2001:db8:8000::/33\"").unwrap();
        assert!(six.contains(ip("2001:db8:ffff::1")) && !six.contains(ip("2001:db8::1")));
        assert_eq!(read::<Prefix>("\"::1\"").unwrap().length(), 128);
        for wrong in ["\"10.0.0.1/8\"", "\"10.0.0.0/33\"", "\"::1/64\"", "\"::/129\"", "\"ten\"", "10"] {
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
