//! Generic netlink, as much as the `netdev` family needs (Documentation/netlink/specs/netdev.yaml
//! of the kernel): one request, its answers as lists of attributes.

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP};
use netlink_sys::protocols::NETLINK_GENERIC;

use super::NetlinkError;
use super::line::{Attribute, Line};

/// A line to one family of generic netlink.
pub(crate) struct Family {
    line: Line,
    id: u16,
}

/// The controller, which knows the other families.
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

impl Family {
    /// The family of this name, refused where the kernel has none.
    pub fn open(name: &str) -> Result<Self, NetlinkError> {
        let mut family = Self { line: Line::open(NETLINK_GENERIC)?, id: CONTROLLER };
        let question = (FAMILY_NAME, [name.as_bytes(), &[0]].concat());
        let answers = family.ask(GET_FAMILY, NLM_F_ACK, &[question])?;
        let id = answers.iter().flatten().find_map(|(kind, value)| match (*kind, &value[..]) {
            (FAMILY_ID, &[low, high]) => Some(u16::from_ne_bytes([low, high])),
            _ => None,
        });
        family.id = id.ok_or_else(|| NetlinkError::Garbled(format!("no number for the family {name}")))?;
        Ok(family)
    }

    /// Tells one thing.
    pub fn tell(&mut self, command: u8, attributes: &[Attribute]) -> Result<(), NetlinkError> {
        self.ask(command, NLM_F_ACK, attributes).map(drop)
    }

    /// Asks for everything of a kind.
    pub fn dump(
        &mut self,
        command: u8,
        attributes: &[Attribute],
    ) -> Result<Vec<Vec<Attribute>>, NetlinkError> {
        self.ask(command, NLM_F_DUMP, attributes)
    }

    fn ask(
        &mut self,
        command: u8,
        flags: u16,
        attributes: &[Attribute],
    ) -> Result<Vec<Vec<Attribute>>, NetlinkError> {
        let answers = self.line.ask((self.id, flags), [command, 1, 0, 0], attributes)?;
        Ok(answers.into_iter().map(|(_, attributes)| attributes).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_knows_the_controller_and_not_our_inventions() {
        assert!(Family::open("nlctrl").is_ok_and(|family| family.id == CONTROLLER));
        assert!(matches!(Family::open("silk-nonsense"), Err(NetlinkError::Refused(_))));
    }
}
