//! The path on which a host tells routers which groups it hears, and hears them ask: what IGMP and MLD
//! have in common beyond [`Membership`]. How a message looks and which questions may be believed is
//! each protocol's own.

use crate::membership::Membership;
use alloc::boxed::Box;
use core::marker::PhantomData;
use silk_instant::Instant;
use silk_path::{
    CreateError, Cx, DropReason, Message, Module, PathId, Port, Report, Request, Stage, Verdict,
};
use silk_wire::igmp::{Query, Sort, Version};

/// What such a module keeps.
pub(crate) struct Told<A> {
    /// What its messages come from.
    source: A,
    groups: Membership<A>,
    /// The path of all its messages, while there is one.
    pub path: Option<PathId>,
}

impl<A: Copy + Ord> Told<A> {
    /// Nothing to tell yet.
    pub fn new(source: A) -> Self {
        Self { source, groups: Membership::default(), path: None }
    }

    /// From now on packets to the group are heard, or not.
    pub fn change(&mut self, now: Instant, group: A, joined: bool, port: &mut dyn Port) {
        self.groups.change(now, group, joined);
        self.path.iter().for_each(|path| port.request(Request::Wake(*path)));
    }
}

/// A protocol in which a host tells of its groups.
pub(crate) trait Tells: Module + Sized {
    /// The addresses of its IP.
    type Address: Copy + Ord + Send;
    /// Records of one report: it fits every link.
    const RECORDS: usize;

    /// What the module keeps.
    fn told(&mut self) -> &mut Told<Self::Address>;

    /// The question in a packet, if it comes from a router of this link and in due form.
    fn question(msg: &Message<'_>) -> Option<Query<Self::Address>>;

    /// Sends a report of at most [`Self::RECORDS`] groups.
    fn report(cx: &mut Cx<'_, '_>, source: Self::Address, records: &[(Self::Address, Sort)]);

    /// Sends what an older router understands, of one group.
    fn report_old(
        cx: &mut Cx<'_, '_>,
        source: Self::Address,
        version: Version,
        record: (Self::Address, Sort),
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
        let query = M::question(msg)?;
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
            told.chunks(M::RECORDS).for_each(|records| M::report(cx, source, records));
        } else {
            told.into_iter().for_each(|record| M::report_old(cx, source, version, record));
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
