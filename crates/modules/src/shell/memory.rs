//! Which commands were done, so that a datagram that comes twice is not done twice: the last few,
//! by who sent them and their number, each with what was said.

use alloc::collections::VecDeque;
use alloc::string::String;
use silk_path::Endpoint;

/// Commands that are remembered.
const COMMANDS: usize = 64;
/// Bytes of a reply that are remembered.
const BYTES: usize = 256;

/// What is known of a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known<'m> {
    /// It is being done.
    Waits,
    /// It was done, and this was said.
    Done(&'m str),
}

/// The memory, the oldest first.
#[derive(Default)]
pub(super) struct Memory(VecDeque<(Endpoint, u32, Option<String>)>);

impl Memory {
    /// What is known of a command.
    pub fn recall(&self, from: Endpoint, number: u32) -> Option<Known<'_>> {
        let (.., said) = self.0.iter().find(|(who, what, _)| (*who, *what) == (from, number))?;
        Some(said.as_deref().map_or(Known::Waits, Known::Done))
    }

    /// A command is being done.
    pub fn begin(&mut self, from: Endpoint, number: u32) {
        if self.0.len() >= COMMANDS {
            self.0.pop_front();
        }
        self.0.push_back((from, number, None));
    }

    /// It was done.
    pub fn finish(&mut self, from: Endpoint, number: u32, said: &str) {
        if let Some((.., known)) = self.0.iter_mut().find(|(who, what, _)| (*who, *what) == (from, number)) {
            let end = (0..=BYTES.min(said.len())).rev().find(|end| said.is_char_boundary(*end));
            *known = Some(said[..end.unwrap_or(0)].into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    const WHO: Endpoint = Endpoint::v4(Ipv4Addr::LOCALHOST, 1);
    const OTHER: Endpoint = Endpoint::v4(Ipv4Addr::LOCALHOST, 2);

    #[test]
    fn a_command_is_known_by_who_sent_it_and_its_number() {
        let mut memory = Memory::default();
        memory.begin(WHO, 1);
        assert_eq!(memory.recall(WHO, 1), Some(Known::Waits));
        memory.finish(WHO, 1, "ok 3.1");
        assert_eq!(memory.recall(WHO, 1), Some(Known::Done("ok 3.1")));
        assert_eq!((memory.recall(WHO, 2), memory.recall(OTHER, 1)), (None, None));
    }

    #[test]
    fn it_is_bounded() {
        let mut memory = Memory::default();
        for number in 0..1000 {
            memory.begin(WHO, number);
            memory.finish(WHO, number, &"é".repeat(1000));
        }
        assert_eq!(memory.recall(WHO, 1000 - COMMANDS as u32 - 1), None);
        assert_eq!(memory.recall(WHO, 999), Some(Known::Done(&"é".repeat(BYTES / 2))));
        assert_eq!(memory.0.len(), COMMANDS);
    }
}
