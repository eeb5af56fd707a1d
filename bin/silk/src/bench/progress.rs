//! How far the experiment has come: a bar on a terminal, a line for each step elsewhere.

use super::output::say;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::time::Duration;

/// Tells a person where the experiment is.
pub struct Progress {
    bar: ProgressBar,
    lines: bool,
}

impl Progress {
    /// A bar of so many steps.
    pub fn new(steps: u64) -> Self {
        let bar = ProgressBar::new(steps);
        let style = ProgressStyle::with_template("{bar:32} {pos}/{len}  {elapsed}, {eta} to go  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(500));
        Self { bar, lines: !stderr().is_terminal() }
    }

    /// Says what is being done now.
    pub fn says(&self, message: String) {
        if self.lines {
            say(&message);
        }
        self.bar.set_message(message);
    }

    /// One step is done.
    pub fn step(&self) {
        self.bar.inc(1);
    }

    /// Everything is done.
    pub fn ends(&self) {
        self.bar.finish_and_clear();
    }
}
