//! `silk check`: is a configuration or a graph right? Tells every fault of every file, and of
//! the graphs that configurations name, and changes nothing.

use crate::kinds;
use crate::trouble::{Trouble, printed};
use silk_config::{Config, Faults, Graph, Source, Unlisted};
use std::collections::VecDeque;
use std::io::{Write, stdout};
use std::path::PathBuf;

/// What to check.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Configuration or graph files; which of the two is told from what is in them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Checks all files; one that is wrong does not keep the others from being checked.
pub fn run(options: &Options) -> Result<(), Trouble> {
    let (mut wrong, mut unreadable, mut told) = (Vec::new(), Vec::new(), Ok(()));
    // Each with the configuration that names it, which is another file than those that were given.
    let mut files: VecDeque<(PathBuf, Option<Box<Configuration>>)> =
        options.files.iter().map(|file| (file.clone(), None)).collect();
    while let Some((file, named_by)) = files.pop_front() {
        let source = match Source::read(&file) {
            Ok(source) => source,
            Err(why) => {
                unreadable.push(match named_by {
                    Some(configuration) => why.graph_of(&configuration.name),
                    None => why,
                });
                continue;
            }
        };
        let config = match describe(&source, named_by.as_deref().map(|named_by| &named_by.config)) {
            Ok((what, config)) => {
                told = told.and(printed(writeln!(stdout(), "{}: {what}", source.name)));
                config
            }
            Err(faults) => {
                wrong.push(faults);
                continue;
            }
        };
        // A graph names no files.
        let Some(config) = config else { continue };
        match config.refuse.everybody(&source.name) {
            Ok(nobody) if nobody.is_empty() => {}
            Ok(refused) => {
                told = told.and(printed(writeln!(stdout(), "{}: refuses {refused}", source.name)));
            }
            Err(Unlisted::Wrong(faults)) => wrong.push(faults),
            Err(Unlisted::Unreadable(why)) => unreadable.push(why),
        }
        if let Some(graph) = config.graph.clone() {
            files.push_back((graph, Some(Box::new(Configuration { name: source.name, config }))));
        }
    }
    // What is wrong is more than that something else could not be told.
    if wrong.is_empty() && unreadable.is_empty() { told } else { Err(Trouble::Files(wrong, unreadable)) }
}

/// A configuration that names a graph.
struct Configuration {
    name: String,
    config: Config,
}

/// What a file that is right holds, in a line, and the configuration that it is. One that is named by a configuration (`by`) is a
/// graph, whatever is in it, and the daemon's.
fn describe(source: &Source, by: Option<&Config>) -> Result<(String, Option<Config>), Faults> {
    let text = (&*source.name, &*source.text);
    let graph = match by {
        Some(config) => Some(Graph::check_for(config, text, &kinds::of_the_daemon())?),
        None if Graph::is_one(&source.text) => Some(Graph::check(text.0, text.1, &kinds::catalogue())?),
        None => None,
    };
    if let Some(graph) = graph {
        let (modules, links) = (graph.modules.len(), graph.links.len());
        return Ok((format!("a graph of {modules} modules and {links} links, without a fault"), None));
    }
    let config = Config::try_from(source)?;
    let interfaces: Vec<_> = config.devices().filter_map(|device| device.interface.as_ref()).collect();
    let interfaces: Vec<&str> = interfaces.into_iter().map(|name| name.as_str()).collect();
    let device = match &interfaces[..] {
        [] => config.device.kind.to_string(),
        interfaces => format!("{} on {}", config.device.kind, interfaces.join(", ")),
    };
    let classes: Vec<&str> = config.classes.iter().map(|class| &*class.name).collect();
    let kinds: Vec<String> = config.policies.iter().map(|policy| policy.kind.to_string()).collect();
    let policy = if kinds.is_empty() { config.scheduler.policy.to_string() } else { kinds.join(" and ") };
    let classes = classes.join(", ");
    let told = format!("a configuration without a fault: {device}, {policy}, classes {classes}");
    Ok((told, Some(config)))
}
