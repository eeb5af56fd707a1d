//! Names in a graph: of modules, kinds, services and paths.

use crate::read::Section;

/// A name: letters, digits, `-` and `_`.
pub(crate) fn read_name(section: &mut Section<'_, '_>, key: &'static str) -> Option<String> {
    let placed = section.placed::<String>(key)?;
    if is_name(&placed.value) {
        return Some(placed.value);
    }
    section.notes.advise(placed.span, "this cannot be a name", "1 to 32 letters, digits, `-` and `_`");
    None
}

/// Whether it can be one.
pub(crate) fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=32).contains(&text.len()) && text.chars().all(plain)
}
