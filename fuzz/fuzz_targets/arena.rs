//! Any bytes in the memory that the daemon and a program share, wherever one reads what the other wrote: a ring that is
//! anywhere, datagrams in a ring, the queue of accepted connections, what the network said of datagrams. No answer may lead out of
//! the ring, and every loop over what is there ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use silk_stream::{
    AcceptQueue, Arena, Bytes, Datagram, ErrorQueue, OWNER_NOBODY, QUOTED, RECORD_HEADER, RINGS_AT, Received,
    Reference, Sent, Sizes, free, pop_datagram, push_datagram, push_received, used,
};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};

/// One for all runs: nothing in it is believed.
static ARENA: LazyLock<Arc<Arena>> =
    LazyLock::new(|| Arena::create(Sizes { rings: 8 << 20, domains: 1 }).expect("an arena"));

/// Numbers from the front of the input; zeros behind its end.
struct Numbers<'b>(&'b [u8]);

impl Numbers<'_> {
    fn next(&mut self) -> u32 {
        let (head, rest) = self.0.split_at(self.0.len().min(4));
        self.0 = rest;
        let mut bytes = [0; 4];
        bytes[..head.len()].copy_from_slice(head);
        u32::from_le_bytes(bytes)
    }
}

fuzz_target!(|input: &[u8]| {
    let mut numbers = Numbers(input);
    let (place, size) = (u64::from(numbers.next()) << 8 | u64::from(numbers.next() & 0xff), numbers.next());
    // A place that is no ring's is refused; one that is can be written and read as far as it goes.
    let anywhere = ARENA.ring(place, size);
    anywhere.into_iter().for_each(|ring| datagrams(ring, &mut numbers));
    for log in 12..16 {
        let ring = ARENA.ring(RINGS_AT as u64, 1 << log).expect("the first ring");
        // Whatever index is said to lie at the start of the memory.
        let first = numbers.next();
        datagrams(ring.beginning_at(first), &mut numbers);
    }
    accepted(&mut numbers);
    errors(&mut numbers);
});

/// So many are read of a ring.
const DATAGRAMS: usize = 1_000;

/// A ring full of the input, read as a socket's datagrams.
fn datagrams(ring: Bytes<'_>, numbers: &mut Numbers<'_>) {
    let (size, write, read) = (ring.size(), numbers.next(), numbers.next());
    ring.write(numbers.next(), numbers.0);
    let mut left = used(write, read, size);
    assert_eq!(left + free(write, read, size), size);
    let mut at = read;
    // What is not written is zeros: one empty datagram after the other, as far as the ring goes.
    for _ in 0..DATAGRAMS {
        let Some((datagram, data, next)) = pop_datagram(ring, at, left) else { break };
        let Datagram { len, peer, way, details, .. } = datagram;
        let (taken, header) = (next.wrapping_sub(at), data.wrapping_sub(at));
        assert!(header >= RECORD_HEADER && (header + len..=left).contains(&taken));
        let pieces = ring.peek(data, len as usize);
        assert_eq!(pieces[0].len() + pieces[1].len(), len as usize);
        // What was read can be written, and is the same again.
        let bytes = pieces.concat();
        let received = Received { peer, way, details };
        let written = push_received(ring, at, taken, &received, &[&bytes]).expect("there was room for it");
        let again = pop_datagram(ring, at, taken).expect("what was written is read");
        assert_eq!((again, written), ((Datagram { segment: 0, ..datagram }, data, next), next));
        let (segment, from) = datagram.departure();
        // One that no datagram can have is none.
        let segment = if segment == u16::MAX { 0 } else { segment };
        let sent = Sent { peer, way, segment, from };
        let written = push_datagram(ring, at, taken, &sent, &[&bytes]).expect("there was room for it");
        let (again, ..) = pop_datagram(ring, at, written.wrapping_sub(at)).expect("what was written is read");
        assert_eq!((again.len, again.peer, again.way, again.departure()), (len, peer, way, (segment, from)));
        (at, left) = (next, left - taken);
    }
    let mut reference = [0; Reference::SIZE];
    ring.read(at, &mut reference);
    assert_eq!(Reference::from_bytes(&reference).to_bytes(), reference);
}

/// A queue of accepted connections with any head, tail and entries.
fn accepted(numbers: &mut Numbers<'_>) {
    let Some(queue) = ARENA.listener(0).and_then(|listener| listener.queue.first()) else { return };
    let slots = [numbers.next(), numbers.next(), numbers.next()];
    for slot in slots {
        if let Some(record) = ARENA.slot(slot) {
            record.owner.store(OWNER_NOBODY, Relaxed);
            queue.push(slot, &record.owner);
        }
    }
    let mut taken = 0;
    while queue.pop(numbers.next() | 1, |slot| ARENA.slot(slot).map(|record| &record.owner)).is_some() {
        taken += 1;
        assert!(taken <= AcceptQueue::CAPACITY);
    }
}

/// What the network said, as the program reads it.
fn errors(numbers: &mut Numbers<'_>) {
    let queue = ErrorQueue::default();
    let (error, data) = queue.at(numbers.next());
    assert!(error.len <= QUOTED as u32 && data.len() == QUOTED);
    let write = numbers.next();
    let told = silk_stream::SocketError { errno: numbers.next(), info: numbers.next(), ..error };
    queue.put(write, &told, numbers.0);
    let (read, data) = queue.at(write);
    let kept = read.len as usize;
    assert_eq!(kept, numbers.0.len().min(QUOTED));
    assert!(data[..kept] == numbers.0[..kept] && (read.errno, read.info) == (told.errno, told.info));
}
