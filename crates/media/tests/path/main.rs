//! A video path from device to display, without libraries and in virtual time.

mod integrated;
mod rig;
mod stamps;
