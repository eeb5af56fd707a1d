//! The clauses of an RFC, from a text file of ours: its title, its sections, and a line for each clause
//! with what it asks in our words. A line below it says why it is a gap (`gap:`), why there is no test
//! (`untested:`), or what else to know (`note:`).

use std::collections::BTreeSet;

/// An RFC and what it asks.
#[derive(Debug)]
pub struct Table {
    pub rfc: u32,
    pub title: String,
    pub sections: BTreeSet<String>,
    pub clauses: Vec<Clause>,
}

/// One clause.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Clause {
    /// As citations name it.
    pub name: String,
    pub asks: String,
    pub gap: Option<String>,
    pub untested: Option<String>,
    pub note: Option<String>,
}

impl Table {
    /// Reads a table.
    ///
    /// # Panics
    /// When a line is of no form that there is.
    pub fn read(text: &str) -> Self {
        let mut lines = text.lines();
        let head = lines.next().and_then(|line| line.strip_prefix("RFC ")?.split_once(": "));
        let (rfc, title) = head.expect("`RFC number: title`");
        let mut table = Self {
            rfc: rfc.parse().expect("the number of an RFC"),
            title: title.to_owned(),
            sections: BTreeSet::new(),
            clauses: Vec::new(),
        };
        lines.filter(|line| !line.is_empty()).for_each(|line| table.line(line));
        table
    }

    fn line(&mut self, line: &str) {
        if let Some(sections) = line.strip_prefix("sections: ") {
            self.sections.extend(sections.split(' ').map(|section| format!("§{section}")));
        } else if let Some(more) = line.strip_prefix("  ") {
            let (kind, words) = more.split_once(": ").unwrap_or_else(|| panic!("{line}"));
            let clause = self.clauses.last_mut().expect("a clause before it");
            let place = match kind {
                "gap" => &mut clause.gap,
                "untested" => &mut clause.untested,
                "note" => &mut clause.note,
                _ => panic!("{line}"),
            };
            assert!(place.replace(words.to_owned()).is_none(), "twice: {line}");
        } else {
            let (name, asks) = line.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            let (name, asks) = (name.to_owned(), asks.trim_start().to_owned());
            assert!(self.clauses.iter().all(|clause| clause.name != name), "twice: {line}");
            self.clauses.push(Clause { name, asks, ..Clause::default() });
        }
    }

    /// Whether a citation of this name points somewhere.
    pub fn has(&self, name: &str) -> bool {
        self.sections.contains(name) || self.clauses.iter().any(|clause| clause.name == name)
    }
}

#[test]
fn a_table_is_read() {
    let text = "RFC 7: Title\nsections: 1 2.1\n\nMUST-1  Do.\n  note: So.\n§2.1 Let.\n  gap: No.\n";
    let table = Table::read(text);
    let clause =
        |name: &str, asks: &str| Clause { name: name.into(), asks: asks.into(), ..Clause::default() };
    let first = Clause { note: Some("So.".into()), ..clause("MUST-1", "Do.") };
    assert_eq!(table.clauses, [first, Clause { gap: Some("No.".into()), ..clause("§2.1", "Let.") }]);
    assert!(table.has("§1") && table.has("MUST-1") && !table.has("§3") && !table.has("MUST-2"));
}
