//! Taking connections. An ordinary connection is taken from a shared queue without a word to
//! the daemon; a preferred one is handed to a waiting thread whose priority the daemon has
//! raised first (SILK §3.3).
//!
//! A thread that waits is in the listener's set of waiters and sleeps on its own record. It
//! must look at its record before it gives up: whoever was chosen may have been handed a
//! connection, and nobody else will ever take that.

use crate::address;
use crate::descriptor;
use crate::errno::Answer;
use crate::family::{self, Family};
use crate::gate::{self, Passage};
use crate::internal;
use crate::listener;
use crate::lost;
use crate::real;
use crate::shutdown;
use crate::socket::{self, Found, Role, Socket, shape, stage};
use crate::thread;
use crate::wait::{Change, Deadline, announce, asleep, nap, sleep, word};
use libc::{sockaddr, socklen_t};
use silk_stream::wake::{self, Woken};
use silk_stream::{Listener, Slot, Thread, kind, named, request};
use std::ffi::c_int;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

/// How often threads that are kept for preferred connections look whether there are too few
/// to keep any.
const THIN_LOOK: Duration = Duration::from_millis(100);

/// A call that accepts.
#[derive(Clone, Copy)]
struct Call<'a> {
    socket: &'a Found,
    /// The listening socket's descriptor.
    listening: c_int,
    family: &'a Family,
    listener: &'a Listener,
    flags: c_int,
}

/// A connection that is now ours, and what becomes its descriptor. As on Linux that is there first: who has none left
/// leaves the connection where it is.
struct Taken {
    slot: u32,
    /// The rank of the queue it lay in; `None`: it was handed over.
    rank: Option<usize>,
    place: Place,
    _inside: Passage,
}

/// A descriptor and a record for a connection. Given back unless it is used.
struct Place(Option<(c_int, &'static Socket)>);

impl Place {
    fn make(Call { socket: from, flags, .. }: Call<'_>) -> Answer<Self> {
        let has_foreign = crate::options::has_foreign(from);
        let make = if has_foreign { internal::stand_in_alone } else { internal::stand_in };
        let fd = make(from.is(shape::INET6), flags & libc::SOCK_CLOEXEC != 0)?;
        let inet6 = from.shape.load(Relaxed) & shape::INET6;
        let nonblocking = if flags & libc::SOCK_NONBLOCK != 0 { libc::O_NONBLOCK as u32 } else { 0 };
        let record = socket::make(stage::UNDECIDED, inet6 | shape::ACCEPTED | shape::GREETED, nonblocking);
        let Some(record) = record else {
            // SAFETY: just made, and nobody else's.
            unsafe { real::close_for_sure(fd) };
            return Err(libc::ENFILE);
        };
        Ok(Self(Some((fd, record))))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((fd, record)) = self.0.take() {
            // SAFETY: made here, and known to nobody.
            unsafe { real::close_for_sure(fd) };
            record.free();
        }
    }
}

/// `accept4(2)`.
///
/// # Errors
/// As Linux; `ENETDOWN` when the daemon is gone, and every other time `EAGAIN` where the socket does not wait.
///
/// # Safety
/// The address must be null or as [`address::give`] wants it.
pub unsafe fn accept(
    (socket, listening): (&Found, c_int),
    addr: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> Answer<c_int> {
    if flags & !(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) != 0 {
        return Err(libc::EINVAL);
    }
    if socket.role() != Role::Listener {
        return Err(if socket.is(shape::DATAGRAM) { libc::EOPNOTSUPP } else { libc::EINVAL });
    }
    let Some(family) = family::joined() else { return Err(after_death(socket)) };
    let listener = listener::of(socket.slot()?).ok_or(libc::EINVAL)?;
    let call = Call { socket, listening, family, listener, flags };
    let taken = take(call)?;
    let slot = taken.slot;
    let fd = adopt(call, taken)?;
    if let Some(slot) = family.arena.slot(slot) {
        let peer = Some(address::shared(&slot.peer));
        // SAFETY: as the caller promises.
        unsafe { address::give_sender(peer, socket.is(shape::INET6), addr, len) }
            .inspect_err(|_| drop_again(fd))?;
    }
    Ok(fd)
}

/// Closes a connection of whose peer the program cannot be told: as on Linux nobody gets it then.
fn drop_again(fd: c_int) {
    let _inside = gate::pass();
    crate::close::forget(fd);
    // SAFETY: just made, and its number was told to nobody.
    unsafe { real::close_for_sure(fd) };
}

fn take(call: Call<'_>) -> Answer<Taken> {
    let blocking = !call.socket.is_nonblocking(0);
    let me = thread::record();
    may_accept(call)?;
    let crowd = Crowd::look(call.socket, call.listener, 0);
    let handed =
        me.map_or(Ok(None), |(_, thread)| handed(call, thread).inspect_err(|_| give_back(thread)))?;
    let first = match handed {
        Some(taken) => Some(taken),
        None => choose(call, me.map(|(_, thread)| thread).filter(|_| blocking), crowd)?,
    };
    match (first, blocking, me) {
        (Some(taken), ..) => Ok(taken),
        (None, false, _) => Err(libc::EAGAIN),
        (None, true, Some(me)) => wait(call, me),
        (None, true, None) => wait_without_record(call),
    }
}

/// A dead daemon is told as a network that is down, which servers take for what it is; so it is to a child that was forked
/// afterwards, which belongs to no family. Who tries again all the same, as
/// accept(2) advises for such errors (Redis does up to a thousand times), and would not wait, is told every other time that
/// nobody is there: so it comes back to what else it has to do, the signal that is to end it above all.
fn after_death(socket: &Found) -> c_int {
    lost::answer();
    let has_heard = socket.told_of_death.fetch_xor(true, Relaxed);
    if has_heard && socket.is_nonblocking(0) { libc::EAGAIN } else { libc::ENETDOWN }
}

/// A listener that was shut down, by whichever process of the family, accepts nothing, as on Linux. One that was
/// closed meanwhile ([`Found::slot`]) has nothing more to do with the call.
fn may_accept(Call { socket, family, .. }: Call<'_>) -> Answer<()> {
    if family.is_dead() {
        return Err(after_death(socket));
    }
    let listens = socket.slot()?.kind.load(SeqCst) == kind::LISTENER;
    if listens && socket.role() == Role::Listener { Ok(()) } else { Err(libc::EINVAL) }
}

/// The connection that this thread was handed, if it is this listener's: it may have been handed another's before, which it left.
fn handed(call: Call<'_>, thread: &Thread) -> Answer<Option<Taken>> {
    let Some(slot) = thread.handed.load(Relaxed).checked_sub(1) else { return Ok(None) };
    if !is_of(call, slot) {
        return Ok(None);
    }
    let (inside, place) = (gate::pass(), Place::make(call)?);
    let slot = thread.handed.swap(0, SeqCst).checked_sub(1);
    Ok(slot.map(|slot| Taken { slot, rank: None, place, _inside: inside }))
}

/// Whether the connection in that slot came to the listener.
fn is_of(Call { socket, family, .. }: Call<'_>, slot: u32) -> bool {
    let end = |slot: &Slot| address::shared(&slot.local);
    let ends = family.arena.slot(slot).map(end).zip(socket.slot().ok().map(end));
    ends.is_none_or(|(at, listens)| {
        at.port() == listens.port() && (listens.ip().is_unspecified() || at.ip() == listens.ip())
    })
}

/// What this thread was handed and cannot take is for others, and told to who watches the listener.
fn give_back(thread: &Thread) {
    if thread.handed.load(Relaxed) != 0 {
        thread::resign();
    }
}

/// How many threads wait for a listener's connections, and how many must be left waiting for
/// preferred ones.
#[derive(Clone, Copy)]
struct Crowd {
    others: u32,
    reserve: u32,
}

impl Crowd {
    /// Looks; `myself` is how often the caller is among the waiters. A program that never
    /// had more threads waiting than are to be kept (one thread that accepts, say) has none
    /// to keep.
    fn look(socket: &Socket, listener: &Listener, myself: u32) -> Self {
        let configured = listener.reserve.load(Relaxed);
        if configured == 0 {
            return Self { others: 0, reserve: 0 };
        }
        let others = listener.waiters.len().saturating_sub(myself);
        let most = socket.crowd.load(Relaxed);
        if others > most {
            socket.crowd.store(others, Relaxed);
        }
        Self { others, reserve: if others.max(most) >= configured { configured } else { 0 } }
    }

    /// Whether everybody who waits is kept for preferred connections.
    fn is_thin(self) -> bool {
        self.reserve > 0 && self.others <= self.reserve
    }

    fn leaves_enough(self) -> bool {
        self.others >= self.reserve
    }
}

/// The most important connection that this thread may take by itself. A thread that waits
/// (`Some`) leaves the ordinary queue alone if too few others wait for preferred connections,
/// and whatever is below the class whose priority it still has.
fn choose(call: Call<'_>, thread: Option<&Thread>, crowd: Crowd) -> Answer<Option<Taken>> {
    let Call { family, listener, .. } = call;
    let extended = thread.map_or(0, |thread| thread.extended.load(Relaxed)) as usize;
    for (rank, queue) in listener::queues(listener) {
        let allowed = rank + 1 >= extended && (rank > 0 || thread.is_none() || crowd.leaves_enough());
        if !allowed || queue.is_empty() {
            continue;
        }
        let (inside, place) = (gate::pass(), Place::make(call)?);
        let slot = queue.pop(family::process(), |n| family.arena.slot(n).map(|slot| &slot.owner));
        if let Some(slot) = slot {
            return Ok(Some(Taken { slot, rank: Some(rank), place, _inside: inside }));
        }
    }
    Ok(None)
}

/// Waits in the set of waiters until there is a connection.
fn wait(call: Call<'_>, (number, thread): (u32, &Thread)) -> Answer<Taken> {
    let Call { socket, family, listener, .. } = call;
    let deadline = Deadline::after(socket.settings.receive_limit());
    let (mut stuck, mut called) = (None, false);
    loop {
        let seen = thread.wake.load(SeqCst);
        listener.waiters.enter(number);
        called |= heed_call(listener, number);
        let crowd = Crowd::look(socket, listener, 1);
        let found = match handed(call, thread) {
            Ok(None) => may_accept(call).and_then(|()| choose(call, Some(thread), crowd)),
            other => other,
        };
        let outcome = match found {
            Ok(None) => {
                let nobody_comes = called || (listener.called.load(Relaxed) == 0 && !crowd.is_thin());
                if nobody_comes
                    && thread.extended.load(Relaxed) > 0
                    && listener::is_waiting_in(listener)
                    && let Ok(slot) = socket.slot()
                {
                    // Not for a thread of this priority: the daemon calls one that is, or lowers
                    // this one.
                    family.ring(socket.name().0, slot);
                }
                doze(call, (thread, seen), crowd, deadline)
            }
            other => other,
        };
        // Who was chosen looks what it was handed, whatever else it found.
        let was_chosen = !listener.waiters.leave(number);
        let given = if was_chosen { handed_soon(call, thread, seen) } else { Ok(None) };
        called |= was_chosen && heed_call(listener, number);
        let leaves = match (outcome, given) {
            (Ok(Some(taken)), Ok(Some(given))) => {
                keep_for_later(thread, &taken);
                Ok(given)
            }
            (_, Ok(Some(given))) => Ok(given),
            // What it was handed stays where it is.
            (Ok(Some(taken)), _) => Ok(taken),
            (Err(errno), _) | (Ok(None), Err(errno)) => {
                give_back(thread);
                Err(errno)
            }
            (Ok(None), Ok(None)) => {
                unstick(socket, listener, crowd, &mut stuck);
                continue;
            }
        };
        if called {
            call_next(family, listener);
        }
        return leaves;
    }
}

/// A thread that was called looks now: whoever queues a connection after this calls another.
/// Whether it was called.
fn heed_call(listener: &Listener, number: u32) -> bool {
    listener.called.load(Relaxed) == number + 1
        && listener.called.compare_exchange(number + 1, 0, SeqCst, SeqCst).is_ok()
}

/// Of a thread that was called and goes: calls the next one if connections are left, as far as
/// it may.
fn call_next(family: &Family, listener: &Listener) {
    if !listener::is_waiting_in(listener)
        || listener.called.load(SeqCst) != 0
        || listener.waiters.len() <= listener.reserve.load(Relaxed)
    {
        return;
    }
    let Some(number) = listener.waiters.choose_low() else { return };
    if let Some(thread) = family.arena.thread(number) {
        listener.called.store(number + 1, SeqCst);
        thread.wake.fetch_add(1, SeqCst);
        wake::wake(&thread.wake, 1);
    }
}

/// Notices that an ordinary connection lies in the queue, nobody takes any, and all who wait
/// are kept for preferred ones: then there are too few threads to keep any.
fn unstick(socket: &Socket, listener: &Listener, crowd: Crowd, stuck: &mut Option<u32>) {
    let [queue, ..] = &listener.queue;
    let now = (!queue.is_empty() && crowd.is_thin()).then(|| queue.taken());
    if now.is_some() && now == *stuck {
        socket.crowd.store(0, Relaxed);
    }
    *stuck = now;
}

/// A thread that popped a connection at the moment it was handed another keeps the popped
/// one as if it had been handed: its next `accept` finds it.
fn keep_for_later(thread: &Thread, taken: &Taken) {
    thread.handed.store(taken.slot + 1, SeqCst);
}

/// Sleeps until something moves; `None` to look again.
fn doze(
    Call { socket, family, listener, .. }: Call<'_>,
    (thread, seen): (&Thread, u32),
    crowd: Crowd,
    deadline: Deadline,
) -> Answer<Option<Taken>> {
    let slot = socket.slot()?;
    let own = (&thread.wake, seen);
    // The daemon wakes one waiter for each ordinary connection, unless they are few enough to
    // be kept for preferred ones. Where this process keeps none after all, the daemon, which
    // knows nothing of that, tells through the listening slot. All others sleep on a word of
    // their own: nobody is woken for somebody else's connection.
    let apart = crowd.reserve == 0 && listener.reserve.load(Relaxed) > 0;
    let mut both = None;
    if apart {
        both = Some([own, word(slot)]);
        announce(slot, Change::Readable(1));
        if listener::is_waiting_in(listener) {
            return Ok(None);
        }
    }
    let mut limit = deadline.nap().ok_or(libc::EAGAIN)?;
    if crowd.is_thin() {
        limit = limit.min(THIN_LOOK);
    }
    let on = both.as_ref().map_or(std::slice::from_ref(&own), |both| &both[..]);
    match asleep(|| nap(on, deadline.is_set(), limit)) {
        Woken::Interrupted => Err(libc::EINTR),
        // The latter is a moment on one of two words: no wait there lasts until its time is over.
        Woken::TimedOut | Woken::Refused => {
            family.feel_pulse();
            Ok(None)
        }
        Woken::Changed => {
            thread::report_wake(thread);
            Ok(None)
        }
    }
}

/// Of a chosen thread: the daemon takes it out of the set first and then hands it something,
/// so it may have to wait a moment for the word to move.
fn handed_soon(call: Call<'_>, thread: &Thread, seen: u32) -> Answer<Option<Taken>> {
    for _ in 0..3 {
        if thread.wake.load(SeqCst) != seen {
            break;
        }
        wake::wait(&thread.wake, seen, Some(Duration::from_millis(100)));
    }
    handed(call, thread)
}

/// The daemon has given this thread no record (too many wait): it looks at the queues again
/// whenever the listener's event word moves.
fn wait_without_record(call: Call<'_>) -> Answer<Taken> {
    let Call { socket, .. } = call;
    let deadline = Deadline::after(socket.settings.receive_limit());
    loop {
        may_accept(call)?;
        if let Some(taken) = choose(call, None, Crowd { others: 0, reserve: 0 })? {
            return Ok(taken);
        }
        let slot = socket.slot()?;
        sleep(socket, slot, Change::Readable(1), deadline, listener::is_waiting)?;
    }
}

/// Makes the connection a descriptor of the program.
fn adopt(call: Call<'_>, Taken { slot: number, rank, mut place, _inside }: Taken) -> Answer<c_int> {
    let Call { socket: from, listening, family, .. } = call;
    let slot = family.arena.slot(number).ok_or(libc::ECONNABORTED)?;
    let (fd, socket) = place.0.take().ok_or(libc::EMFILE)?;
    socket.settings.set(from.settings.words());
    crate::options::inherit_foreign(from, [listening, fd]);
    // The record of this thread, if it has one: the daemon raises its priority for the
    // connection, and counts its time for it.
    slot.thread.store(named::word(thread::record().map(|(number, _)| number)), SeqCst);
    socket.serve(number, slot.generation.load(Relaxed), Role::Stream);
    shutdown::inherit(from, socket, (number, slot), family);
    if rank.is_some_and(|rank| rank > 0) {
        family.request(number, slot, request::TAKEN);
    }
    crate::options::pass_on(socket, slot, family);
    if !descriptor::name(fd, socket) {
        crate::close::let_go(socket);
        // SAFETY: just made, and its number is too high to be known to anybody.
        unsafe { real::close_for_sure(fd) };
        return Err(libc::EMFILE);
    }
    Ok(fd)
}
