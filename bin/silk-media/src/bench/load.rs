//! What the experiment with deadlines plays: Neptune, by a player that takes commands.

use super::Bench;
use super::beside::appliance_arguments;
use super::player::Player;
use crate::trouble::Trouble;
use silk_testkit::netns::Rig;
use std::time::Duration;

/// What the experiment needs to know of Neptune.
pub struct Load {
    /// CPU of a picture.
    pub realtime: Duration,
    /// Pictures.
    pub pictures: u64,
    /// Its rate.
    pub rate: f64,
    /// Its own rate, which peers can play it at.
    pub own: f64,
}

/// A player on the server that takes commands from the client.
pub fn appliance(bench: &Bench<'_>, rig: &Rig, schedule: &str) -> Result<Player, Trouble> {
    let arguments = appliance_arguments(bench.scratch, schedule)?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Player::start(&rig.server, bench.cpu, bench.scratch, &arguments)
}
