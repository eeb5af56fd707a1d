//! The classifier (Scout §3.4): packet → path, without side effects.
pub mod layout;
