//! A report of a domain while it is made.

use crate::between::names::Holder;
use silk_control::{ClassReport, PathReport, Report};

/// A report that is being made.
#[derive(Debug)]
pub struct Telling {
    /// Which report it is a part of.
    pub round: u64,
    /// As far as it has come.
    pub report: Report,
    /// Who holds each of its paths.
    pub holders: Vec<Holder>,
    /// The index of the first path that it does not tell of yet.
    pub next: u32,
}

impl Telling {
    /// What a live path has used is its class's as well.
    pub fn tell_of(&mut self, holder: Holder, path: PathReport) {
        let Report { classes, paths, .. } = &mut self.report;
        add(&path, classes);
        paths.push(path);
        self.holders.push(holder);
    }
}

/// Adds what a path has used to its class.
fn add(path: &PathReport, classes: &mut [ClassReport]) {
    for report in classes.iter_mut().filter(|report| report.class == path.class) {
        report.cpu_path_ns += path.cpu_path_ns;
        report.cpu_program_ns += path.cpu_program_ns;
        (0..2).for_each(|way| report.bytes[way] += path.bytes[way]);
        (0..2).for_each(|way| report.packets[way] += path.packets[way]);
    }
}
