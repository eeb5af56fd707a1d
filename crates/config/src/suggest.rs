//! "Did you mean": the known word nearest to an unknown one, if it is near enough that a
//! person would have meant it.

/// The nearest of `known` to `word`, when at most a third of its letters differ, or one is
/// the beginning of the other.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    // The distance is quadratic; a long word was not mistyped but is something else.
    if word.len() > 64 {
        return None;
    }
    let distance = |candidate: &str| match () {
        () if candidate.len() >= 3 && word.starts_with(candidate) => 1,
        () if word.len() >= 3 && candidate.starts_with(&word) => 1,
        () => strsim::damerau_levenshtein(&word, &candidate.to_lowercase()),
    };
    known
        .into_iter()
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1.max(candidate.chars().count() / 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `did you mean …?`, or what there is to choose from.
pub(crate) fn suggestion(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None if known.is_empty() => "there are none".to_owned(),
        None => format!("there is {}", listed(known)),
    }
}

/// `` `a`, `b` and `c` ``.
pub(crate) fn listed(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood_and_another_word_is_not() {
        let known = ["priority", "source", "name"];
        assert_eq!(nearest("prioritty", known), Some("priority"));
        assert_eq!(nearest("Suorce", known), Some("source"));
        assert_eq!(nearest("prio", known), Some("priority"));
        assert_eq!(nearest("warning", ["error", "warn"]), Some("warn"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
    }

    #[test]
    fn words_are_listed_as_people_list_them() {
        assert_eq!(listed(&["a", "b", "c"]), "`a`, `b` and `c`");
        assert_eq!(listed(&["a"]), "`a`");
    }
}
