//! What the control thread orders a domain to do, and who of the domain does it.

use crate::between::command::Command;
use crate::between::told::Told;
use crate::domain::engine::Engine;
use crate::domain::family_end::FamilyEnd;
use silk_executor::clock;
use silk_stream::Arena;
use std::sync::atomic::Ordering::SeqCst;

/// Does what an order says, for which its answer is dropped once it is done. [`Command::Stop`] is the executor's own.
pub fn obey(engine: &mut Engine, command: Command) {
    let now = clock::now();
    match command {
        Command::Family { family, arena, priorities } => {
            mark_awake(&arena, engine.domain);
            let place = (engine.domain, engine.siblings.len());
            engine.families.insert(family, FamilyEnd::new(arena, priorities, place));
        }
        Command::FamilyGone { family } => engine.family_gone(family, now),
        Command::Bell { family, bell, event, answer } => {
            if let Some(family) = engine.families.get_mut(&family) {
                family.set_bell(bell, Some(event));
            }
            drop(answer);
        }
        Command::BellGone { family, bell, obeyed } => {
            if let Some(family) = engine.families.get_mut(&family) {
                family.set_bell(bell, None);
            }
            drop(obeyed);
        }
        Command::Thread { family, thread, end, answer } => {
            if let Some(family) = engine.families.get_mut(&family) {
                family.set_thread(thread, Some(end));
            }
            drop(answer);
        }
        Command::ThreadGone { family, thread, obeyed } => {
            engine.thread_gone(family, thread, now);
            drop(obeyed);
        }
        Command::Listen { hold, defer_accept, answer } => {
            engine.listen(&hold, defer_accept, now);
            drop(answer);
        }
        Command::File { family, place, file, obeyed } => {
            engine.set_file(family, place, file);
            drop(obeyed);
        }
        Command::ListenOn { socket, backlog, defer_accept, answer } => {
            engine.listen_on(socket, backlog, defer_accept, now);
            drop(answer);
        }
        Command::Unlisten(name) => {
            engine.unlisten(name, now);
            engine.wake_control();
        }
        Command::Host(arrived) => engine.host_passed_on(arrived, now),
        Command::Connect { socket, rings, local, peer, priority } => {
            engine.connect(socket, rings, (local, peer), priority, now);
        }
        Command::Spare { socket, spare } => engine.take_spare(socket, spare, now),
        Command::Datagram { socket, rings, locals, peer, domain, opened, hold, answer } => {
            if opened || domain != engine.domain || engine.sockets.get(socket).is_some() {
                engine.open_datagram((socket, rings), &locals, peer, domain, &hold, now);
            }
            // Whoever is answered may give the port back at once.
            drop(hold);
            drop(answer);
        }
        Command::Lane { socket, of, rings, locals, sharing, opened } => {
            if opened || engine.sockets.get(socket).is_some() {
                engine.open_lane((socket, rings), of, (&locals, sharing), now);
            }
        }
        Command::Deafen(socket) => engine.deafen(socket, now),
        Command::Home { local, domain } => engine.homes.enter(local, domain),
        Command::Deserted { port, at } => engine.homes.desert(port, at),
        Command::Scout { socket, rings, recipe, answer } => {
            engine.open_scout(socket, rings, &recipe, now);
            drop(answer);
        }
        Command::Frame { bytes, device, checksum } => {
            engine.passed_on(bytes, device, checksum, now);
        }
        Command::Reported(said) => {
            engine.has_come();
            engine.reported(true, *said, now);
        }
        Command::Advertised { hops, mtu } => engine.heed(hops, mtu),
        Command::RouterLost(router) => engine.doubt_router(router, now),
        Command::Redirected { router, destination, hop } => {
            engine.redirect(router, destination, hop, now);
        }
        Command::Group { group, filter } => engine.tell_of_group(group, &filter, now),
        Command::Sources { socket, group, filter } => engine.choose_sources(socket, group, filter),
        Command::Close { socket, generation, died } => {
            let abort = died && !engine.asked_to_close(socket);
            engine.close(socket, Some(generation), abort, now);
        }
        Command::Disconnect(socket) => engine.disconnect(socket, now),
        Command::ProcessGone { family, process, died } => engine.process_gone(family, (process, died)),
        Command::Neighbour { device, address, link } => engine.resolved((device, address), link, now),
        Command::Priority { peer, socket, priority } => {
            let outcome = engine.prioritise(socket, priority);
            engine.tell_control(Told::Prioritised { peer, outcome });
        }
        Command::Classes(classes) => engine.set_classes(classes),
        Command::Refused(refused) => engine.expel(refused),
        Command::Shortage(is_short) => engine.giving_back.hurry(is_short, now),
        Command::Standing(standing) => engine.follow(&standing, now),
        Command::Station { device, address } => engine.become_station(device, address),
        Command::Report { round } => engine.begin_report(round),
        Command::Mark(obeyed) => engine.mark(obeyed),
        Command::Stop => {}
    }
}

/// Until the first sleep nobody needs to ring.
fn mark_awake(arena: &Arena, domain: usize) {
    if let Some(doorbell) = arena.doorbell(domain) {
        doorbell.sleeping.store(0, SeqCst);
    }
}
