//! `silk reload`: the daemon reads its configuration again and applies changed classes, all
//! or nothing.

use crate::daemon;
use crate::trouble::{Trouble, print};
use silk_control::{Reply, Request};

/// There is nothing to choose.
#[derive(clap::Args, Debug)]
pub struct Options {}

/// Asks for it and tells what took effect.
pub fn run(_options: &Options) -> Result<(), Trouble> {
    let Reply::Reloaded { applied, restart } = daemon::ask(&daemon::connect_to_ask()?, &Request::Reload)?
    else {
        return Err(daemon::unexpected());
    };
    let mut lines: Vec<String> = applied.iter().map(|line| format!("applied: {line}\n")).collect();
    lines.extend(restart.iter().map(|line| format!("needs a restart of the daemon: {line}\n")));
    if lines.is_empty() {
        lines.push("nothing has changed\n".to_owned());
    }
    print(lines.concat().as_bytes())
}
