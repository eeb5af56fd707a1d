//! What programs call themselves and what they tell of, as it is remembered, logged and reported: short, and in one line, so
//! that no program can fill the daemon's memory with it or write lines into its log that seem to be the daemon's.

/// Characters that are kept.
pub const LEGIBLE: usize = 200;

/// So much of a text as is kept, without what would end a line or steer a terminal.
pub fn legible(text: &str) -> String {
    let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().take(LEGIBLE).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_short_and_one_line() {
        assert_eq!(legible("setsockopt(IPPROTO_IP, 25)"), "setsockopt(IPPROTO_IP, 25)");
        assert_eq!(legible("a\nsilkd: b\x1b[2Jc"), "a\u{fffd}silkd: b\u{fffd}[2Jc");
        assert_eq!(legible(&"\u{00e4}".repeat(60_000)).chars().count(), LEGIBLE);
    }
}
