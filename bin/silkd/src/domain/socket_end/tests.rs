//! A socket's end beside a program that behaves and one that does not.

use super::*;
use crate::slots::place_rings;
use silk_stream::{Details, Pool, Sent, Sizes, Way, kind};

fn end() -> SocketEnd {
    let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1 }).unwrap();
    end_with(&mut Pool::new(arena), [4096, 4096])
}

/// One with rings of these sizes, as its program knows them, too.
pub(super) fn end_with(pool: &mut Pool, [rx, tx]: [u32; 2]) -> SocketEnd {
    let slot = pool.take_slot().unwrap();
    let rings = Rings { rx: pool.take_ring(rx).unwrap(), tx: pool.take_ring(tx).unwrap() };
    place_rings(pool.arena().slot(slot).unwrap(), rings);
    SocketEnd::new(pool.arena(), SocketName { family: 0, slot }, rings).unwrap()
}

/// The sizes of the rings that it began with.
pub(super) fn sizes_of(end: &SocketEnd) -> [u32; 2] {
    [end.rings().rx.size, end.rings().tx.size]
}

/// The receive ring as its program sees it.
fn arrived(end: &SocketEnd) -> silk_stream::Bytes<'_> {
    end.to_program.side.bytes_from(end.slot().rx_first.load(SeqCst))
}

/// Each connection has one. What is beyond 104 bytes takes the C library's allocator 128 for each.
#[test]
fn an_end_is_small() {
    assert!(size_of::<SocketEnd>() <= 104, "{}", size_of::<SocketEnd>());
}

#[test]
fn what_the_program_writes_is_there_until_it_is_consumed() {
    let mut end = end();
    end.from_program.bytes().write(0, b"hello");
    end.slot().tx_write.store(5, SeqCst);
    assert!(end.look(&Files::default()));
    assert!(!end.look(&Files::default()));
    let (_, outgoing) = end.split();
    assert_eq!(outgoing.peek(1, 9).concat(), b"ello");
    outgoing.consume(2);
    assert_eq!(outgoing.len(), 3);
    assert_eq!(end.slot().tx_read.load(SeqCst), 2);
}

#[test]
fn who_finds_a_ring_empty_begins_at_the_start_of_its_memory() {
    let mut end = end();
    for n in 0..100u32 {
        let text = [n as u8 + 1; 100];
        assert_eq!(end.split().0.write(&text[..60]), 60);
        assert_eq!(end.split().0.write(&text[60..]), 40, "behind the first part");
        assert_eq!(end.slot().rx_first.load(SeqCst), n * 100);
        assert_eq!(arrived(&end).peek(n * 100, 100).concat(), text);
        end.slot().rx_read.store((n + 1) * 100, SeqCst);
        // As a program does that finds its ring empty.
        end.slot().tx_first.store(n * 100, SeqCst);
        end.from_program.bytes().write(n * 100, &text);
        end.slot().tx_write.store((n + 1) * 100, SeqCst);
        assert!(end.look(&Files::default()));
        assert_eq!(end.split().1.peek(0, 100).concat(), text);
        end.split().1.consume(100);
    }
    let memory = [end.to_program.side.bytes_from(0), end.from_program.side.bytes_from(0)];
    assert!(memory.iter().all(|ring| ring.peek(100, 3996).concat() == [0; 3996]));
}

#[test]
fn a_receive_ring_that_was_read_and_is_idle_gives_its_memory_back() {
    let mut end = end();
    assert_eq!(end.split().0.write(b"hello"), 5);
    assert_eq!(
        [end.give_back(), end.give_back()],
        [0, 1],
        "not read yet; nothing was ever written in the other one"
    );
    end.slot().rx_read.store(5, SeqCst);
    assert_eq!(arrived(&end).peek(0, 5).concat(), b"hello");
    assert_eq!([end.give_back(), end.give_back()], [1, 0]);
    assert_eq!(arrived(&end).peek(0, 5).concat(), [0; 5]);
    assert_eq!(end.split().0.write(b"more"), 4);
    assert_eq!(arrived(&end).peek(5, 4).concat(), b"more");
    end.slot().rx_read.store(9, SeqCst);
    assert_eq!([end.give_back(), end.give_back()], [0, 1], "what just came is not idle");
}

/// What the program writes, and the peer acknowledges at once.
fn through(end: &mut SocketEnd, text: &[u8]) {
    let write = end.slot().tx_write.load(SeqCst);
    // As a program does that finds its ring empty.
    end.slot().tx_first.store(write, SeqCst);
    end.from_program.bytes().write(write, text);
    end.slot().tx_write.store(write + text.len() as u32, SeqCst);
    assert!(end.look(&Files::default()));
    end.split().1.consume(text.len());
}

#[test]
fn what_the_program_has_read_and_written_is_seen_before_anybody_looks() {
    let mut end = end();
    assert_eq!(end.split().0.write(b"ask"), 3);
    assert!(end.split().0.unread() == 3 && !end.split().1.has_more());
    end.slot().rx_read.store(3, SeqCst);
    end.slot().tx_write.store(4, SeqCst);
    assert!(end.split().0.unread() == 0 && end.split().1.has_more());
    assert!(end.look(&Files::default()) && !end.split().1.has_more());
}

#[test]
fn so_does_a_send_ring_that_was_acknowledged_unless_somebody_writes() {
    let mut end = end();
    assert_eq!([end.give_back(), end.give_back()], [0, 2]);
    through(&mut end, b"hello");
    let kept = |end: &SocketEnd| end.from_program.side.bytes_from(0).peek(0, 5).concat();
    assert_eq!((end.give_back(), kept(&end)), (0, b"hello".to_vec()), "what was just sent is not idle");
    end.slot().tx_writers.store(1, SeqCst);
    assert_eq!((end.give_back(), kept(&end)), (0, b"hello".to_vec()));
    end.slot().tx_writers.store(0, SeqCst);
    through(&mut end, b"world");
    assert_eq!([end.give_back(), end.give_back(), end.give_back()], [0, 1, 0]);
    assert_eq!(kept(&end), [0; 5]);
    end.from_program.bytes().write(10, b"later");
    end.slot().tx_write.store(15, SeqCst);
    assert!(end.look(&Files::default()));
    assert_eq!([end.give_back(), end.give_back()], [0, 0], "not acknowledged");
    assert_eq!(end.split().1.peek(0, 5).concat(), b"later");
}

#[test]
fn who_moves_on_by_a_round_number_is_not_idle() {
    let mut side = end().from_program.side;
    assert_eq!([0, 0, 0].map(|at| side.has_become_idle(at, true)), [false, true, false]);
    assert_eq!([1 << 16, 1 << 16, 1 << 20].map(|at| side.has_become_idle(at, true)), [false, true, false]);
}

#[test]
fn while_memory_is_short_a_ring_is_filled_from_its_start_and_no_farther() {
    let mut end = end();
    end.to_program.side.arena.set_reach(Some(1000));
    assert_eq!(end.split().0.room(), 1000);
    assert_eq!(end.split().0.write(&[7; 600]), 600);
    end.slot().rx_read.store(300, SeqCst);
    assert_eq!(end.split().0.room(), 400, "what was read is no room yet");
    assert!(!end.ask_for_room());
    assert_eq!(end.slot().rx_note.load(SeqCst), 4096, "to ring when all is read");
    // A peer that was offered more before sends it.
    assert_eq!(end.split().0.write(&[7; 1000]), 1000);
    assert_eq!(end.split().0.room(), 0);
    end.slot().rx_read.store(1600, SeqCst);
    assert_eq!(end.split().0.room(), 1000);
    assert!(!end.ask_for_room());
    assert_eq!(end.slot().rx_note.load(SeqCst), 0);
    // Nobody waits for more than can come.
    end.slot().wake_read.store(2000, SeqCst);
    end.slot().waiting.store(waiting::READ | waiting::ASLEEP, SeqCst);
    end.split().0.write(&[7; 499]);
    assert!(!end.take_news().unwrap().threads);
    end.split().0.write(&[7]);
    assert!(end.take_news().unwrap().threads);
    end.to_program.side.arena.set_reach(None);
    assert_eq!(end.split().0.room(), 4096 - 500);
}

#[test]
fn a_program_that_takes_bytes_back_or_claims_too_many_changes_nothing_else() {
    let mut end = end();
    end.slot().tx_write.store(100, SeqCst);
    end.look(&Files::default());
    end.slot().tx_write.store(50, SeqCst);
    end.look(&Files::default());
    assert_eq!(end.split().1.len(), 100);
    end.slot().tx_write.store(u32::MAX, SeqCst);
    end.look(&Files::default());
    assert_eq!(end.split().1.len(), 4096);
    end.slot().rx_read.store(77, SeqCst);
    assert_eq!(end.split().0.room(), 0);
}

#[test]
fn a_reader_is_woken_at_its_level_and_once() {
    let mut end = end();
    end.slot().wake_read.store(4, SeqCst);
    end.slot().waiting.store(waiting::READ | waiting::ASLEEP, SeqCst);
    end.split().0.write(b"abc");
    assert_eq!(end.take_news(), Some(Wake { threads: false, bells: true }));
    end.split().0.write(b"d");
    assert_eq!(end.take_news(), Some(Wake { threads: true, bells: true }));
    assert_eq!(end.take_news(), None);
    assert_eq!(end.slot().waiting.load(SeqCst), 0);
}

#[test]
fn a_smaller_receive_buffer_offers_less_and_takes_what_was_offered() {
    let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1 }).unwrap();
    let mut end = end_with(&mut Pool::new(arena), [16384, 4096]);
    end.slot().receive_limit.store(1, SeqCst);
    end.limit_receiving();
    assert_eq!(end.split().0.room(), 4096);
    assert_eq!(end.split().0.write(&[7; 8000]), 8000);
    assert_eq!(end.split().0.room(), 0);
    assert!(!end.ask_for_room());
    assert_eq!(end.slot().rx_note.load(SeqCst), 12288 + 2048);
    end.slot().rx_read.store(6000, SeqCst);
    assert_eq!(end.split().0.room(), 2096);
    assert!(!end.ask_for_room());
    assert_eq!(end.slot().rx_note.load(SeqCst), 0, "there is room enough");
    end.slot().receive_limit.store(0, SeqCst);
    end.limit_receiving();
    assert_eq!(end.split().0.room(), 16384 - 2000);
    end.slot().receive_limit.store(5000, SeqCst);
    end.slot().rx_read.store(0, SeqCst);
    let mut again = SocketEnd::new(&end.to_program.side.arena, end.name(), end.rings()).unwrap();
    assert_eq!(again.split().0.room(), 5000, "it was set before there was a connection");
}

// RFC 9293 MUST-47, SHLD-20.
#[test]
fn an_error_that_ends_nothing_is_told_to_whoever_asked_for_it() {
    let mut end = end();
    end.note_soft_error(libc::EHOSTUNREACH);
    assert_eq!((end.slot().error.load(SeqCst), end.take_news()), (0, None));
    end.slot().wishes.put(wish::SOFT_ERRORS, 1);
    end.slot().waiting.store(waiting::READ | waiting::ASLEEP, SeqCst);
    end.slot().wake_read.store(1, SeqCst);
    end.note_soft_error(libc::EHOSTUNREACH);
    assert_eq!(end.slot().error.load(SeqCst), libc::EHOSTUNREACH.unsigned_abs());
    assert_eq!(end.take_news(), Some(Wake { threads: true, bells: true }));
    assert_eq!(end.slot().status.load(SeqCst) & status::FAILED, 0);
}

#[test]
fn a_silent_peer_is_told_as_what_the_network_said_last() {
    for (said, acknowledged, errno) in [
        (0, false, libc::ETIMEDOUT),
        (libc::EHOSTUNREACH, false, libc::EHOSTUNREACH),
        (libc::EHOSTUNREACH, true, libc::ETIMEDOUT),
    ] {
        let mut end = end();
        end.note_soft_error(said);
        if acknowledged {
            end.forget_soft_error();
        }
        end.time_out();
        assert_eq!(end.slot().error.load(SeqCst), errno.unsigned_abs());
    }
}

#[test]
fn a_reset_behind_the_peers_end_breaks_the_pipe_of_who_still_writes() {
    for (peer_ended, finished, errno) in
        [(false, false, libc::ECONNRESET), (true, false, libc::EPIPE), (true, true, libc::ECONNRESET)]
    {
        let mut end = end();
        end.change_status(if peer_ended { status::PEER_FIN } else { 0 }, 0);
        if finished {
            end.finish();
        }
        end.reset();
        assert_eq!(end.slot().error.load(SeqCst), errno.unsigned_abs());
    }
}

#[test]
fn a_writer_that_limits_what_is_not_sent_is_woken_when_half_of_it_is() {
    let mut end = end();
    end.slot().wishes.put(wish::NOT_SENT, 1000);
    end.limit_not_sent();
    end.slot().tx_write.store(1200, SeqCst);
    end.look(&Files::default());
    let waits = |end: &SocketEnd| {
        end.slot().waiting.store(waiting::WRITE | waiting::ASLEEP, SeqCst);
        end.slot().wake_write.store(1, SeqCst);
    };
    waits(&end);
    end.from_program.sent(700);
    assert_eq!(end.slot().tx_sent.load(SeqCst), 700);
    assert_eq!(end.take_news(), Some(Wake { threads: false, bells: true }), "500 are not sent");
    end.from_program.sent(701);
    assert_eq!(end.take_news(), Some(Wake { threads: true, bells: true }));
    // What is acknowledged was sent, whoever sent it.
    waits(&end);
    end.from_program.consume(1200);
    assert_eq!((end.slot().tx_sent.load(SeqCst), end.slot().tx_read.load(SeqCst)), (1200, 1200));
    assert_eq!(end.take_news(), Some(Wake { threads: true, bells: true }));
}

#[test]
fn a_service_is_new_once() {
    let mut end = end();
    assert_eq!(end.new_service(), None);
    end.slot().service.store(0x48, SeqCst);
    assert_eq!([end.new_service(), end.new_service()], [Some(0x48), None]);
    end.slot().service.store(0, SeqCst);
    assert_eq!(end.new_service(), Some(0));
}

#[test]
fn datagrams_pass_in_both_directions_and_a_malformed_one_empties_the_ring() {
    let mut end = end();
    let peer = "10.0.0.9:53".parse().unwrap();
    let received = Received { peer, way: Way::default(), details: None };
    assert!(end.push_datagram(received, &[b"query"]));
    let ring = end.from_program.bytes();
    let write = silk_stream::push_datagram(
        ring,
        0,
        4096,
        &Sent { peer, way: Way::default(), segment: 0, from: None },
        &[b"answer"],
    )
    .unwrap();
    end.slot().tx_write.store(write + 8, SeqCst);
    let mut seen = Vec::new();
    while end.pop_datagram(|to, parts| seen.push((to.peer, parts.concat()))) {}
    assert_eq!(seen, [(peer, b"answer".to_vec())]);
    assert_eq!(end.slot().tx_read.load(SeqCst), write + 8);
}

#[test]
fn datagrams_get_the_room_that_is_asked_for_once_what_has_come_is_read() {
    let arena = Arena::create(Sizes { rings: 16 << 20, domains: 1 }).unwrap();
    let mut pool = Pool::new(arena.clone());
    let mut end = end_with(&mut pool, [4096, 4096]);
    end.slot().kind.store(kind::DATAGRAM, SeqCst);
    let received = Received { peer: "10.0.0.9:53".parse().unwrap(), way: Way::default(), details: None };
    let fill = |end: &mut SocketEnd| (0..).take_while(|_| end.push_datagram(received, &[&[7; 1000]])).count();
    assert_eq!(fill(&mut end), 4);
    end.slot().receive_limit.store(10_000, SeqCst);
    end.want_what_is_asked();
    assert!(end.wants_larger());
    end.enlarge(&mut pool, 1 << 20);
    assert_eq!((fill(&mut end), sizes_of(&end)), (0, [4096, 4096]), "the old ring is full");
    end.slot().rx_read.store(end.slot().rx_write.load(SeqCst), SeqCst);
    // Of 16 KB it has asked for 10 000 bytes, and whatever has begun by then finds room.
    assert_eq!((fill(&mut end), end.slot().rx_size.load(SeqCst)), (10, 16 << 10));
    end.slot().receive_limit.store(1, SeqCst);
    end.want_what_is_asked();
    end.slot().rx_read.store(end.slot().rx_write.load(SeqCst), SeqCst);
    assert_eq!(fill(&mut end), 3, "no less than the least");
    assert_eq!(end.slot().drops.load(SeqCst), 4);
    end.return_larger(&mut pool);
    assert_eq!(arena.rings_in_use(), 2 * 4096);
}

#[test]
fn a_lane_gets_the_room_that_its_socket_has_asked_for() {
    let arena = Arena::create(Sizes { rings: 16 << 20, domains: 1 }).unwrap();
    let mut pool = Pool::new(arena.clone());
    let socket = pool.take_slot().unwrap();
    let mut end = end_with(&mut pool, [4096, 4096]);
    end.be_lane_of(socket);
    arena.slot(socket).unwrap().receive_limit.store(10_000, SeqCst);
    end.want_what_is_asked();
    assert!(end.wants_larger());
    end.enlarge(&mut pool, 1 << 20);
    let received = Received { peer: "10.0.0.9:53".parse().unwrap(), way: Way::default(), details: None };
    let came = (0..).take_while(|_| end.push_datagram(received, &[&[7; 1000]])).count();
    assert_eq!((came, end.slot().rx_size.load(SeqCst)), (10, 16 << 10));
}

#[test]
fn details_of_a_datagram_are_for_who_wants_them() {
    let mut end = end();
    let peer = "10.0.0.9:53".parse().unwrap();
    let details = Some(Details { at: 5, to: "10.0.0.2".parse().unwrap(), interface: 0 });
    let received = Received { peer, way: Way { hops: 9, service: 0 }, details };
    assert!(end.push_datagram(received, &[b"first"]));
    end.slot().options.store(option::DETAILS, SeqCst);
    assert!(end.push_datagram(received, &[b"second"]));
    let (mut read, write, mut seen) = (0, end.slot().rx_write.load(SeqCst), Vec::new());
    while let Some((datagram, _, next)) = silk_stream::pop_datagram(arrived(&end), read, write - read) {
        seen.push(datagram.details);
        read = next;
    }
    assert_eq!(seen, [None, details]);
}
