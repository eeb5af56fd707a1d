//! What an executor says of its paths, for `silk paths`: of some in each turn, since there may be many.

use crate::between::names::{Holder, SocketName};
use crate::between::told::Told;
use crate::domain::engine::Engine;
use crate::domain::socket_end::SocketEnd;
use crate::domain::telling::Telling;
use silk_control::{ClassReport, DropCount, ModelReport, PathReport, Report, TcpReport, ThreadReport};
use silk_path::{Attrs, ClassUse, DropReason, DropTotals, Endpoint, Path, PathId, Refusals};
use silk_stream::TcpInfo;
use silk_tcp::Model;
use std::sync::atomic::Ordering::SeqCst;

/// Paths that are told of in one turn: what comes for others does not wait until all are.
const PART: usize = 128;

impl Engine {
    /// Begins the report of this domain. What paths that are gone have used and dropped is told as of now: of those that go from
    /// now on the report tells itself. For one that was begun before nobody waits any more.
    pub fn begin_report(&mut self, round: u64) {
        let (classes, drops) = (self.class_reports(), self.drop_counts());
        let report = Report { classes, drops, ..Report::default() };
        self.telling = Some(Telling { round, report, holders: Vec::new(), next: 0 });
    }

    /// Goes on with the report that was asked for.
    pub fn report_some(&mut self) {
        self.tell_of_some(PART);
    }

    /// The same, with so many paths.
    fn tell_of_some(&mut self, most: usize) {
        let Some(mut telling) = self.telling.take() else { return };
        let before = telling.holders.len();
        for path in self.core.paths.iter_from(telling.next).take(most) {
            telling.next = path.id().index + 1;
            telling.tell_of(self.holder(path), self.describe(path));
        }
        if telling.holders.len() - before == most {
            self.telling = Some(telling);
            return;
        }
        let Telling { round, report, holders, .. } = telling;
        let part = Box::new(self.finish_report(report));
        self.tell_control(Told::Report { round, part, holders });
    }

    /// A path is about to end: a report that would have told of it later does so now.
    pub(crate) fn tell_of_ending(&mut self, id: PathId) {
        let Some(mut telling) = self.telling.take() else { return };
        if let Some(path) = self.core.paths.path(id).filter(|_| telling.next <= id.index) {
            telling.tell_of(self.holder(path), self.describe(path));
        }
        self.telling = Some(telling);
    }

    /// What there is beside paths.
    fn finish_report(&mut self, report: Report) -> Report {
        self.collect_unblock_times();
        let class = self.classes.first_of(self.domain).map_or("?", |class| self.classes.name(class));
        let unblock_ns = vec![self.unblock.report(class)];
        Report { threads: self.threads(), unblock_ns, ..report }
    }

    /// Who holds the socket of a path.
    fn holder(&self, path: &Path) -> Holder {
        let find = || {
            let name = self.socket_of(path)?;
            Some((name.family, self.slot_of(name)?.owner.load(SeqCst)))
        };
        find().unwrap_or((0, 0))
    }

    /// The socket that a path is of; of a lane, the one that its program knows.
    fn socket_of(&self, path: &Path) -> Option<SocketName> {
        let datagrams = || self.core.port.datagrams_of(path.id()).map(SocketEnd::socket);
        path.state.attrs.owner().map(SocketName::of_owner).or_else(datagrams)
    }

    fn collect_unblock_times(&mut self) {
        for family in self.families.values() {
            for (number, _) in family.threads() {
                if family.priority_of(number).is_some_and(|p| p == self.classes.priorities[self.domain]) {
                    family.take_unblock_time(number, &mut self.unblock);
                }
            }
        }
    }

    fn describe(&self, path: &Path) -> PathReport {
        let (state, attrs) = (&path.state, &path.state.attrs);
        let modules = self.core.paths.graph().modules();
        let class = usize::from(attrs.class().unwrap_or(0));
        let running = self.socket_of(path).map_or(0, |socket| self.running_for(socket));
        let info = crate::domain::info::of(path);
        let tcp = info.map(|_| self.tcp_info(path));
        let unsent = tcp.map_or_else(|| self.unacknowledged(path), |tcp| tcp.notsent_bytes);
        PathReport {
            id: u64::from(state.id.generation) << 32 | (self.domain as u64) << 24 | u64::from(state.id.index),
            class: self.classes.name(class).to_owned(),
            priority: attrs.priority().map_or_else(|| self.priority(), u32::from),
            device: self.device_of(attrs),
            modules: path.modules().map(|module| modules.name(module).to_owned()).collect(),
            local: attrs.local().filter(means_something).map_or(String::new(), |local| local.to_string()),
            peer: attrs.remote().map_or(String::new(), |address| address.to_string()),
            state: path.shown_state().to_owned(),
            queue: [path.input.len() as u64, u64::from(unsent)],
            cpu_path_ns: state.account.cpu_path,
            cpu_program_ns: state.account.cpu_program + running,
            bytes: [state.account.bytes_in, state.account.bytes_out],
            packets: [state.account.packets_in, state.account.packets_out],
            memory: state.account.memory(),
            pid: 0,
            drops: state.drops.iter().map(|(reason, count)| count_of(reason, count.into())).collect(),
            average_ns: state.measure.map_or(0, |average| average.ns()),
            rtt_us: info.map_or(0, |info| info.srtt.as_micros() as u64),
            mss: info.map_or(0, |info| info.mss.into()),
            cwnd: info.map_or(0, |info| info.cwnd.into()),
            retransmits: info.map_or(0, |info| info.segments_again.into()),
            tcp: info.zip(tcp).map(|(info, tcp)| {
                Box::new(tcp_report(info.algorithm.name(), info.model.map(model_report), &tcp))
            }),
        }
    }

    /// The interface at the bottom of a path; that of the one device also where the path has none of its own. What leads to ourselves
    /// has a number behind theirs.
    fn device_of(&self, attrs: &Attrs) -> String {
        let only = (self.devices.len() == 1).then_some(0);
        let number = attrs.device().or(only).map(usize::from);
        let name = |number| self.devices.get(number).map_or("itself", String::as_str);
        number.map_or("", name).to_owned()
    }

    /// CPU time of the thread that serves a socket now, which is charged when it is done, ns.
    fn running_for(&self, name: SocketName) -> u64 {
        let used = || {
            let (thread, began) = self.sockets.get(name)?.thread().filter(|(_, began)| *began > 0)?;
            Some(self.families.get(&name.family)?.thread(thread)?.thread.cpu.used()?.saturating_sub(began))
        };
        used().unwrap_or(0)
    }

    /// What each class has used in this domain by paths that are gone.
    fn class_reports(&self) -> Vec<ClassReport> {
        let report = |(class, used): (usize, &ClassUse)| ClassReport {
            class: self.classes.name(class).to_owned(),
            paths: used.paths().into(),
            refused: used.refused.paths + used.refused.memory + used.refused.path_memory,
            refused_by: refused_by(used.refused),
            cpu_path_ns: used.past.cpu_path,
            cpu_program_ns: used.past.cpu_program,
            bytes: [used.past.bytes_in, used.past.bytes_out],
            packets: [used.past.packets_in, used.past.packets_out],
            memory: used.memory(),
        };
        self.core.paths.classes.iter().enumerate().map(report).collect()
    }

    /// Drops of no path, of paths that are gone, and of the device.
    fn drop_counts(&mut self) -> Vec<DropCount> {
        let mut counts: Vec<DropCount> = of_totals(&self.core.drops).collect();
        for class in self.core.paths.classes.iter() {
            counts.extend(of_totals(&class.past_drops));
        }
        let received = self.core.device.received();
        let (refused, full) = self.core.port.refused();
        for (reason, count) in [
            ("device: receive ring full", received.ring_full),
            ("device: no buffer", received.no_buffer),
            ("device: malformed", received.malformed),
            ("device: transmit queue full", full),
            ("device: refused", refused - full),
        ] {
            if count > 0 {
                counts.push(DropCount { reason: reason.to_owned(), count });
            }
        }
        counts
    }

    fn threads(&self) -> Vec<ThreadReport> {
        self.families
            .values()
            .flat_map(|family| family.threads().map(move |(n, thread)| (family.priority_of(n), thread)))
            .filter(|(priority, _)| priority.is_some_and(|p| self.classes.domain_at(p) == self.domain))
            .map(|(priority, thread)| ThreadReport {
                tid: thread.thread.tid(),
                priority: priority.unwrap_or(0),
                demoted: String::new(),
            })
            .collect()
    }
}

fn model_report(model: Model) -> ModelReport {
    let Model { bandwidth, min_rtt, pacing_gain, window_gain } = model;
    ModelReport { bandwidth, min_rtt_us: min_rtt.as_micros() as u64, pacing_gain, window_gain }
}

/// What `ss -tin` would show.
fn tcp_report(congestion: &str, model: Option<ModelReport>, info: &TcpInfo) -> TcpReport {
    // What Linux shows as no limit is left out.
    let limited = |rate: u64| if rate == u64::MAX { 0 } else { rate };
    TcpReport {
        congestion: congestion.to_owned(),
        model,
        timestamps: info.options & 1 != 0,
        sack: info.options & 2 != 0,
        ecn: info.options & 8 != 0,
        window_shifts: (info.options & 4 != 0).then_some([info.wscale & 15, info.wscale >> 4]),
        ca_state: info.ca_state,
        backoff: info.backoff,
        rto_us: info.rto,
        ato_us: info.ato,
        rtt_us: info.rtt,
        rttvar_us: info.rttvar,
        min_rtt_us: info.min_rtt,
        mss: info.snd_mss,
        pmtu: info.pmtu,
        rcv_mss: info.rcv_mss,
        advmss: info.advmss,
        cwnd: info.snd_cwnd,
        ssthresh: Some(info.snd_ssthresh).filter(|segments| *segments < 0x7fff_ffff),
        bytes_sent: info.bytes_sent,
        bytes_retrans: info.bytes_retrans,
        bytes_acked: info.bytes_acked,
        bytes_received: info.bytes_received,
        segs_out: info.segs_out,
        segs_in: info.segs_in,
        data_segs_out: info.data_segs_out,
        data_segs_in: info.data_segs_in,
        last_sent_ms: info.last_data_sent,
        last_received_ms: info.last_data_recv,
        last_ack_ms: info.last_ack_recv,
        pacing_rate: limited(info.pacing_rate),
        delivery_rate: info.delivery_rate,
        app_limited: info.flags & 1 != 0,
        delivered: info.delivered,
        delivered_ce: info.delivered_ce,
        busy_us: info.busy_time,
        rwnd_limited_us: info.rwnd_limited,
        sndbuf_limited_us: info.sndbuf_limited,
        unacked: info.unacked,
        retrans: [info.retrans, info.total_retrans],
        lost: info.lost,
        sacked: info.sacked,
        dsack_dups: info.dsack_dups,
        reord_seen: info.reord_seen,
        rcv_ooopack: info.rcv_ooopack,
        rcv_rtt_us: info.rcv_rtt,
        rcv_space: info.rcv_space,
        snd_wnd: info.snd_wnd,
        rcv_wnd: info.rcv_wnd,
        notsent_bytes: info.notsent_bytes,
        timeouts: info.total_rto,
    }
}

/// Which limits of a class have stood against paths, by their names in the configuration.
fn refused_by(Refusals { paths, memory, path_memory }: Refusals) -> Vec<DropCount> {
    let all = [("paths", paths), ("memory", memory), ("path_memory", path_memory)].into_iter();
    all.filter(|(_, count)| *count > 0)
        .map(|(limit, count)| DropCount { reason: limit.to_owned(), count })
        .collect()
}

/// Whether an end is one at all: the paths that stand from the start say of IPv6 that they are of any address and port.
fn means_something(end: &Endpoint) -> bool {
    !(end.ip().is_unspecified() && end.port() == 0)
}

fn of_totals(totals: &DropTotals) -> impl Iterator<Item = DropCount> + '_ {
    totals.iter().map(|(reason, count)| count_of(reason, count))
}

fn count_of(reason: DropReason, count: u64) -> DropCount {
    DropCount { reason: reason.name().to_owned(), count }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::rig;
    use silk_executor::clock;
    use silk_stream::mail::{Receiver, mail};
    use std::collections::BTreeSet;

    /// A domain with the paths that stand from the start, on a device in memory, and what it tells.
    fn engine() -> (Engine, Receiver<Told>) {
        let mut engine = rig::engine("[[class]]\nname = \"all\"\ndefault = true\n");
        let (events, told) = mail();
        engine.events = events;
        (engine, told)
    }

    /// The report of that round, which it has told.
    fn told_of(told: &mut Receiver<Told>, round: u64) -> (Report, Vec<Holder>) {
        match told.receive().unwrap() {
            Told::Report { round: this, part, holders } if this == round => (*part, holders),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_path_that_ends_while_a_report_is_made_is_in_it_once_with_all_that_it_has_used() {
        let (mut engine, mut told) = engine();
        let ids: Vec<_> = engine.core.paths.iter().map(Path::id).collect();
        for id in &ids {
            engine.core.paths.charge_cpu(*id, 1, 100);
            let path = engine.core.paths.path_mut(*id).unwrap();
            path.state.drops.count(DropReason::NoPath);
        }
        // For this nobody waits any more, once there is the other.
        engine.begin_report(6);
        engine.begin_report(7);
        // It has told of nothing yet.
        let (ended, others) = ids.split_first().unwrap();
        engine.destroy(*ended, clock::now());
        engine.report_some();
        // That comes after the report.
        others.iter().for_each(|id| engine.destroy(*id, clock::now()));
        let (report, holders) = told_of(&mut told, 7);
        assert_eq!((report.paths.len(), holders.len()), (ids.len(), ids.len()));
        assert_eq!(report.paths.iter().map(|path| path.id).collect::<BTreeSet<_>>().len(), ids.len());
        let class = &report.classes[0];
        let all = ids.len() as u64;
        assert_eq!((class.paths, class.cpu_path_ns, class.cpu_program_ns), (all, all, 100 * all));
        let of_paths: u64 = report.paths.iter().flat_map(|path| &path.drops).map(|drop| drop.count).sum();
        let of_no_path: u64 = report.drops.iter().map(|drop| drop.count).sum();
        assert_eq!((of_paths, of_no_path), (all, 0));

        engine.begin_report(8);
        engine.report_some();
        let (report, _) = told_of(&mut told, 8);
        let class = &report.classes[0];
        assert_eq!((class.paths, class.cpu_path_ns, class.cpu_program_ns), (0, all, 100 * all));
        assert_eq!((report.paths.len(), report.drops[0].count), (0, all));
    }

    #[test]
    fn what_a_path_that_was_told_of_has_dropped_is_not_told_again_where_it_ends_before_the_report_is_whole() {
        let (mut engine, mut told) = engine();
        let first = engine.core.paths.iter().next().map(Path::id).unwrap();
        engine.core.paths.path_mut(first).unwrap().state.drops.count(DropReason::NoPath);
        engine.begin_report(1);
        // As if there were more than are told of in a turn.
        engine.tell_of_some(1);
        engine.destroy(first, clock::now());
        engine.report_some();
        let (report, _) = told_of(&mut told, 1);
        assert_eq!(report.paths[0].drops[0].count, 1);
        assert_eq!(report.drops, []);
    }
}
