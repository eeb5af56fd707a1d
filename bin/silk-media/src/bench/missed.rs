//! The pictures of a run that were not shown when they were due, and where the time of each went: to its path's parts,
//! or to a hypervisor that had the player's CPU meanwhile.

use super::player::Played;
use super::stolen::Stolen;
use serde_json::Value;
use silk_instant::Instant;
use std::time::Duration;

/// A picture is late for what happened since the one before it was ready, and at least this long before it was due.
const BEFORE: Duration = Duration::from_millis(100);
/// The parts of a picture's time.
const PARTS: [&str; 5] = ["network", "queue", "processor", "decode", "display"];

/// Those of the stream called `name` in round `round`, as the player tells of them, with what a hypervisor took while
/// they were made.
pub fn missed(round: u32, name: &str, played: &Played, stolen: &Stolen) -> Vec<Value> {
    let misses = played.stream(name)["misses"].as_array().cloned().unwrap_or_default();
    let with = misses.into_iter().map(|mut missed| {
        missed["round"] = (round + 1).into();
        missed["stolen_ns"] = (stolen_from(&missed, stolen).as_nanos() as u64).into();
        missed
    });
    with.collect()
}

fn nanos(missed: &Value, what: &str) -> u64 {
    missed[&format!("{what}_ns")].as_u64().unwrap_or(0)
}

/// What a hypervisor took from when a picture was begun until it was ready.
fn stolen_from(missed: &Value, stolen: &Stolen) -> Duration {
    let ready = nanos(missed, "due").saturating_add(nanos(missed, "late"));
    let making: u64 = PARTS.iter().map(|part| nanos(missed, part)).sum();
    let from = ready.saturating_sub(making.max(BEFORE.as_nanos() as u64));
    stolen.between(Instant::from_nanos(from), Instant::from_nanos(ready))
}

/// One of them in words, milliseconds.
pub fn told(missed: &Value) -> String {
    let millis = |what: &str| nanos(missed, what) as f64 / 1e6;
    let parts = PARTS.map(|part| format!("{part} {:.1}", millis(part))).join(", ");
    format!(
        "round {}: picture {} was {:.1} ms late: {parts}; a hypervisor had the player's CPU for {:.0} of them",
        missed["round"],
        missed["picture"],
        millis("late"),
        millis("stolen")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_missed_picture_is_told_with_where_its_time_went() {
        let missed = json!({
            "round": 2, "picture": 311, "due_ns": 5_000_000_000u64, "late_ns": 4_000_000, "network_ns": 0,
            "queue_ns": 0, "processor_ns": 270_000_000, "decode_ns": 1_500_000, "display_ns": 0, "stolen_ns": 260_000_000,
        });
        assert_eq!(
            told(&missed),
            "round 2: picture 311 was 4.0 ms late: network 0.0, queue 0.0, processor 270.0, decode 1.5, display 0.0; \
             a hypervisor had the player's CPU for 260 of them"
        );
    }
}
