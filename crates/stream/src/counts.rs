//! How many there are at most of what an arena has.

use crate::dirty::MARKS;

/// Sockets in one arena.
pub const SLOTS: u32 = MARKS;
/// Event sets (`epoll` instances with sockets of ours in them) of one family.
pub const BELLS: u32 = 256;
/// Listening sockets of one family.
pub const LISTENERS: u32 = 256;
/// Places for files of one family that are sent by reference.
pub const FILES: u32 = 1024;
/// In how many of them one file may be.
pub const WAYS: u32 = 8;
/// Domains, and so priorities, that one daemon can have.
pub const DOMAINS: usize = 16;
/// How many classes have accept queues of their own.
pub const RANKS: usize = DOMAINS;
