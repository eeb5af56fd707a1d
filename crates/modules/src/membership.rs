//! Which groups a host is in, and when it says so: the host's part of IGMP (RFC 3376 §5) and MLD (RFC 3810
//! §6), which differ in their messages alone. Whoever is in a group hears all sources. Time and
//! randomness are arguments; what is to be sent is an answer. It must never answer at once, nor more
//! than once for one question, however often it is asked.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;
use silk_instant::Instant;
use silk_wire::igmp::{Query, Sort, Version};

/// How often a change is told, for a report may be lost (RFC 3376 §8.1).
const ROBUSTNESS: u8 = 2;
/// Within which time it is told again (§8.11).
const UNSOLICITED: Duration = Duration::from_secs(1);
/// How long a router that speaks an older language is taken to be there (§8.12, with its defaults).
const OLDER: Duration = Duration::from_secs(260);
/// Whoever asks may not want to hear sooner or later than this.
const SOONEST: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::from_secs(60);
/// Groups of one host.
const MOST: usize = 64;

/// One group.
struct Member {
    joined: bool,
    /// How often its last change is still to be told, and when next.
    changes: u8,
    change_at: Instant,
    /// When it is to be told that somebody asked for.
    answer_at: Instant,
}

/// The groups.
pub(crate) struct Membership<G> {
    members: BTreeMap<G, Member>,
    older: Option<(Version, Instant)>,
}

impl<G> Default for Membership<G> {
    fn default() -> Self {
        Self { members: BTreeMap::new(), older: None }
    }
}

impl<G: Copy + Ord> Membership<G> {
    /// The group is joined, or left; it is told at the next look.
    pub fn change(&mut self, now: Instant, group: G, joined: bool) {
        let known = self.members.get(&group).is_some_and(|member| member.joined);
        let room = self.members.len() < MOST || self.members.contains_key(&group);
        if known != joined && room {
            let member = Member { joined, changes: ROBUSTNESS, change_at: now, answer_at: Instant::FAR };
            self.members.insert(group, member);
        }
    }

    /// A router asks. `random` spreads the answers of those who hear it.
    pub fn asked(&mut self, now: Instant, query: &Query<G>, random: u64) {
        if query.version < Version::Three {
            let version = self.version(now).min(query.version);
            self.older = Some((version, now + OLDER));
        }
        let within = Duration::from_millis(query.within.into()).clamp(SOONEST, LATEST);
        let at = now + part(within, random);
        let meant = |group: &G| query.group.is_none_or(|asked| asked == *group);
        for (_, member) in self.members.iter_mut().filter(|(group, member)| member.joined && meant(group)) {
            member.answer_at = member.answer_at.min(at);
        }
    }

    /// Whose language the routers understand.
    pub fn version(&self, now: Instant) -> Version {
        self.older.filter(|(_, until)| *until > now).map_or(Version::Three, |(version, _)| version)
    }

    /// What is to be told now.
    pub fn due(&mut self, now: Instant, mut random: impl FnMut() -> u64) -> Vec<(G, Sort)> {
        let mut told = Vec::new();
        for (group, member) in &mut self.members {
            if member.changes > 0 && member.change_at <= now {
                member.changes -= 1;
                member.change_at =
                    if member.changes > 0 { now + part(UNSOLICITED, random()) } else { Instant::FAR };
                told.push((*group, if member.joined { Sort::Joined } else { Sort::Left }));
            } else if member.answer_at <= now {
                told.push((*group, Sort::Heard));
            }
            if member.answer_at <= now {
                member.answer_at = Instant::FAR;
            }
        }
        self.members.retain(|_, member| member.joined || member.changes > 0);
        told
    }

    /// When there will be something to tell.
    pub fn deadline(&self) -> Instant {
        let times = self.members.values().map(|member| member.answer_at.min(member.change_at));
        times.min().unwrap_or(Instant::FAR)
    }
}

/// A random part of a time.
fn part(whole: Duration, random: u64) -> Duration {
    Duration::from_nanos(random % (whole.as_nanos() as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn query(group: Option<u8>, within: u32, version: Version) -> Query<u8> {
        Query { group, within, version }
    }

    /// All that is told until `end`, with the second it is told in.
    fn told(groups: &mut Membership<u8>, end: Instant) -> Vec<(u64, u8, Sort)> {
        let mut all = Vec::new();
        while groups.deadline() <= end {
            let now = groups.deadline();
            all.extend(
                groups.due(now, || u64::MAX / 2).into_iter().map(|(g, sort)| (now.millis() / 1000, g, sort)),
            );
        }
        all
    }

    #[test]
    fn a_change_is_told_twice_and_what_was_left_is_forgotten() {
        let (mut groups, now) = (Membership::default(), Instant::ZERO);
        groups.change(now, 1, true);
        groups.change(now, 1, true);
        assert_eq!(told(&mut groups, now + SECOND), [(0, 1, Sort::Joined), (0, 1, Sort::Joined)]);
        groups.change(now + SECOND, 1, false);
        assert_eq!(told(&mut groups, now + SECOND * 3), [(1, 1, Sort::Left), (1, 1, Sort::Left)]);
        assert_eq!((groups.members.len(), groups.deadline()), (0, Instant::FAR));
    }

    #[test]
    fn a_question_is_answered_once_within_its_time_however_often_it_is_asked() {
        let (mut groups, now) = (Membership::default(), Instant::ZERO);
        groups.change(now, 1, true);
        groups.change(now, 2, true);
        told(&mut groups, now + SECOND);
        let now = now + SECOND;
        for _ in 0..1000 {
            groups.asked(now, &query(None, 10_000, Version::Three), 3_000_000_000);
            groups.asked(now, &query(Some(2), 10_000, Version::Three), 2_000_000_000);
            groups.asked(now, &query(Some(9), 10_000, Version::Three), 0);
        }
        assert_eq!(told(&mut groups, now + SECOND * 20), [(3, 2, Sort::Heard), (4, 1, Sort::Heard)]);
    }

    #[test]
    fn nobody_is_answered_at_once_or_never() {
        let (mut groups, now) = (Membership::default(), Instant::ZERO);
        groups.change(now, 1, true);
        told(&mut groups, now + SECOND);
        groups.asked(now, &query(None, 0, Version::Three), 99_999_999);
        assert_eq!(groups.deadline(), now + Duration::from_nanos(99_999_999));
        groups.due(now + SECOND, || 0);
        groups.asked(now, &query(None, u32::MAX, Version::Three), u64::MAX);
        assert!(groups.deadline() < now + LATEST);
    }

    #[test]
    fn an_older_router_is_spoken_to_in_its_language_for_a_while() {
        let (mut groups, now) = (Membership::<u8>::default(), Instant::ZERO);
        groups.asked(now, &query(None, 1000, Version::Two), 0);
        groups.asked(now, &query(None, 1000, Version::Three), 0);
        assert_eq!(groups.version(now + SECOND), Version::Two);
        assert_eq!(groups.version(now + OLDER), Version::Three);
    }

    #[test]
    fn there_is_an_end_to_groups() {
        let (mut groups, now) = (Membership::default(), Instant::ZERO);
        (0..=255u8).for_each(|group| groups.change(now, group, true));
        assert_eq!(groups.members.len(), MOST);
    }
}
