//! What a path has used (Scout §4.4): one block of counters per path. Memory is
//! charged before it is taken and must be zero when the path is gone.

use crate::DropReason;

/// One path's account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Bytes of memory held now. Above `memory_limit` only where that was lowered since.
    memory: u64,
    memory_limit: u64,
    /// The most bytes of memory ever held.
    pub memory_peak: u64,
    /// CPU time of the path itself, in ns.
    pub cpu_path: u64,
    /// CPU time of the program's threads while they ran for the path, in ns.
    pub cpu_program: u64,
    /// Messages that entered at the bottom.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Messages that left at the bottom.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
}

impl Account {
    /// An empty account that may hold `memory_limit` bytes.
    pub const fn new(memory_limit: u64) -> Self {
        Self {
            memory: 0,
            memory_limit,
            memory_peak: 0,
            cpu_path: 0,
            cpu_program: 0,
            packets_in: 0,
            bytes_in: 0,
            packets_out: 0,
            bytes_out: 0,
        }
    }

    /// Bytes of memory held now.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Bytes of memory it may hold.
    pub fn memory_limit(&self) -> u64 {
        self.memory_limit
    }

    /// Sets what it may hold. What it holds above that it keeps; it gets no more.
    pub fn set_memory_limit(&mut self, bytes: u64) {
        self.memory_limit = bytes;
    }

    /// Charges `bytes`, or refuses them whole.
    pub fn charge(&mut self, bytes: u64) -> Result<(), DropReason> {
        let memory = self.memory.saturating_add(bytes);
        if memory > self.memory_limit {
            return Err(DropReason::NoMemory);
        }
        self.memory = memory;
        self.memory_peak = self.memory_peak.max(memory);
        Ok(())
    }

    /// Gives `bytes` back.
    ///
    /// # Panics
    /// When more is given back than was charged: a stage's books are wrong.
    pub fn release(&mut self, bytes: u64) {
        assert!(bytes <= self.memory, "released {bytes} bytes of {} charged", self.memory);
        self.memory -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_is_taken_whole_or_not() {
        let mut account = Account::new(100);
        assert_eq!(account.charge(60), Ok(()));
        assert_eq!(account.charge(41), Err(DropReason::NoMemory));
        account.release(10);
        assert_eq!((account.memory(), account.memory_peak), (50, 60));
    }

    #[test]
    fn under_a_lower_limit_it_keeps_what_it_has_and_gets_no_more() {
        let mut account = Account::new(100);
        account.charge(60).unwrap();
        account.set_memory_limit(50);
        assert_eq!((account.charge(1), account.memory()), (Err(DropReason::NoMemory), 60));
        account.release(20);
        assert_eq!((account.charge(10), account.memory_limit()), (Ok(()), 50));
    }

    #[test]
    #[should_panic(expected = "released 1 bytes of 0 charged")]
    fn nothing_is_released_that_was_not_charged() {
        Account::new(100).release(1);
    }
}
