//! Services (Scout §3.1): a module's named, typed connection points. Only services of the
//! same type, in matching roles, can be linked; the graph checks it before anything runs.

use core::fmt;

/// Which side of an asymmetric type a service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Both sides are alike (`net`).
    Peer,
    /// The side that is called (`nsProvider`).
    Provider,
    /// The side that calls (`nsClient`).
    Client,
}

impl Role {
    fn opposite(self) -> Self {
        match self {
            Self::Peer => Self::Peer,
            Self::Provider => Self::Client,
            Self::Client => Self::Provider,
        }
    }
}

/// The type of a service: what is said across a link, and the role in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceType {
    name: &'static str,
    role: Role,
}

/// Delivers messages, either way: Scout's `net`.
pub const NET: ServiceType = ServiceType::peer("net");
/// Translates a network address into a link address: Scout's `nsProvider`.
pub const RESOLVER: ServiceType = ServiceType { name: "resolve", role: Role::Provider };
/// Has network addresses translated: Scout's `nsClient`.
pub const RESOLVES: ServiceType = ServiceType { name: "resolve", role: Role::Client };
/// An ordered stream of bytes, the protocol's side.
pub const STREAM: ServiceType = ServiceType { name: "stream", role: Role::Provider };
/// An ordered stream of bytes, the program's side.
pub const STREAM_USER: ServiceType = ServiceType { name: "stream", role: Role::Client };

impl ServiceType {
    /// A type whose two sides are alike.
    pub const fn peer(name: &'static str) -> Self {
        Self { name, role: Role::Peer }
    }
    /// The side of an asymmetric type that is called.
    pub const fn provider(name: &'static str) -> Self {
        Self { name, role: Role::Provider }
    }
    /// The side of an asymmetric type that calls.
    pub const fn client(name: &'static str) -> Self {
        Self { name, role: Role::Client }
    }
    /// What is said across the link.
    pub const fn name(self) -> &'static str {
        self.name
    }
    /// Whether a link may join the two.
    pub fn matches(self, other: Self) -> bool {
        self.name == other.name && self.role == other.role.opposite()
    }
}

impl fmt::Display for ServiceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.role {
            Role::Peer => f.write_str(self.name),
            Role::Provider => write!(f, "{} (provider)", self.name),
            Role::Client => write!(f, "{} (client)", self.name),
        }
    }
}

/// A module's connection point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its name, unique in the module.
    pub name: &'static str,
    /// Its type.
    pub kind: ServiceType,
    /// The module works only when what is linked here is initialised before it.
    pub needs: bool,
    /// At least one link is required.
    pub required: bool,
}

impl Service {
    /// A service that others build on: no link is required.
    pub const fn offered(name: &'static str, kind: ServiceType) -> Self {
        Self { name, kind, needs: false, required: false }
    }
    /// A service the module builds on: it must be linked, and initialised before.
    pub const fn needed(name: &'static str, kind: ServiceType) -> Self {
        Self { name, kind, needs: true, required: true }
    }
    /// A service the module builds on where there is one.
    pub const fn wanted(name: &'static str, kind: ServiceType) -> Self {
        Self { name, kind, needs: true, required: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_matching_types_connect() {
        assert!(NET.matches(NET) && RESOLVER.matches(RESOLVES) && RESOLVES.matches(RESOLVER));
        assert!(!NET.matches(RESOLVER) && !RESOLVER.matches(RESOLVER) && !STREAM.matches(RESOLVES));
    }
}
