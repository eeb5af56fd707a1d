//! The least of recent values. Two halves of the window are kept: the least of the half that is
//! filling and of the one before it, so what is answered is the least of at least half a window and
//! at most a whole one.

use silk_instant::Instant;

/// The least value of a window of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowedMin {
    current: u32,
    previous: u32,
    /// The second in which the half that is filling began.
    since: u32,
}

impl WindowedMin {
    pub(crate) const fn new() -> Self {
        Self { current: u32::MAX, previous: u32::MAX, since: 0 }
    }

    /// Takes a value at a time that is no earlier than the last one; the window is of `seconds`.
    pub(crate) fn update(&mut self, now: Instant, value: u32, seconds: u32) {
        let second = (now.nanos() / 1_000_000_000) as u32;
        let age = second.wrapping_sub(self.since);
        if age >= seconds / 2 {
            let previous = if age < seconds { self.current } else { u32::MAX };
            *self = Self { current: value, previous, since: second };
        }
        self.current = self.current.min(value);
    }

    /// The least; zero before the first value.
    pub(crate) fn get(&self) -> u32 {
        let least = self.previous.min(self.current);
        if least == u32::MAX { 0 } else { least }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_zero() {
        assert_eq!(WindowedMin::new().get(), 0);
    }

    // RFC 8985 §6.2.
    #[test]
    fn a_value_is_remembered_for_half_a_window_and_forgotten_after_a_whole_one() {
        let mut min = WindowedMin::new();
        let seen: alloc::vec::Vec<u32> = [(100, 5), (104, 9), (105, 9), (109, 9), (110, 9), (114, 8)]
            .into_iter()
            .map(|(secs, value)| {
                min.update(Instant::from_millis(secs * 1_000), value, 10);
                min.get()
            })
            .collect();
        assert_eq!(seen, [5, 5, 5, 5, 9, 8]);
        min.update(Instant::from_millis(200_000), 70, 10);
        assert_eq!(min.get(), 70);
    }
}
