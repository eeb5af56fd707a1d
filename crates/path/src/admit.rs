//! Admission (Scout §4.4): before a path is created, and whenever it asks for memory, its own
//! limit and its class's decide. A class at its limit refuses new paths; it never takes from
//! another class. What stands and waits for whoever comes ([`Attr::Listen`](crate::Attr::Listen)) is always admitted, and what
//! it is made of is no part of what the class may have: else who comes could keep a server from listening.

use crate::account::Account;
use crate::drops::DropTotals;
use crate::{DropReason, Drops};
use alloc::vec::Vec;

/// What one class may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Paths at once.
    pub paths: u32,
    /// Bytes of memory of one path.
    pub path_memory: u64,
    /// Bytes of memory of all its paths.
    pub class_memory: u64,
}

impl Limits {
    /// No limit.
    pub const NONE: Self = Self { paths: u32::MAX, path_memory: u64::MAX, class_memory: u64::MAX };
}

/// Why a path was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The class has all the paths it may have.
    ClassPaths,
    /// The class has all the memory it may have.
    ClassMemory,
    /// The path alone would need more memory than a path may have.
    PathMemory,
}

/// How many paths of a class were refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// For it has as many as it may.
    pub paths: u64,
    /// For it has as much memory as it may.
    pub memory: u64,
    /// For one path needs more memory than it may.
    pub path_memory: u64,
}

/// What one class uses now and has used.
#[derive(Clone, Debug)]
pub struct ClassUse {
    /// What it may use.
    pub limits: Limits,
    // Sums over the class's live paths.
    paths: u32,
    memory: u64,
    // Of these, what stands, and what that is made of.
    standing: u32,
    standing_memory: u64,
    /// Paths refused, by the limit that stood against them.
    pub refused: Refusals,
    /// Drops of its paths that are gone. Those of live paths are on the paths.
    pub past_drops: DropTotals,
    /// Accounts of its paths that are gone, added up (memory excepted).
    pub past: Account,
}

impl ClassUse {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            paths: 0,
            memory: 0,
            standing: 0,
            standing_memory: 0,
            refused: Refusals::default(),
            past_drops: DropTotals::default(),
            past: Account::new(0),
        }
    }

    /// Live paths.
    pub fn paths(&self) -> u32 {
        self.paths
    }

    /// Bytes of memory held by its live paths.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Lets one path in that needs `bytes` from the start, or refuses it.
    pub fn admit(&mut self, account: &mut Account, bytes: u64, stands: bool) -> Result<(), Refused> {
        let (refused, count) = if !stands && self.paths - self.standing >= self.limits.paths {
            (Refused::ClassPaths, &mut self.refused.paths)
        } else if !stands && !self.has_room_for(bytes) {
            (Refused::ClassMemory, &mut self.refused.memory)
        } else if account.charge(bytes).is_err() {
            (Refused::PathMemory, &mut self.refused.path_memory)
        } else {
            self.paths += 1;
            self.memory += bytes;
            if stands {
                self.standing += 1;
                self.standing_memory += bytes;
            }
            return Ok(());
        };
        *count += 1;
        Err(refused)
    }

    /// So much of what was charged is what a path that stands is made of.
    pub fn exempt(&mut self, bytes: u64) {
        self.standing_memory += bytes;
    }

    fn has_room_for(&self, bytes: u64) -> bool {
        (self.memory - self.standing_memory).saturating_add(bytes) <= self.limits.class_memory
    }

    /// Charges `bytes` to a path of the class.
    pub fn charge(&mut self, account: &mut Account, bytes: u64) -> Result<(), DropReason> {
        if !self.has_room_for(bytes) {
            return Err(DropReason::NoMemory);
        }
        account.charge(bytes)?;
        self.memory += bytes;
        Ok(())
    }

    /// Gives `bytes` of a path of the class back.
    pub fn release(&mut self, account: &mut Account, bytes: u64) {
        account.release(bytes);
        self.memory -= bytes;
    }

    /// A path of the class has ended, which was made of so many bytes if it stood.
    pub fn leave(&mut self, account: &Account, drops: &Drops, stood: Option<u64>) {
        self.paths -= 1;
        if let Some(bytes) = stood {
            self.standing -= 1;
            self.standing_memory -= bytes;
        }
        self.past_drops.add(drops);
        let past = &mut self.past;
        past.cpu_path += account.cpu_path;
        past.cpu_program += account.cpu_program;
        past.packets_in += account.packets_in;
        past.bytes_in += account.bytes_in;
        past.packets_out += account.packets_out;
        past.bytes_out += account.bytes_out;
        past.memory_peak = past.memory_peak.max(account.memory_peak);
    }
}

/// The classes of a domain, by their index. There is always class 0.
#[derive(Clone, Debug)]
pub struct Classes(Vec<ClassUse>);

impl Default for Classes {
    fn default() -> Self {
        Self(alloc::vec![ClassUse::new(Limits::NONE)])
    }
}

impl Classes {
    /// Sets the limits of class `class`, which exists from now on. Paths that are over a new
    /// limit live on; they get no more.
    pub fn set_limits(&mut self, class: u8, limits: Limits) {
        while self.0.len() <= usize::from(class) {
            self.0.push(ClassUse::new(Limits::NONE));
        }
        self.0[usize::from(class)].limits = limits;
    }

    /// The class with this index; class 0 when there is none.
    pub fn of(&self, class: u8) -> &ClassUse {
        self.0.get(usize::from(class)).unwrap_or(&self.0[0])
    }

    pub(crate) fn of_mut(&mut self, class: u8) -> &mut ClassUse {
        let at = if usize::from(class) < self.0.len() { usize::from(class) } else { 0 };
        &mut self.0[at]
    }

    /// Every class, by index.
    pub fn iter(&self) -> core::slice::Iter<'_, ClassUse> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_has_its_refusal() {
        let mut class = ClassUse::new(Limits { paths: 2, path_memory: 50, class_memory: 80 });
        let account = || Account::new(50);
        let mut admit = |bytes| class.admit(&mut account(), bytes, false);
        assert_eq!(admit(51), Err(Refused::PathMemory));
        assert_eq!(admit(50), Ok(()));
        assert_eq!(admit(50), Err(Refused::ClassMemory));
        assert_eq!(admit(30), Ok(()));
        assert_eq!(admit(0), Err(Refused::ClassPaths));
        assert_eq!((class.paths(), class.memory()), (2, 80));
        assert_eq!(class.refused, Refusals { paths: 1, memory: 1, path_memory: 1 });
    }

    #[test]
    fn what_stands_is_admitted_and_takes_nothing_from_who_comes() {
        let mut class = ClassUse::new(Limits { paths: 1, path_memory: 50, class_memory: 50 });
        let (mut first, mut second, mut client) = (Account::new(90), Account::new(90), Account::new(50));
        assert_eq!(class.admit(&mut first, 40, true), Ok(()));
        assert_eq!(class.admit(&mut client, 50, false), Ok(()));
        assert_eq!(class.admit(&mut second, 40, true), Ok(()), "though the class has all that it may");
        assert_eq!((class.paths(), class.memory()), (3, 130));
        assert_eq!(
            class.charge(&mut first, 1),
            Err(DropReason::NoMemory),
            "what it keeps for who comes counts"
        );
        class.release(&mut client, 50);
        class.leave(&client, &Drops::default(), None);
        assert_eq!(class.charge(&mut first, 50), Ok(()));
        for (account, bytes) in [(&mut first, 90), (&mut second, 40)] {
            class.release(account, bytes);
            class.leave(account, &Drops::default(), Some(40));
        }
        assert_eq!((class.paths(), class.memory(), class.standing, class.standing_memory), (0, 0, 0, 0));
    }

    #[test]
    fn memory_is_charged_to_path_and_class() {
        let mut class = ClassUse::new(Limits { paths: 9, path_memory: 100, class_memory: 100 });
        let mut account = Account::new(100);
        class.admit(&mut account, 10, false).unwrap();
        assert_eq!(class.charge(&mut account, 90), Ok(()));
        assert_eq!(class.charge(&mut account, 1), Err(DropReason::NoMemory));
        class.release(&mut account, 100);
        class.leave(&account, &Drops::default(), None);
        assert_eq!((class.paths(), class.memory(), account.memory()), (0, 0, 0));
    }

    #[test]
    fn an_unknown_class_is_class_0() {
        let mut classes = Classes::default();
        classes.set_limits(2, Limits { paths: 7, ..Limits::NONE });
        assert_eq!(classes.of(2).limits.paths, 7);
        assert_eq!(classes.of(9).limits, Limits::NONE);
        assert_eq!(classes.iter().count(), 3);
    }
}
