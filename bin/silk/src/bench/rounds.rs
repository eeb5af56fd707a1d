//! Rounds: every system has its turn in each, so that a slow hour of the machine is everybody's; and what is left of
//! them where a turn fails or somebody interrupts.

use super::Failure;
use super::watch::Watch;
use std::fmt::Display;

/// The systems of an experiment in the order that they have in a round, counted from one: each begins another round, for what
/// the one before left behind (warm caches, a CPU's clock) is then not always the same one's.
pub fn in_turn<S: Copy>(systems: &[S], round: u32) -> impl Iterator<Item = S> {
    let first = (round.max(1) - 1) as usize % systems.len().max(1);
    systems[first..].iter().chain(&systems[..first]).copied()
}

/// What was measured, and what could not be.
#[derive(Debug)]
pub struct Measured<M> {
    pub all: Vec<M>,
    pub incomplete: Vec<String>,
}

/// Takes the turns of so many rounds. A turn that fails is named, and what it has measured until then counts. An
/// interruption leaves the whole rounds, and says so; in the first round it ends everything.
pub fn take<T: Display, M>(
    rounds: u32,
    watch: &Watch,
    turns: impl Fn(u32) -> Vec<T>,
    mut take: impl FnMut(&T, &mut Vec<M>) -> Result<(), Failure>,
) -> Result<Measured<M>, Failure> {
    let mut measured = Measured { all: Vec::new(), incomplete: Vec::new() };
    for round in 1..=rounds {
        let whole = (measured.all.len(), measured.incomplete.len());
        for turn in turns(round) {
            let Err(failure) = take(&turn, &mut measured.all) else { continue };
            // What an interruption made fail is no result.
            if matches!(failure, Failure::Interrupted) || watch.check().is_err() {
                if round == 1 {
                    return Err(Failure::Interrupted);
                }
                measured.all.truncate(whole.0);
                measured.incomplete.truncate(whole.1);
                measured.incomplete.push(format!("interrupted in round {round} of {rounds}"));
                return Ok(measured);
            }
            measured.incomplete.push(format!("{turn}: {failure}"));
        }
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_begins_another_round() {
        let orders: Vec<Vec<char>> =
            (1..=4).map(|round| in_turn(&['a', 'b', 'c'], round).collect()).collect();
        assert_eq!(orders, ["abc", "bca", "cab", "abc"].map(|order| order.chars().collect::<Vec<_>>()));
        assert_eq!(in_turn(&[(); 0], 2).count(), 0);
    }

    /// Three rounds of two turns, each of which measures its number; these end as is said.
    fn rounds(end: impl Fn(u32) -> Option<Failure>) -> Result<Measured<u32>, Failure> {
        let turns = |round| vec![10 * round, 10 * round + 1];
        take(3, &Watch::default(), turns, |turn, all| {
            all.push(*turn);
            end(*turn).map_or(Ok(()), Err)
        })
    }

    #[test]
    fn a_turn_that_fails_is_named_and_the_others_are_taken() {
        let failed = |turn| (turn == 20).then(|| Failure::Missing(vec!["apache2"]));
        let measured = rounds(failed).unwrap();
        assert_eq!(measured.all, [10, 11, 20, 21, 30, 31]);
        assert!(
            matches!(&measured.incomplete[..], [one] if one.starts_with("20: ") && one.contains("apache2"))
        );
    }

    #[test]
    fn an_interruption_leaves_the_rounds_that_are_whole() {
        let interrupted = |at| move |turn| (turn == at).then_some(Failure::Interrupted);
        assert!(matches!(rounds(interrupted(11)), Err(Failure::Interrupted)));
        let measured = rounds(interrupted(31)).unwrap();
        assert_eq!(measured.all, [10, 11, 20, 21]);
        assert_eq!(measured.incomplete, ["interrupted in round 3 of 3"]);
    }
}
