//! An hour of network weather: a live stream over a line that delays, loses and now and then holds
//! everything up. What is shown is as old as at the beginning, after each storm again.

use crate::theatre::{Film, Theatre};
use silk_appliance::Virtual;
use silk_instant::Instant;
use silk_media::deadline;
use silk_sched::Edf;
use silk_testkit::emulator::{Conditions, Link, Loss};
use std::time::Duration;

/// Thirty pictures a second, of 8 ms each: a quarter of the processor.
const LIVE: Film = Film { pictures: 0, rate: 30_000, queue: 16, packets: 2, cost_ns: 8_000_000 };
const PERIOD: Duration = Duration::from_nanos(33_333_333);

/// When the source sends a picture: what a live source does, whatever arrives.
fn sent(number: u32) -> Instant {
    Instant::ZERO + PERIOD * number
}

/// Sends `pictures` over the line. What was sent while `holds` is true leaves when it is over.
fn broadcast(theatre: &mut Theatre, pictures: u32, holds: impl Fn(u32) -> bool) {
    let conditions = Conditions {
        delay: Duration::from_millis(20),
        jitter: Duration::from_millis(15),
        loss: Loss::random(0.001),
        ..Conditions::default()
    };
    let (mut line, mut held) = (Link::new(&conditions, 77), Vec::new());
    for number in 0..pictures {
        held.extend(Theatre::picture(LIVE, number));
        if !holds(number) {
            held.drain(..).for_each(|packet| line.send(sent(number), packet));
        }
        let end = sent(number + 1);
        while let Some(at) = line.next_event().filter(|at| *at < end) {
            theatre.run_until(at);
            while let Some(packet) = line.arrive(at) {
                theatre.arrives(&packet);
            }
        }
        theatre.run_until(end);
    }
}

/// How old each picture was when it was shown, in milliseconds.
fn ages(theatre: &Theatre) -> Vec<u64> {
    let seen = theatre.seen.lock().unwrap();
    seen.iter().map(|(stamp, at)| at.since(sent(*stamp)).as_millis() as u64).collect()
}

#[test]
fn after_every_storm_the_delay_is_what_it_was() {
    let mut theatre = Theatre::new(Box::new(Edf::new(8)), Virtual::default());
    let path = theatre.play(LIVE, deadline::by_both);
    // Every three minutes a storm, of a third of a second to five seconds.
    broadcast(&mut theatre, 108_000, |number| {
        number % 5400 > 5250 && number % 5400 - 5250 < 10 * (1 + number / 5400 % 15)
    });
    let (shown, ages) = (theatre.shown(path), ages(&theatre));
    println!("{shown:?}, ages {:?} to {:?} ms", ages.iter().min(), ages.iter().max());
    assert_eq!(shown.restarts, 0);
    let (least, most) = (ages.iter().min().unwrap(), ages.iter().max().unwrap());
    // Ahead of the display's clock by eight pictures, and one picture's decoding late at most.
    assert!(*least >= 266 && *most <= 266 + 20 + 15 + 8 + 8, "{least} to {most} ms");
    assert!(shown.shown > 105_000, "only {} shown", shown.shown);
}

#[test]
fn a_source_that_pauses_is_shown_at_once_when_it_goes_on() {
    let mut theatre = Theatre::new(Box::new(Edf::new(8)), Virtual::default());
    let path = theatre.play(LIVE, deadline::by_both);
    broadcast(&mut theatre, 60, |_| false);
    // Ten seconds later the next picture comes, as if nothing had been.
    for number in 60..180 {
        theatre.run_until(sent(number + 300));
        Theatre::picture(LIVE, number).iter().for_each(|packet| theatre.arrives(packet));
    }
    theatre.run_until(sent(600));
    let shown = theatre.shown(path);
    assert_eq!(shown.restarts, 1);
    assert!(shown.missed <= 32, "{} missed: more than the second it takes to notice", shown.missed);
    assert!(shown.shown >= 60 + 120 - 34, "{shown:?}");
}
