//! The live paths of a graph, those of one class through the same modules taken together.

use silk_control::Report;

/// Paths of one class through the same modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Their class.
    pub class: String,
    /// The modules they cross, device first.
    pub modules: Vec<String>,
    /// How many there are.
    pub paths: usize,
}

impl Stream {
    /// What it is and where it ends, in words.
    pub fn full_label(&self) -> String {
        match self.modules.last() {
            Some(last) => format!("{}, up to {last}", self.label()),
            None => self.label(),
        }
    }

    /// What it is, in words.
    pub fn label(&self) -> String {
        let plural = if self.paths == 1 { "path" } else { "paths" };
        format!("{} {plural} of class {}", self.paths, self.class)
    }
}

/// The streams of a report, the largest first.
pub fn streams(report: &Report) -> Vec<Stream> {
    let mut streams: Vec<Stream> = Vec::new();
    for path in &report.paths {
        let same = |stream: &&mut Stream| stream.class == path.class && stream.modules == path.modules;
        match streams.iter_mut().find(same) {
            Some(stream) => stream.paths += 1,
            None => {
                streams.push(Stream { class: path.class.clone(), modules: path.modules.clone(), paths: 1 })
            }
        }
    }
    streams.sort_by_key(|stream| std::cmp::Reverse(stream.paths));
    streams
}
