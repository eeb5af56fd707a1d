//! `silk`.
fn main() {}
