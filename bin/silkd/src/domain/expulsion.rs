//! How far a domain has come in looking for those who have become refused.

use silk_path::classify::Refused;
use std::sync::Arc;

/// Looking for those who have become refused.
#[derive(Debug)]
pub struct Expulsion {
    /// Who is refused.
    pub refused: Arc<Refused>,
    /// The index of the first path that has not been looked at.
    pub next: u32,
}
