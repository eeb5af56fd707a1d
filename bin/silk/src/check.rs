//! `silk check`: is a configuration or a graph right? Tells every fault of every file, and of
//! the graphs that configurations name, and changes nothing.

use crate::kinds;
use crate::trouble::Trouble;
use silk_config::{Config, Faults, Graph, Refuse, Source, Unlisted};
use silk_path::Catalogue;
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
    let (mut wrong, mut unreadable) = (Vec::new(), Vec::new());
    // Each with the configuration that names it, which is another file than those that were given.
    let mut files: VecDeque<(PathBuf, Option<String>)> =
        options.files.iter().map(|file| (file.clone(), None)).collect();
    while let Some((file, named_by)) = files.pop_front() {
        let told = |source: Source| Ok((describe(&source, named_by.is_some())?, source.name));
        match Source::read(&file).map(told) {
            Ok(Ok(((told, named), name))) => {
                let _ = writeln!(stdout(), "{name}: {told}");
                match named.refuse.everybody(&name) {
                    Ok(nobody) if nobody.is_empty() => {}
                    Ok(refused) => _ = writeln!(stdout(), "{name}: refuses {refused}"),
                    Err(Unlisted::Wrong(faults)) => wrong.push(faults),
                    Err(Unlisted::Unreadable(why)) => unreadable.push(why),
                }
                files.extend(named.graph.map(|graph| (graph, Some(name))));
            }
            Ok(Err(faults)) => wrong.push(faults),
            Err(why) => unreadable.push(match named_by {
                Some(configuration) => why.graph_of(&configuration),
                None => why,
            }),
        }
    }
    if wrong.is_empty() && unreadable.is_empty() { Ok(()) } else { Err(Trouble::Files(wrong, unreadable)) }
}

/// The files that a configuration names.
#[derive(Default)]
struct Named {
    graph: Option<PathBuf>,
    refuse: Refuse,
}

/// What a file that is right holds, in a line, and what it names. One that is `named` by a configuration is a graph, whatever is in
/// it, and the daemon's.
fn describe(source: &Source, named: bool) -> Result<(String, Named), Faults> {
    if named || Graph::is_one(&source.text) {
        let check = |catalogue: &dyn Catalogue| Graph::check(&source.name, &source.text, catalogue);
        let graph = if named { check(&kinds::of_the_daemon())? } else { check(&kinds::catalogue())? };
        let (modules, links) = (graph.modules.len(), graph.links.len());
        return Ok((
            format!("a graph of {modules} modules and {links} links, without a fault"),
            Named::default(),
        ));
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
    let named = Named { graph: config.graph, refuse: config.refuse };
    Ok((format!("a configuration without a fault: {device}, {policy}, classes {classes}"), named))
}
