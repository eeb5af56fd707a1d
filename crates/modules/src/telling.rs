//! The path on which a host tells routers which groups it hears, and hears them ask: what IGMP and MLD
//! have in common beyond [`Membership`]. How a message looks and which questions may be believed is
//! each protocol's own.

use crate::filter::Filter;
use crate::membership::{self, Membership};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;
use silk_instant::Instant;
use silk_path::{
    CreateError, Cx, DropReason, Message, Module, PathId, Port, Report, Request, Stage, Verdict,
};
use silk_wire::igmp::{Old, Query, Record, Sort, Version};

/// What such a module keeps.
pub(crate) struct Told<A> {
    /// What its messages come from.
    source: A,
    /// Our addresses.
    ours: Vec<A>,
    groups: Membership<A>,
    /// The path of all its messages, while there is one.
    pub path: Option<PathId>,
}

impl<A: Copy + Ord> Told<A> {
    /// Nothing to tell yet, of a host with these addresses.
    pub fn new(source: A, ours: &[A]) -> Self {
        Self { source, ours: ours.to_vec(), groups: Membership::default(), path: None }
    }

    /// Our addresses are these from now on, and messages come from `source`.
    pub fn become_these(&mut self, source: A, ours: &[A]) {
        (self.source, self.ours) = (source, ours.to_vec());
    }

    /// Whether a question that was sent to `destination` is for us: to `everybody`, to a group that is heard here, or to an
    /// address of ours (RFC 3376 §4.1.12, RFC 3810 §5.1.15).
    pub fn is_asked(&self, destination: A, everybody: A) -> bool {
        destination == everybody || self.ours.contains(&destination) || self.groups.hears(&destination)
    }

    /// From now on these sources of the group are heard.
    pub fn change(&mut self, now: Instant, group: A, filter: Filter<A>, port: &mut dyn Port) {
        self.groups.change(now, group, filter);
        self.path.iter().for_each(|path| port.request(Request::Wake(*path)));
    }
}

/// A protocol in which a host tells of its groups.
pub(crate) trait Tells: Module + Sized {
    /// The addresses of its IP.
    type Address: Copy + Ord + Send;
    /// Bytes of the records of one report: it fits every link.
    const ROOM: usize;

    /// What the module keeps.
    fn told(&mut self) -> &mut Told<Self::Address>;

    /// The question in a packet, if it comes from a router of this link and in due form, and is for whom
    /// [`Told::is_asked`].
    fn question(told: &Told<Self::Address>, msg: &Message<'_>) -> Option<Query<Self::Address>>;

    /// Bytes of a record.
    fn size(record: &Record<'_, Self::Address>) -> usize;

    /// Sends a report, whose records are of [`Self::ROOM`] bytes at most.
    fn report(cx: &mut Cx<'_, '_>, source: Self::Address, records: &[Record<'_, Self::Address>]);

    /// Sends what an older router understands, of one group.
    fn report_old(
        cx: &mut Cx<'_, '_>,
        source: Self::Address,
        version: Version,
        group: Self::Address,
        what: Old,
    );
}

/// The part of such a module on its path.
pub(crate) struct Telling<M>(PhantomData<fn() -> M>);

impl<M: Tells> Telling<M> {
    /// The stage of a new path.
    pub fn boxed() -> Box<dyn Stage> {
        Box::new(Self(PhantomData))
    }

    /// Takes a question in.
    fn hear(cx: &mut Cx<'_, '_>, msg: &Message<'_>) -> Option<()> {
        let query = M::question(cx.module::<M>().told(), msg)?;
        let (now, random) = (cx.now(), cx.port().random());
        let groups = &mut cx.module::<M>().told().groups;
        groups.asked(now, &query, random);
        let deadline = groups.deadline();
        cx.arm(deadline);
        Some(())
    }

    /// Tells what is due.
    fn tell(cx: &mut Cx<'_, '_>) {
        let now = cx.now();
        let (module, port) = cx.module_and_port::<M>();
        let Told { source, groups, .. } = module.told();
        let (source, version) = (*source, groups.version(now));
        let told = groups.due(now, || port.random());
        let deadline = groups.deadline();
        cx.arm(deadline);
        if version == Version::Three {
            return Self::report_all(cx, source, &told);
        }
        for told in told {
            // Who does not hear one source any more hears others still, as far as such a router knows.
            let what = if told.is_left { Old::Left } else { Old::Heard };
            if told.is_left || told.sort != Sort::Block {
                M::report_old(cx, source, version, told.group, what);
            }
        }
    }

    /// Reports all, in as many messages as it takes.
    fn report_all(cx: &mut Cx<'_, '_>, source: M::Address, told: &[membership::Told<M::Address>]) {
        let mut records: Vec<Record<'_, M::Address>> = Vec::new();
        let mut room = M::ROOM;
        for told in told {
            let (record, size) = (told.record(), M::size(&told.record()));
            if size > room {
                M::report(cx, source, &records);
                records.clear();
                room = M::ROOM;
            }
            records.push(record);
            room = room.saturating_sub(size);
        }
        if !records.is_empty() {
            M::report(cx, source, &records);
        }
    }
}

impl<M: Tells> Stage for Telling<M> {
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        let path = cx.path();
        cx.module::<M>().told().path = Some(path);
        Ok(())
    }

    fn start(&mut self, cx: &mut Cx<'_, '_>) {
        Self::tell(cx);
    }

    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        Self::hear(cx, msg).map_or(Verdict::Drop(DropReason::GroupIgnored), |()| Verdict::Consumed)
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }

    fn report(&mut self, cx: &mut Cx<'_, '_>, report: Report) -> bool {
        if report == Report::Resolved {
            Self::tell(cx);
        }
        false
    }

    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        Self::tell(cx);
    }

    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        let path = cx.path();
        let told = cx.module::<M>().told();
        if told.path == Some(path) {
            told.path = None;
        }
    }
}
