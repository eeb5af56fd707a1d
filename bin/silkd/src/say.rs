//! What people are told: a line on standard error. A log that is full or that nobody takes in any more loses it, and the daemon goes
//! on (`eprintln!` would panic, and end the thread that speaks).

use std::fmt;
use std::io::{self, Write};

/// Tells people a line, as `eprintln!` does.
macro_rules! say {
    ($($what:tt)*) => { $crate::say::line(&mut std::io::stderr(), format_args!($($what)*)) };
}
pub(crate) use say;

/// Writes a line at once, as far as it can be written.
pub fn line(to: &mut impl Write, what: fmt::Arguments<'_>) {
    let said: io::Result<()> = to.write_all(format!("{what}\n").as_bytes()).and_then(|()| to.flush());
    // There is nobody left to be told of that.
    let _ = said;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_line_is_told_whole_and_one_that_cannot_be_ends_nothing() {
        let mut told = Vec::new();
        line(&mut told, format_args!("silkd: {} of {}", 1, 2));
        assert_eq!(told, b"silkd: 1 of 2\n");
        line(&mut File::create("/dev/full").unwrap(), format_args!("silkd: lost"));
        let (ours, theirs) = io::pipe().unwrap();
        drop(ours);
        line(&mut { theirs }, format_args!("silkd: lost, too"));
    }
}
