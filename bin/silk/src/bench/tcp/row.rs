//! The rows of the table: what is measured, over which systems, in which cases.

use super::kept::Clients;
use super::link::Link;
use super::system::System;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A row of the experiment. The letters are short names for the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Row {
    /// One flow, the server sending
    #[value(alias = "a")]
    Send,
    /// One flow, the server receiving
    #[value(alias = "b")]
    Receive,
    /// 64 bytes there and back
    #[value(alias = "c")]
    PingPong,
    /// Connections opened and closed
    #[value(alias = "d")]
    Connections,
    /// Preferred requests beside a flood of SYNs
    #[value(alias = "e")]
    SynFlood,
    /// Datagrams of 64 bytes received
    #[value(alias = "f")]
    Datagrams,
    /// One flow over a bad network, the server sending, and receiving
    #[value(alias = "g")]
    Emulator,
    /// A hundred thousand idle connections, in process; eight thousand real ones
    #[value(alias = "h")]
    Many,
    /// Requests over kept connections, nginx and wrk
    #[value(alias = "i")]
    Kept,
    /// Connections that a program opens, one for each request, wrk and nginx
    #[value(alias = "j")]
    Opening,
}

/// What distinguishes the measurements of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Case {
    /// Nothing: there is one.
    Only,
    /// The network, over which the server sends.
    Over(Link),
    /// The network, over which the server receives.
    Into(Link),
    /// Who asks.
    Kept(Clients),
    /// How many connections at a time.
    Opening(u32),
    /// Datagrams that are sent in a second, before as many as can be.
    Offered(&'static [u32]),
}

/// What is offered to a program that receives datagrams: up to more than any system here takes in, or the most that one receives
/// would be what it is offered.
const OFFERED: [u32; 9] =
    [600_000, 800_000, 1_000_000, 1_200_000, 1_400_000, 1_600_000, 1_800_000, 2_100_000, 2_500_000];
/// The same in a short run.
const OFFERED_BRIEFLY: [u32; 4] = [800_000, 1_200_000, 1_600_000, 2_100_000];

impl Row {
    /// All of them, in the order of a round.
    pub const ALL: [Self; 10] = [
        Self::Send,
        Self::Receive,
        Self::PingPong,
        Self::Connections,
        Self::SynFlood,
        Self::Datagrams,
        Self::Emulator,
        Self::Many,
        Self::Kept,
        Self::Opening,
    ];

    /// How it reads in a table.
    pub fn title(self) -> &'static str {
        match self {
            Self::Send => "one flow, sending",
            Self::Receive => "one flow, receiving",
            Self::PingPong => "64 bytes there and back",
            Self::Connections => "connections opened and closed",
            Self::SynFlood => "preferred requests, SYN flood",
            Self::Datagrams => "datagrams of 64 bytes, receiving",
            Self::Emulator => "goodput over a bad network",
            Self::Many => "many connections",
            Self::Kept => "requests over kept connections",
            Self::Opening => "connections that a program opens",
        }
    }

    /// The systems that are measured, in the order of a turn.
    pub fn systems(self) -> &'static [System] {
        match self {
            Self::Connections | Self::Emulator | Self::Opening => &[System::Linux, System::Silk],
            Self::Send => &[System::Linux, System::Silk, System::SilkWide],
            Self::Receive => &[
                System::Linux,
                System::LinuxNoTso,
                System::LinuxNapi,
                System::Silk,
                System::SilkWide,
                System::SilkSteered,
                System::SilkSteeredWide,
            ],
            Self::PingPong => &[System::Linux, System::Silk, System::SilkPreferred, System::SilkSteered],
            Self::SynFlood => &[
                System::Linux,
                System::SilkPreferred,
                System::SilkQueuesPreferred,
                System::SilkSteeredPreferred,
                System::SilkNoCookies,
            ],
            Self::Datagrams => &[System::Linux, System::LinuxNapi, System::Silk, System::SilkSteered],
            Self::Many => &[System::Linux, System::Silk, System::InProcess],
            Self::Kept => &[System::Linux, System::LinuxNapi, System::Silk],
        }
    }

    /// Its cases; fewer in a short run. `networks` are the bad ones.
    pub fn cases(self, quick: bool, networks: &[Link]) -> Vec<Case> {
        match self {
            Self::Emulator => {
                // Who sends gets over losses, and that is Linux in both systems, but by what it is told of them.
                let each = |case: fn(Link) -> Case| networks.iter().copied().map(case);
                each(Case::Over).chain(each(Case::Into)).collect()
            }
            Self::Datagrams if quick => vec![Case::Offered(&OFFERED_BRIEFLY)],
            Self::Datagrams => vec![Case::Offered(&OFFERED)],
            Self::Kept if quick => vec![Case::Kept(Clients::so_many(100))],
            Self::Kept => {
                let many = Clients { connections: 500, queued: true };
                [16, 100, 500].map(Clients::so_many).into_iter().chain([many]).map(Case::Kept).collect()
            }
            Self::Opening if quick => vec![Case::Opening(16)],
            Self::Opening => [1, 16, 200].map(Case::Opening).into(),
            _ => vec![Case::Only],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_schema_of_the_results_knows_every_row_and_every_system() {
        let schema: serde_json::Value =
            serde_json::from_str(include_str!("../../../../../bench/schema.json")).expect("it is JSON");
        let known = |list: &serde_json::Value| -> BTreeSet<String> {
            let names = list["enum"].as_array().expect("a list").iter();
            names.map(|name| name.as_str().expect("a name").to_owned()).collect()
        };
        let rows =
            Row::ALL.map(|row| row.to_possible_value().expect("it is an option").get_name().to_owned());
        assert_eq!(known(&schema["$defs"]["tcp_row"]), BTreeSet::from(rows));
        let systems = Row::ALL.into_iter().flat_map(Row::systems).map(|system| system.name().to_owned());
        let listed = &schema["$defs"]["measurement"]["properties"]["system"];
        assert_eq!(known(listed), systems.collect());
    }
}
