//! `silk reload`: the daemon reads its configuration again and applies changed classes, all
//! or nothing.

use crate::daemon;
use crate::trouble::Trouble;
use silk_control::{Reply, Request};
use std::io::{Write, stdout};

/// There is nothing to choose.
#[derive(clap::Args, Debug)]
pub struct Options {}

/// Asks for it and tells what took effect.
pub fn run(_options: &Options) -> Result<(), Trouble> {
    let Reply::Reloaded { applied, restart } = daemon::ask(&daemon::connect_to_ask()?, &Request::Reload)?
    else {
        return Err(daemon::unexpected());
    };
    let mut out = stdout().lock();
    let mut tell = |line: &str| drop(writeln!(out, "{line}"));
    if applied.is_empty() && restart.is_empty() {
        tell("nothing has changed");
    }
    for line in &applied {
        tell(&format!("applied: {line}"));
    }
    for line in &restart {
        tell(&format!("needs a restart of the daemon: {line}"));
    }
    Ok(())
}
