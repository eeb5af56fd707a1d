//! What `silk paths` shows: every path with its owner, its costs and its drops.

use serde::{Deserialize, Serialize};

/// Live paths and what the daemon knows about their programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The live paths.
    pub paths: Vec<PathReport>,
    /// What each class has used, by its paths of now and by those that are gone.
    #[serde(default)]
    pub classes: Vec<ClassReport>,
    /// Drops that belong to no path (unclassifiable, no such port, …).
    pub drops: Vec<DropCount>,
    /// Threads whose priority follows their paths.
    pub threads: Vec<ThreadReport>,
    /// The kernel's threads that receive, with `napi = "threaded"`.
    #[serde(default)]
    pub receivers: Vec<ReceiverReport>,
    /// What had to be left to Linux.
    pub unserved: Vec<UnservedReport>,
    /// Time from unblocking a program's thread to its running, a row for each class.
    pub unblock_ns: Vec<UnblockReport>,
    /// Bytes of the rings that sockets have, touched or not, over all families.
    pub arena_bytes: u64,
    /// Bytes of memory that all arenas really use.
    #[serde(default)]
    pub arena_used: u64,
    /// Bytes of files that are kept in memory to be sent by reference, over all families.
    #[serde(default)]
    pub file_bytes: u64,
    /// Executors that have not told their part in time: of their paths and counts there is nothing here.
    #[serde(default)]
    pub silent: u32,
}

impl Report {
    /// Adds another part of the same report.
    pub fn add(&mut self, part: Self) {
        self.paths.extend(part.paths);
        for class in part.classes {
            match self.classes.iter_mut().find(|known| known.class == class.class) {
                Some(known) => known.add(&class),
                None => self.classes.push(class),
            }
        }
        for drop in part.drops {
            match self.drops.iter_mut().find(|known| known.reason == drop.reason) {
                Some(known) => known.count += drop.count,
                None => self.drops.push(drop),
            }
        }
        self.threads.extend(part.threads);
        self.receivers.extend(part.receivers);
        self.unserved.extend(part.unserved);
        self.unblock_ns.extend(part.unblock_ns);
        self.arena_bytes += part.arena_bytes;
        self.arena_used += part.arena_used;
        self.file_bytes += part.file_bytes;
        self.silent += part.silent;
    }
}

/// One path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// Its id: domain, index and generation.
    pub id: u64,
    /// The class it belongs to.
    pub class: String,
    /// Its priority.
    pub priority: u32,
    /// The interface at its bottom; empty where it has all of several, or none.
    #[serde(default)]
    pub device: String,
    /// The modules it crosses, device first.
    pub modules: Vec<String>,
    /// The local address and port, where it has one.
    pub local: String,
    /// The peer's, where it has one.
    pub peer: String,
    /// The protocol's state, such as `ESTABLISHED`.
    pub state: String,
    /// What waits: messages from the device, and bytes from the program that were not sent yet.
    pub queue: [u64; 2],
    /// CPU time in the executor, ns.
    pub cpu_path_ns: u64,
    /// CPU time of the program's threads while the path is extended to them, ns.
    pub cpu_program_ns: u64,
    /// Bytes received and sent.
    pub bytes: [u64; 2],
    /// Packets received and sent; a message that the device cuts up, or has put together, is one.
    pub packets: [u64; 2],
    /// Memory charged to the path, bytes.
    pub memory: u64,
    /// The process that holds it, zero for none.
    pub pid: u32,
    /// Drops by reason.
    pub drops: Vec<DropCount>,
    /// Average processing time of a packet, ns, where the *measure* rule is on.
    pub average_ns: u64,
    /// Smoothed round-trip time, µs; zero where there is none.
    pub rtt_us: u64,
    /// Largest segment towards the peer, bytes.
    pub mss: u64,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// All that TCP knows, of a connection over silk's own.
    #[serde(default)]
    pub tcp: Option<Box<TcpReport>>,
}

/// What BBR believes of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelReport {
    /// Bytes per second; 0 before the first measurement.
    pub bandwidth: u64,
    /// The round-trip time without queues, µs; 0 before the first measurement.
    pub min_rtt_us: u64,
    /// At how many hundredths of the bandwidth it sends now.
    pub pacing_gain: u16,
    /// How many hundredths of what the path holds may be in the network.
    pub window_gain: u16,
}

/// What TCP knows of a connection, as `ss -tin` shows it for Linux's: windows and what is
/// outstanding in segments, sizes in bytes, rates in bytes per second. What is not known is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpReport {
    /// The congestion control.
    pub congestion: String,
    /// What that believes of the path, if it has a model of it.
    pub model: Option<ModelReport>,
    /// Whether timestamps are in use (RFC 7323).
    pub timestamps: bool,
    /// Whether selective acknowledgement is (RFC 2018).
    pub sack: bool,
    /// Whether explicit congestion notification is (RFC 3168).
    pub ecn: bool,
    /// The shifts of window scaling, if that is in use: the peer's and ours.
    pub window_shifts: Option<[u8; 2]>,
    /// What is done about losses: 0 nothing, 1 something is out of order, 3 fast recovery, 4 the
    /// time-out's recovery.
    pub ca_state: u8,
    /// Doublings of the time-out.
    pub backoff: u8,
    /// Retransmission time-out, µs.
    pub rto_us: u32,
    /// How long an acknowledgement may wait, µs.
    pub ato_us: u32,
    /// Smoothed round-trip time, µs.
    pub rtt_us: u32,
    /// Its variation, µs.
    pub rttvar_us: u32,
    /// The least round-trip time lately, µs.
    pub min_rtt_us: u32,
    /// Text in a full segment towards the peer.
    pub mss: u32,
    /// The largest packet the path takes.
    pub pmtu: u32,
    /// Text in the peer's largest segment so far.
    pub rcv_mss: u32,
    /// Text in a full segment towards us.
    pub advmss: u32,
    /// Congestion window.
    pub cwnd: u32,
    /// Slow-start threshold, once a loss has set it.
    pub ssthresh: Option<u32>,
    /// Text sent, that sent again included.
    pub bytes_sent: u64,
    /// Text sent again.
    pub bytes_retrans: u64,
    /// Text the peer has acknowledged.
    pub bytes_acked: u64,
    /// Text received in order.
    pub bytes_received: u64,
    /// Segments sent.
    pub segs_out: u32,
    /// Segments received.
    pub segs_in: u32,
    /// Segments with text sent.
    pub data_segs_out: u32,
    /// Segments with text received.
    pub data_segs_in: u32,
    /// Milliseconds since text was sent.
    pub last_sent_ms: u32,
    /// Milliseconds since text arrived.
    pub last_received_ms: u32,
    /// Milliseconds since anything of the peer's did.
    pub last_ack_ms: u32,
    /// At which text leaves; 0 without pacing.
    pub pacing_rate: u64,
    /// At which the path delivered when that was last measured.
    pub delivery_rate: u64,
    /// Whether it was the program that sent no faster.
    pub app_limited: bool,
    /// Segments delivered, those held out of order included.
    pub delivered: u32,
    /// Those of them whose acknowledgement echoed a mark of congestion.
    pub delivered_ce: u32,
    /// Time in which text was outstanding or held back, µs.
    pub busy_us: u64,
    /// Of that, time in which the peer's window held text back, µs.
    pub rwnd_limited_us: u64,
    /// Of that, time in which the program waited for room in the send buffer and for nothing else, µs.
    pub sndbuf_limited_us: u64,
    /// Sent and not acknowledged.
    pub unacked: u32,
    /// Sent again: on their way now, and in all.
    pub retrans: [u32; 2],
    /// Lost and not yet sent again.
    pub lost: u32,
    /// Held by the peer out of order.
    pub sacked: u32,
    /// Segments the peer says it had received before.
    pub dsack_dups: u32,
    /// Times the network was seen to reorder.
    pub reord_seen: u32,
    /// Segments that arrived out of order.
    pub rcv_ooopack: u32,
    /// The round-trip time by which the program's reading is judged, µs; 0 before anything was received.
    pub rcv_rtt_us: u32,
    /// The window that the program's reading calls for.
    pub rcv_space: u32,
    /// The peer's window.
    pub snd_wnd: u32,
    /// The window offered to the peer.
    pub rcv_wnd: u32,
    /// Written by the program and never sent.
    pub notsent_bytes: u32,
    /// Retransmission time-outs.
    pub timeouts: u16,
}

/// What a class has used since the daemon started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassReport {
    /// The class.
    pub class: String,
    /// Its live paths.
    pub paths: u64,
    /// Paths that were refused, for the class has all the paths or memory it may have, or one path all.
    pub refused: u64,
    /// The same by the limit that stood against them, under its name in the configuration.
    pub refused_by: Vec<DropCount>,
    /// CPU time in the executor, ns.
    pub cpu_path_ns: u64,
    /// CPU time of the program's threads while its paths were extended to them, ns.
    pub cpu_program_ns: u64,
    /// Bytes received and sent.
    pub bytes: [u64; 2],
    /// Packets received and sent; a message that the device cuts up, or has put together, is one.
    pub packets: [u64; 2],
    /// Memory charged to its live paths, bytes.
    pub memory: u64,
}

impl ClassReport {
    fn add(&mut self, other: &Self) {
        self.paths += other.paths;
        self.refused += other.refused;
        for DropCount { reason, count } in &other.refused_by {
            match self.refused_by.iter_mut().find(|own| own.reason == *reason) {
                Some(own) => own.count += count,
                None => self.refused_by.push(DropCount { reason: reason.clone(), count: *count }),
            }
        }
        self.cpu_path_ns += other.cpu_path_ns;
        self.cpu_program_ns += other.cpu_program_ns;
        for (own, other) in [(&mut self.bytes, other.bytes), (&mut self.packets, other.packets)] {
            own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
        }
        self.memory += other.memory;
    }
}

/// How often something was dropped for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropCount {
    /// The reason's name.
    pub reason: String,
    /// How often.
    pub count: u64,
}

/// A thread that serves paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadReport {
    /// Kernel id.
    pub tid: u32,
    /// The priority it has now.
    pub priority: u32,
    /// Why it was demoted, empty if it was not.
    pub demoted: String,
}

/// A thread of the kernel's that receives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverReport {
    /// The interface.
    pub device: String,
    /// The hardware queue that it polls, where that is known.
    pub queue: Option<u32>,
    /// Kernel id.
    pub tid: u32,
    /// How it is scheduled now: `prompt`, `batched`, `fair`, `yielding`, or `held back`.
    pub manner: String,
    /// CPU time, ns.
    pub cpu_ns: u64,
}

/// Something the library left to Linux.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnservedReport {
    /// The program.
    pub program: String,
    /// What it asked for.
    pub what: String,
    /// How often.
    pub count: u64,
}

/// Time from unblocking a thread to its running (SILK Table 2), for one class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnblockReport {
    /// The class.
    pub class: String,
    /// How many wake-ups were measured.
    pub count: u64,
    /// Their mean, ns.
    pub mean: u64,
    /// Median, ns (upper edge of its power-of-two bucket).
    pub p50: u64,
    /// 99th percentile, ns (likewise).
    pub p99: u64,
    /// The longest, ns.
    pub max: u64,
}
