//! Which sources of a group somebody hears (RFC 3376 §3, RFC 3810 §4): those that are listed, or all
//! but those. A socket has one for each of its groups, and a host the one that lets through what any of
//! its sockets hears.

use alloc::collections::BTreeSet;

/// The sources of a group that are heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter<A> {
    excludes: bool,
    sources: BTreeSet<A>,
}

impl<A: Copy + Ord> Filter<A> {
    /// All are heard: `EXCLUDE {}`, what a plain join means.
    pub const fn everybody() -> Self {
        Self { excludes: true, sources: BTreeSet::new() }
    }

    /// None is: `INCLUDE {}`, which is not to be in the group.
    pub const fn nobody() -> Self {
        Self { excludes: false, sources: BTreeSet::new() }
    }

    /// All but the listed ones are heard, rather than those alone.
    pub const fn excludes(&self) -> bool {
        self.excludes
    }

    /// Those that are listed.
    pub const fn sources(&self) -> &BTreeSet<A> {
        &self.sources
    }

    /// Whether it is [`Self::nobody`].
    pub fn is_nobody(&self) -> bool {
        !self.excludes && self.sources.is_empty()
    }

    /// Whether that source is heard.
    pub fn hears(&self, source: &A) -> bool {
        self.sources.contains(source) != self.excludes
    }

    /// Lists a source; whether it was not yet.
    pub fn list(&mut self, source: A) -> bool {
        self.sources.insert(source)
    }

    /// Takes a source off the list; whether it was there.
    pub fn strike(&mut self, source: &A) -> bool {
        self.sources.remove(source)
    }

    /// Whoever hears what either hears (RFC 3376 §3.2).
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let (a, b) = (&self.sources, &other.sources);
        let sources = match (self.excludes, other.excludes) {
            (false, false) => a | b,
            (true, true) => a & b,
            (true, false) => a - b,
            (false, true) => b - a,
        };
        Self { excludes: self.excludes || other.excludes, sources }
    }

    /// The same of addresses of another type, as far as these are some.
    pub fn of<B: Copy + Ord>(&self, convert: impl FnMut(&A) -> Option<B>) -> Filter<B> {
        Filter { excludes: self.excludes, sources: self.sources.iter().filter_map(convert).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filter() -> impl Strategy<Value = Filter<u8>> {
        (any::<bool>(), proptest::collection::btree_set(0..6u8, 0..6))
            .prop_map(|(excludes, sources)| Filter { excludes, sources })
    }

    #[test]
    fn everybody_and_nobody_are_what_they_say() {
        assert!(Filter::everybody().hears(&1) && !Filter::nobody().hears(&1));
        assert!(Filter::<u8>::nobody().is_nobody() && !Filter::<u8>::everybody().is_nobody());
        let mut one = Filter::nobody();
        assert!(one.list(1) && !one.list(1) && !one.is_nobody() && one.hears(&1) && !one.hears(&2));
        assert!(one.strike(&1) && !one.strike(&1) && one.is_nobody());
    }

    proptest! {
        #[test]
        fn either_hears_what_one_of_them_hears(a in filter(), b in filter()) {
            for source in 0..7 {
                prop_assert_eq!(a.or(&b).hears(&source), a.hears(&source) || b.hears(&source));
            }
        }
    }
}
