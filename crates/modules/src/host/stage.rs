//! A connection of Linux's as a stage: reads while the program's ring has room, sends while
//! Linux takes it, and tells the program's end what TCP below has told it. What Linux has not
//! been asked for stays with Linux, so a slow reader on either side slows the other down.

use super::{Host, HostFault, HostSocket};
use alloc::boxed::Box;
use core::mem::{replace, take};
use core::time::Duration;
use silk_instant::Instant;
use silk_path::{Bell, Cork, Cx, DropReason, Event, Message, Report, Stage, Verdict};

/// The most bytes of one direction in one run.
const RUN: usize = 256 << 10;
/// How long the peer may take none of what a program has left behind, before it is reset.
const PATIENCE: Duration = Duration::from_secs(60);

/// HOST's part of a path.
pub struct HostStage {
    socket: Box<dyn HostSocket>,
    // It may have something to read; it may take something. Linux tells only of changes.
    readable: bool,
    writable: bool,
    // Linux has told of a change that was not looked at yet.
    stirred: bool,
    // The program has been told that the next byte to be read is urgent.
    at_urgent: bool,
    // So many of the bytes to be sent end with an urgent one; 0: none does.
    urgent: u32,
    // The peer sends no more.
    peer_finished: bool,
    // The program sends no more, and Linux knows.
    finishing: bool,
    finished: bool,
    // The program has closed; what it left is still sent.
    closed: bool,
    // The end has been told.
    ended: bool,
}

impl HostStage {
    pub(super) fn new(socket: Box<dyn HostSocket>) -> Self {
        Self {
            socket,
            readable: true,
            writable: true,
            stirred: true,
            at_urgent: false,
            urgent: 0,
            peer_finished: false,
            finishing: false,
            finished: false,
            closed: false,
            ended: false,
        }
    }

    /// Writes what Linux knows of the connection, as its `struct tcp_info`, as much as there is.
    pub fn info(&self, into: &mut [u8]) {
        self.socket.info(into);
    }

    /// Moves what can be moved, and says what became true.
    fn pump(&mut self, cx: &mut Cx<'_, '_>) {
        if self.ended {
            return;
        }
        // What arrived before an error is the program's to read.
        let moved = self.receive(cx).and_then(|()| self.send(cx));
        // Until our end is acknowledged a reset may come that is to be told. Whether it is over is asked
        // before what became of it: a reset that came between the two would be missed the other way round.
        let over = self.both_have_ended() && !self.closed && self.socket.is_over();
        if let Err(event) = moved.and_then(|()| self.hear_of_end(over)) {
            cx.raise(event);
            return self.end(cx);
        }
        if over || self.finished && self.closed {
            self.end(cx);
        }
    }

    /// Behind the end of what is received no read says any more what became of the connection. It is asked
    /// when Linux has told of a change, and when it is over.
    fn hear_of_end(&mut self, over: bool) -> Result<(), Event> {
        let told = take(&mut self.stirred) && self.peer_finished;
        if told || over { self.socket.fault().map_or(Ok(()), Err) } else { Ok(()) }
    }

    /// Whether neither side sends any more. That both know it is Linux's to say.
    fn both_have_ended(&self) -> bool {
        self.finished && self.peer_finished
    }

    /// Sends what the program has written, and the end of it.
    fn send(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), Event> {
        let mut left = RUN;
        while self.writable && !self.finished {
            let Some((stream, _)) = cx.stream_and_down() else { break };
            let (_, outgoing) = stream.split();
            if outgoing.is_empty() {
                if self.finishing {
                    self.socket.finish();
                    self.finished = true;
                }
                break;
            }
            if left == 0 {
                cx.raise(Event::Unfinished);
                break;
            }
            // An urgent byte is sent alone: how much Linux takes of what lies before it is up to Linux.
            let (most, urgent) = match self.urgent {
                0 => (left, false),
                1 => (1, true),
                octets => (left.min(octets as usize - 1), false),
            };
            match self.socket.write(outgoing.peek(0, most), urgent) {
                Ok(count) => {
                    outgoing.consume(count);
                    self.urgent = self.urgent.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
                    left = left.saturating_sub(count);
                    cx.count_out(count);
                }
                Err(HostFault::NotNow) => self.writable = false,
                Err(HostFault::Over(event)) => return Err(event),
            }
        }
        if self.closed && left < RUN {
            cx.arm(cx.now() + PATIENCE);
        }
        Ok(())
    }

    /// Takes what has arrived, as far as there is room for it.
    fn receive(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), Event> {
        if !self.readable || self.closed {
            return Ok(());
        }
        let mut piece = take(&mut cx.module::<Host>().piece);
        let taken = self.receive_through(cx, &mut piece);
        cx.module::<Host>().piece = piece;
        taken
    }

    fn receive_through(&mut self, cx: &mut Cx<'_, '_>, piece: &mut [u8]) -> Result<(), Event> {
        let mut left = RUN;
        while self.readable {
            let Some((stream, _)) = cx.stream_and_down() else { break };
            let (incoming, _) = stream.split();
            let room = incoming.room().min(left);
            if room == 0 {
                if left == 0 {
                    cx.raise(Event::Unfinished);
                }
                break;
            }
            if !self.at_urgent {
                match self.socket.is_at_urgent() {
                    Ok(false) => {}
                    Ok(true) => {
                        self.at_urgent = true;
                        incoming.mark_urgent(0);
                        cx.raise(Event::Urgent);
                        continue;
                    }
                    Err(HostFault::NotNow) => {
                        self.readable = false;
                        break;
                    }
                    Err(HostFault::Over(event)) => return Err(event),
                }
            }
            let most = room.min(piece.len());
            match self.socket.read(&mut piece[..most]) {
                Ok(0) => {
                    (self.readable, self.peer_finished) = (false, true);
                    cx.raise(Event::PeerFinished);
                }
                Ok(count) => {
                    self.at_urgent = false;
                    incoming.write(&piece[..count.min(most)]);
                    left = left.saturating_sub(count);
                    cx.count_in(count);
                }
                Err(HostFault::NotNow) => self.readable = false,
                Err(HostFault::Over(event)) => return Err(event),
            }
        }
        Ok(())
    }

    /// Nothing is left to do for this path.
    fn end(&mut self, cx: &mut Cx<'_, '_>) {
        if !replace(&mut self.ended, true) {
            cx.arm(Instant::FAR);
            cx.raise(Event::Closed);
        }
    }

    fn abort(&mut self, cx: &mut Cx<'_, '_>) {
        self.reset();
        self.end(cx);
    }

    /// The peer is reset; but where both have ended Linux sees by itself that it gets the rest.
    fn reset(&mut self) {
        if !self.both_have_ended() {
            self.socket.reset();
        }
    }
}

impl Stage for HostStage {
    fn start(&mut self, cx: &mut Cx<'_, '_>) {
        self.pump(cx);
    }

    fn up(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Drop(DropReason::Unexpected)
    }

    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        if self.closed && !self.ended {
            self.abort(cx);
        }
    }

    fn bell(&mut self, cx: &mut Cx<'_, '_>, bell: Bell) -> bool {
        match bell {
            Bell::Sent | Bell::Read | Bell::ShutdownRead => {}
            Bell::Urgent(octets) => self.urgent = octets,
            Bell::ShutdownWrite => self.finishing = true,
            Bell::Close => {
                (self.finishing, self.closed) = (true, true);
                cx.arm(cx.now() + PATIENCE);
            }
            Bell::Abort => {
                self.abort(cx);
                return false;
            }
            Bell::Cork(Cork::Out) => {
                // What follows goes with what waits for it, which Linux sends as soon as the cork is out.
                self.pump(cx);
                self.socket.set(bell);
                return false;
            }
            option => {
                self.socket.set(option);
                return false;
            }
        }
        self.pump(cx);
        false
    }

    fn report(&mut self, cx: &mut Cx<'_, '_>, report: Report) -> bool {
        if report == Report::Ready {
            (self.readable, self.writable, self.stirred) = (!self.peer_finished, true, true);
            self.pump(cx);
        }
        false
    }

    fn destroy(&mut self, _: &mut Cx<'_, '_>) {
        if !self.ended {
            self.reset();
        }
    }

    fn state(&self) -> &'static str {
        match (self.peer_finished, self.finishing) {
            (false, false) => "ESTABLISHED",
            (true, false) => "CLOSE-WAIT",
            (false, true) => "FIN-WAIT",
            (true, true) => "LAST-ACK",
        }
    }
}
