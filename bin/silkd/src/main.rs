//! `silkd`.
fn main() {}
