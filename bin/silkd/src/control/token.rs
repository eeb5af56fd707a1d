//! What a family is known by to its own programs, and what passes sockets on: nobody can guess it.

/// 64 random bits.
pub fn random_token() -> u64 {
    // The kernel's random numbers do not fail once the machine has booted.
    rand_core::TryRngCore::try_next_u64(&mut rand_core::OsRng).unwrap_or_else(|_| std::process::id().into())
}
