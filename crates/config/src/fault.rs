//! What is wrong with a file: every fault at once, each with its place, what is wrong, and
//! what to do about it. Printed plainly by [`fmt::Display`]; as a [`miette::Diagnostic`] for
//! whoever draws it on a terminal. Nothing here ever panics on a place outside the text.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which bytes of the text it is about.
    pub span: Range<usize>,
    /// What is wrong, in one line without a full stop.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// All that is wrong with one text; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    name: String,
    text: Arc<str>,
    /// In the order of their places.
    faults: Vec<Fault>,
}

impl Faults {
    pub(crate) fn new(name: &str, text: &str, mut faults: Vec<Fault>) -> Self {
        faults.sort_by(|a, b| (a.span.start, &a.message).cmp(&(b.span.start, &b.message)));
        faults.dedup();
        Self { name: name.to_owned(), text: text.into(), faults }
    }

    /// The faults, in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.faults.iter()
    }

    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.faults.len()
    }

    /// How many there are, in words.
    pub fn summary(&self) -> String {
        match self.faults.len() {
            1 => format!("1 fault in {}; nothing was applied", plain(&self.name)),
            faults => format!("{faults} faults in {}; nothing was applied", plain(&self.name)),
        }
    }

    /// As many of them as fit into so many bytes, and how many more there are.
    pub fn within(&self, bytes: usize) -> String {
        let mut told = String::new();
        for (n, fault) in self.faults.iter().enumerate() {
            let one = format!("{}\n", Told(self, fault));
            if told.len() + one.len() > bytes {
                let (more, name) = (self.faults.len() - n, plain(&self.name));
                told += &format!("{more} more, which `silk check {name}` tells\n\n");
                break;
            }
            told += &one;
        }
        told + &self.summary()
    }

    /// What the text is called: a file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Line and column of a fault, both from 1, the column in characters.
    pub fn place(&self, fault: &Fault) -> (usize, usize) {
        let (line, start) = line_of(&self.text, fault.span.start);
        let before = self.text.get(start..fault.span.start).unwrap_or_default();
        (line, 1 + before.chars().count())
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, fault: &Fault) -> fmt::Result {
        let (line, column) = self.place(fault);
        let (_, start) = line_of(&self.text, fault.span.start);
        let marked = self.text.get(fault.span.clone()).unwrap_or_default();
        let width = marked.lines().next().unwrap_or_default().chars().count().clamp(1, EXCERPT);
        // Of a long line, what is around the fault.
        let skipped = if column + width > EXCERPT { column - 1 } else { 0 };
        let shown: String = self.text[start..]
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .skip(skipped)
            .take(EXCERPT)
            .collect();
        let shown = plain(&shown);
        let gutter = " ".repeat(line.to_string().len());
        // Tabs stay tabs, so that the mark stands where the terminal shows the text.
        let before = shown.chars().take(column - 1 - skipped);
        let indent: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        writeln!(f, "{}:{line}:{column}: {}", plain(&self.name), plain(&fault.message))?;
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{line} | {shown}")?;
        writeln!(f, "{gutter} | {indent}{}", "^".repeat(width))?;
        if let Some(help) = &fault.help {
            writeln!(f, "{gutter} = {}", plain(help))?;
        }
        Ok(())
    }
}

/// A text that commands no terminal.
pub(crate) fn plain(text: &str) -> String {
    let harmless = |c: char| if c.is_control() && c != '\t' { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(harmless).collect()
}

/// The same for a text of several lines in which every place stays where it is: what replaces a command is as long.
fn plain_in_place(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    // The end of a line may be both of these.
    for c in text.replace("\r\n", " \n").chars() {
        if c.is_control() && !matches!(c, '\t' | '\n') {
            shown.extend(std::iter::repeat_n('?', c.len_utf8()));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The most characters shown of a line.
const EXCERPT: usize = 160;

/// The line, from 1, that holds this byte, and where it starts.
fn line_of(text: &str, at: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..at.min(text.len())];
    let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    (1 + before.iter().filter(|&&byte| byte == b'\n').count(), start)
}

/// One of them, as text.
struct Told<'f>(&'f Faults, &'f Fault);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, self.1)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.faults {
            writeln!(f, "{}", Told(self, fault))?;
        }
        f.write_str(&self.summary())
    }
}

impl std::error::Error for Faults {}

/// One fault as miette draws it.
#[derive(Debug)]
pub struct Drawn<'a> {
    faults: &'a Faults,
    fault: &'a Fault,
    source: miette::NamedSource<Arc<str>>,
}

impl Faults {
    /// The faults as diagnostics, to be drawn by a handler of miette's. Nothing in them commands the terminal.
    pub fn drawn(&self) -> impl Iterator<Item = Drawn<'_>> {
        let (name, text): (_, Arc<str>) = (plain(&self.name), plain_in_place(&self.text).into());
        self.faults.iter().map(move |fault| Drawn {
            faults: self,
            fault,
            source: miette::NamedSource::new(&name, Arc::clone(&text)),
        })
    }
}

impl fmt::Display for Drawn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plain(&self.fault.message))
    }
}

impl std::error::Error for Drawn<'_> {}

impl miette::Diagnostic for Drawn<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.fault.help.as_ref().map(|help| Box::new(plain(help)) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        let end = self.fault.span.end.min(self.faults.text.len());
        let span = self.fault.span.start.min(end)..end;
        Some(Box::new(std::iter::once(miette::LabeledSpan::underline(span))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str, span: Range<usize>) -> String {
        let fault = Fault { span, message: "wrong".into(), help: None };
        Faults::new("f", text, vec![fault]).to_string()
    }

    #[test]
    fn a_place_outside_the_text_is_its_end() {
        assert!(printed("a\nb", 90..95).starts_with("f:2:1: wrong\n  |\n2 | b\n  | ^\n"));
        assert!(printed("", 0..0).starts_with("f:1:1: wrong"));
    }

    #[test]
    fn columns_count_characters_and_tabs_stay_tabs() {
        assert!(printed("\té = 1", 1..3).starts_with("f:1:2: wrong\n  |\n1 | \té = 1\n  | \t^\n"));
    }

    #[test]
    fn a_long_line_is_shown_where_the_fault_is_and_controls_are_not_sent_to_the_terminal() {
        let text = format!("{}\x1b[31mred", "x".repeat(100_000));
        let told = printed(&text, 100_000..100_003);
        assert!(told.contains("f:1:100001:") && told.contains("1 | \u{fffd}[31mred\n"));
        assert!(told.len() < 200);
    }

    #[test]
    fn what_is_drawn_commands_no_terminal_and_keeps_its_places() {
        let text = "a\x1b[31m\u{9b}2J\r\n\tb = é\n";
        let fault = Fault { span: 0..1, message: "\x1b[2J".into(), help: Some("\x07".into()) };
        let faults = Faults::new("\x1bf", text, vec![fault]);
        assert_eq!(plain_in_place(text), "a?[31m??2J \n\tb = é\n");
        let drawn = faults.drawn().next().unwrap();
        let source = miette::Diagnostic::source_code(&drawn).unwrap();
        let shown = source.read_span(&(0..text.len()).into(), 0, 0).unwrap();
        assert!(shown.data().starts_with(b"a?[31m??2J \n"), "{:?}", String::from_utf8_lossy(shown.data()));
        assert_eq!(shown.name(), Some("\u{fffd}f"));
        let help = miette::Diagnostic::help(&drawn).unwrap().to_string();
        assert_eq!((drawn.to_string(), help), ("\u{fffd}[2J".to_owned(), "\u{fffd}".to_owned()));
    }

    #[test]
    fn of_many_those_are_told_for_which_there_is_room() {
        let text = "x\n".repeat(400);
        let wrong = |n: usize| Fault { span: 2 * n..2 * n + 1, message: "wrong".into(), help: None };
        let all = Faults::new("f", &text, (0..400).map(wrong).collect());
        assert_eq!(all.within(1 << 20), all.to_string());
        let some = all.within(1000);
        assert!(some.len() < 1100 && some.starts_with("f:1:1: wrong\n"), "{some}");
        let told = some.matches(": wrong").count();
        let rest = format!(
            "\n{} more, which `silk check f` tells\n\n400 faults in f; nothing was applied",
            400 - told
        );
        assert!(told > 10 && some.ends_with(&rest), "{some}");
    }

    #[test]
    fn a_place_inside_a_character_does_not_panic() {
        assert!(printed("éé", 1..3).contains("wrong"));
    }
}
