//! Which groups a host is in and which of their sources it hears, and when it says so: the host's part of
//! IGMP (RFC 3376 §5) and MLD (RFC 3810 §6), which differ in their messages alone. Time and
//! randomness are arguments; what is to be sent is an answer. It must never answer at once, nor more
//! than once for one question, however often it is asked.

use crate::filter::Filter;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;
use silk_instant::Instant;
use silk_wire::igmp::{Query, Record, Sort, Version};

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
/// Sources of one group that a host tells of: its record fits every link. Whoever chooses among more hears all, as far
/// as routers know.
const SOURCES: usize = 60;

/// One group.
struct Member<G> {
    filter: Filter<G>,
    change: Change<G>,
    /// When its change is to be told next.
    change_at: Instant,
    /// When it is to be told that somebody asked for.
    answer_at: Instant,
}

/// What has changed of a group, as long as it is to be told (RFC 3376 §5.1).
struct Change<G> {
    /// How often still.
    left: u8,
    /// From sources that are listed to all but these, or back: the whole list is told.
    whole: bool,
    /// Sources that are heard now, and those that no longer are.
    allowed: BTreeSet<G>,
    blocked: BTreeSet<G>,
}

impl<G> Default for Change<G> {
    fn default() -> Self {
        Self { left: 0, whole: false, allowed: BTreeSet::new(), blocked: BTreeSet::new() }
    }
}

impl<G: Copy + Ord> Change<G> {
    /// Another follows, before the last has been told often enough.
    fn follow(&mut self, from: &Filter<G>, to: &Filter<G>) {
        self.left = ROBUSTNESS;
        if from.excludes() != to.excludes() {
            *self = Self { left: ROBUSTNESS, whole: true, ..Self::default() };
        } else if !self.whole {
            let (more, less) = (to.sources() - from.sources(), from.sources() - to.sources());
            let (allowed, blocked) = if to.excludes() { (less, more) } else { (more, less) };
            self.allowed = &(&self.allowed | &allowed) - &blocked;
            self.blocked = &(&self.blocked | &blocked) - &allowed;
        }
    }

    /// What is told of it once. Of many sources, for those of several changes come together, in several records, each of
    /// which fits every link (RFC 3376 §4.2.16).
    fn told(&self, group: G, filter: &Filter<G>) -> Vec<Told<G>> {
        let told = |sort, sources: Vec<G>| Told { sort, group, sources, is_left: filter.is_nobody() };
        let list = |sources: &BTreeSet<G>| sources.iter().copied().collect::<Vec<G>>();
        if self.whole {
            let sort = if filter.excludes() { Sort::ToExclude } else { Sort::ToInclude };
            return [told(sort, list(filter.sources()))].into();
        }
        let parts = [(Sort::Allow, list(&self.allowed)), (Sort::Block, list(&self.blocked))];
        let pieces =
            parts.iter().flat_map(|(sort, part)| part.chunks(SOURCES).map(move |piece| (*sort, piece)));
        pieces.map(|(sort, piece)| told(sort, piece.to_vec())).collect()
    }
}

/// What is to be told of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told<G> {
    /// What.
    pub sort: Sort,
    /// The group.
    pub group: G,
    /// Of which sources.
    pub sources: Vec<G>,
    /// Nobody is heard there any more.
    pub is_left: bool,
}

impl<G: Copy> Told<G> {
    /// As a record of a report.
    pub fn record(&self) -> Record<'_, G> {
        Record { sort: self.sort, group: self.group, sources: &self.sources }
    }
}

/// The groups.
pub(crate) struct Membership<G> {
    members: BTreeMap<G, Member<G>>,
    /// Until when there are routers that speak the first version, and the second.
    older: [Instant; 2],
}

impl<G> Default for Membership<G> {
    fn default() -> Self {
        Self { members: BTreeMap::new(), older: [Instant::ZERO; 2] }
    }
}

impl<G: Copy + Ord> Membership<G> {
    /// Other sources of the group are heard from now on; it is told at the next look.
    pub fn change(&mut self, now: Instant, group: G, filter: Filter<G>) {
        let filter = if filter.sources().len() > SOURCES { Filter::everybody() } else { filter };
        let nobody = Filter::nobody();
        let known = self.members.get(&group).map_or(&nobody, |member| &member.filter);
        let room = self.members.len() < MOST || self.members.contains_key(&group);
        if *known == filter || !room {
            return;
        }
        let fresh =
            || Member { filter: nobody, change: Change::default(), change_at: now, answer_at: Instant::FAR };
        let member = self.members.entry(group).or_insert_with(fresh);
        member.change.follow(&member.filter, &filter);
        member.filter = filter;
        member.change_at = now;
    }

    /// Whether any source of the group is heard.
    pub fn hears(&self, group: &G) -> bool {
        self.members.get(group).is_some_and(|member| !member.filter.is_nobody())
    }

    /// A router asks. `random` spreads the answers of those who hear it.
    pub fn asked(&mut self, now: Instant, query: &Query<G>, random: u64) {
        match query.version {
            Version::One => self.older[0] = now + OLDER,
            Version::Two => self.older[1] = now + OLDER,
            Version::Three => {}
        }
        let within = Duration::from_millis(query.within.into()).clamp(SOONEST, LATEST);
        let at = now + part(within, random);
        let meant = |group: &G| query.group.is_none_or(|asked| asked == *group);
        for (_, member) in self.members.iter_mut().filter(|(group, _)| meant(group)) {
            if !member.filter.is_nobody() {
                member.answer_at = member.answer_at.min(at);
            }
        }
    }

    /// Whose language the routers understand.
    pub fn version(&self, now: Instant) -> Version {
        let [one, two] = self.older.map(|until| until > now);
        if one {
            Version::One
        } else if two {
            Version::Two
        } else {
            Version::Three
        }
    }

    /// What is to be told now.
    pub fn due(&mut self, now: Instant, mut random: impl FnMut() -> u64) -> Vec<Told<G>> {
        let mut told = Vec::new();
        for (group, Member { filter, change, change_at, answer_at }) in &mut self.members {
            let changed = change.left > 0 && *change_at <= now;
            let whole = changed && change.whole;
            if changed {
                told.extend(change.told(*group, filter));
                change.left -= 1;
                *change_at = if change.left > 0 { now + part(UNSOLICITED, random()) } else { Instant::FAR };
                if change.left == 0 {
                    *change = Change::default();
                }
            }
            if *answer_at <= now {
                *answer_at = Instant::FAR;
                // Who hears of the whole list has heard all.
                if !whole && !filter.is_nobody() {
                    let sort = if filter.excludes() { Sort::Exclude } else { Sort::Include };
                    let sources = filter.sources().iter().copied().collect();
                    told.push(Told { sort, group: *group, sources, is_left: false });
                }
            }
        }
        self.members.retain(|_, member| !member.filter.is_nobody() || member.change.left > 0);
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

    /// The group is joined, whatever the source, or left.
    fn join(groups: &mut Membership<u8>, now: Instant, group: u8, joined: bool) {
        groups.change(now, group, if joined { Filter::everybody() } else { Filter::nobody() });
    }

    /// Those sources alone.
    fn only(sources: &[u8]) -> Filter<u8> {
        let mut filter = Filter::nobody();
        sources.iter().for_each(|source| _ = filter.list(*source));
        filter
    }

    /// All but those sources.
    fn but(sources: &[u8]) -> Filter<u8> {
        let mut filter = Filter::everybody();
        sources.iter().for_each(|source| _ = filter.list(*source));
        filter
    }

    /// All that is told until `end`.
    fn whole(groups: &mut Membership<u8>, end: Instant) -> Vec<(Instant, Told<u8>)> {
        let mut all = Vec::new();
        while groups.deadline() <= end {
            let now = groups.deadline();
            all.extend(groups.due(now, || u64::MAX / 2).into_iter().map(|told| (now, told)));
        }
        all
    }

    /// The same without sources, with the second it is told in.
    fn told(groups: &mut Membership<u8>, end: Instant) -> Vec<(u64, u8, Sort)> {
        let all = whole(groups, end).into_iter();
        all.map(|(now, told)| (now.millis() / 1000, told.group, told.sort)).collect()
    }

    /// The sorts and the sources of what is told until `end`.
    fn of_sources(groups: &mut Membership<u8>, end: Instant) -> Vec<(Sort, Vec<u8>)> {
        whole(groups, end).into_iter().map(|(_, told)| (told.sort, told.sources)).collect()
    }

    #[test]
    fn a_change_is_told_twice_and_what_was_left_is_forgotten() {
        let (mut groups, now) = (Membership::default(), Instant::ZERO);
        join(&mut groups, now, 1, true);
        join(&mut groups, now, 1, true);
        assert_eq!(told(&mut groups, now + SECOND), [(0, 1, Sort::ToExclude), (0, 1, Sort::ToExclude)]);
        join(&mut groups, now + SECOND, 1, false);
        assert_eq!(told(&mut groups, now + SECOND * 3), [(1, 1, Sort::ToInclude), (1, 1, Sort::ToInclude)]);
        assert_eq!((groups.members.len(), groups.deadline()), (0, Instant::FAR));
    }

    /// RFC 3376 §5.1, its table.
    #[test]
    fn what_is_told_of_sources_is_what_has_changed() {
        use Sort::{Allow, Block, ToExclude, ToInclude};
        let (mut groups, mut now) = (Membership::default(), Instant::ZERO);
        type Records = &'static [(Sort, &'static [u8])];
        let steps: [(Filter<u8>, Records); 9] = [
            (only(&[1, 2]), &[(Allow, &[1, 2])]),
            (only(&[2, 3]), &[(Allow, &[3]), (Block, &[1])]),
            (but(&[4]), &[(ToExclude, &[4])]),
            (but(&[5]), &[(Allow, &[4]), (Block, &[5])]),
            (but(&[]), &[(Allow, &[5])]),
            (only(&[6]), &[(ToInclude, &[6])]),
            (only(&[]), &[(Block, &[6])]),
            (but(&[7]), &[(ToExclude, &[7])]),
            (only(&[]), &[(ToInclude, &[])]),
        ];
        for (filter, expected) in steps {
            groups.change(now, 1, filter);
            now += SECOND;
            let expected: Vec<_> = expected.iter().map(|(sort, sources)| (*sort, sources.to_vec())).collect();
            assert_eq!(of_sources(&mut groups, now), [expected.clone(), expected].concat());
        }
        assert!(groups.members.is_empty());
    }

    #[test]
    fn a_change_that_follows_before_the_last_was_told_twice_is_told_with_it() {
        use Sort::{Allow, Block, ToExclude};
        let (mut groups, now) = (Membership::default(), Instant::ZERO);
        groups.change(now, 1, only(&[1]));
        assert_eq!(groups.due(now, || 0).len(), 1);
        groups.change(now, 1, only(&[2]));
        let both = [(Allow, [2].to_vec()), (Block, [1].to_vec())];
        assert_eq!(of_sources(&mut groups, now + SECOND), [both.clone(), both].concat());
        groups.change(now, 1, only(&[2, 3]));
        assert_eq!(groups.due(now, || 0).len(), 1);
        groups.change(now, 1, but(&[]));
        groups.due(now, || 0);
        groups.change(now, 1, but(&[4]));
        assert_eq!(
            of_sources(&mut groups, now + SECOND),
            [(ToExclude, [4].to_vec()), (ToExclude, [4].to_vec())]
        );
    }

    #[test]
    fn who_asks_hears_of_the_sources_too() {
        let (mut groups, now) = (Membership::default(), Instant::ZERO);
        groups.change(now, 1, only(&[1, 2]));
        groups.change(now, 2, but(&[3]));
        of_sources(&mut groups, now + SECOND);
        groups.asked(now + SECOND, &query(None, 10_000, Version::Three), 1_000_000_000);
        let both = [(Sort::Include, [1, 2].to_vec()), (Sort::Exclude, [3].to_vec())];
        assert_eq!(of_sources(&mut groups, now + SECOND * 20), both);
    }

    #[test]
    fn what_several_changes_come_to_is_told_in_records_that_fit() {
        use Sort::{Allow, Block};
        let (mut groups, now) = (Membership::default(), Instant::ZERO);
        let list = |from: u8, to: u8| (from..=to).collect::<Vec<_>>();
        groups.change(now, 1, but(&list(1, 60)));
        of_sources(&mut groups, now + SECOND);
        groups.change(now + SECOND, 1, but(&list(61, 120)));
        groups.change(now + SECOND, 1, but(&list(121, 180)));
        let all = [(Allow, list(1, 60)), (Allow, list(61, 120)), (Block, list(121, 180))];
        assert_eq!(of_sources(&mut groups, now + SECOND * 2), [all.clone(), all].concat());
    }

    #[test]
    fn who_chooses_among_more_than_can_be_told_hears_all() {
        let (mut groups, now) = (Membership::default(), Instant::ZERO);
        groups.change(now, 1, only(&(0..=SOURCES as u8).collect::<Vec<_>>()));
        assert_eq!(of_sources(&mut groups, now)[0], (Sort::ToExclude, Vec::new()));
    }

    #[test]
    fn a_question_is_answered_once_within_its_time_however_often_it_is_asked() {
        let (mut groups, now) = (Membership::default(), Instant::ZERO);
        join(&mut groups, now, 1, true);
        join(&mut groups, now, 2, true);
        told(&mut groups, now + SECOND);
        let now = now + SECOND;
        for _ in 0..1000 {
            groups.asked(now, &query(None, 10_000, Version::Three), 3_000_000_000);
            groups.asked(now, &query(Some(2), 10_000, Version::Three), 2_000_000_000);
            groups.asked(now, &query(Some(9), 10_000, Version::Three), 0);
        }
        assert_eq!(told(&mut groups, now + SECOND * 20), [(3, 2, Sort::Exclude), (4, 1, Sort::Exclude)]);
    }

    #[test]
    fn nobody_is_answered_at_once_or_never() {
        let (mut groups, now) = (Membership::default(), Instant::ZERO);
        join(&mut groups, now, 1, true);
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

    // RFC 3376 §7.2.1.
    #[test]
    fn a_router_of_the_first_version_is_forgotten_though_others_of_the_second_go_on() {
        let (mut groups, now) = (Membership::<u8>::default(), Instant::ZERO);
        groups.asked(now, &query(None, 1000, Version::One), 0);
        for n in 0..3 {
            groups.asked(now + 125 * n * SECOND, &query(None, 1000, Version::Two), 0);
        }
        assert_eq!(groups.version(now + SECOND), Version::One);
        assert_eq!(groups.version(now + OLDER), Version::Two);
        assert_eq!(groups.version(now + 250 * SECOND + OLDER), Version::Three);
    }

    #[test]
    fn there_is_an_end_to_groups() {
        let (mut groups, now) = (Membership::default(), Instant::ZERO);
        (0..=255u8).for_each(|group| join(&mut groups, now, group, true));
        assert_eq!(groups.members.len(), MOST);
    }

    #[test]
    fn where_there_is_no_room_one_that_is_there_can_be_left_and_makes_room() {
        let (mut groups, now) = (Membership::default(), Instant::ZERO);
        (0..=255u8).for_each(|group| join(&mut groups, now, group, true));
        told(&mut groups, now + SECOND);
        let now = now + SECOND;
        join(&mut groups, now, 0, false);
        assert_eq!(told(&mut groups, now + SECOND), [(1, 0, Sort::ToInclude), (1, 0, Sort::ToInclude)]);
        join(&mut groups, now + SECOND, 200, true);
        assert!(groups.hears(&200) && !groups.hears(&0));
    }
}
