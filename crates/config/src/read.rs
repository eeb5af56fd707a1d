//! Reading TOML with the place of everything kept. A [`Section`] hands out the values of
//! one table by key, reports what is wrong with each, and in the end every key nobody asked
//! for. Reading never stops at a fault: it goes on with the default in its place.

use crate::fault::Fault;
use crate::suggest::{listed, suggestion};
use std::ops::{Range, RangeInclusive};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong so far, and every key that was asked for.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) faults: Vec<Fault>,
    pub(crate) keys: Vec<(String, &'static str)>,
    unknown: Vec<Unknown>,
    /// The text did not even parse: what is missing may only have been misread.
    pub(crate) broken: bool,
}

impl Notes {
    pub(crate) fn fault(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.faults.push(Fault { span, message: message.into(), help: None });
    }

    pub(crate) fn advise(&mut self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.faults.push(Fault { span, message: message.into(), help: Some(help.into()) });
    }

    /// A fault about something that is not there.
    pub(crate) fn missing(&mut self, span: Range<usize>, message: String, help: String) {
        if !self.broken {
            self.advise(span, message, help);
        }
    }
}

/// A key nobody asked for.
#[derive(Debug)]
struct Unknown {
    key: String,
    section: String,
    known: Vec<&'static str>,
    span: Range<usize>,
}

impl Notes {
    /// Turns the keys nobody asked for into faults; done last, when it is known which keys
    /// other sections have.
    pub(crate) fn settle_unknown(&mut self) {
        for Unknown { key, section, known, span } in std::mem::take(&mut self.unknown) {
            let elsewhere = self.keys.iter().find(|(_, other)| *other == key).map(|(section, _)| section);
            let help = match elsewhere {
                Some(other) => format!("it belongs under {other}"),
                None => suggestion(&key, &known),
            };
            self.advise(span, format!("unknown key `{}` in {section}", key.escape_debug()), help);
        }
    }
}

/// A value of a configuration, read from one of TOML.
pub(crate) trait Value: Sized {
    /// Reads it, or notes why not.
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self>;

    /// The number that it is, where that is one the type has no room for.
    fn beyond(_value: &Spanned<DeValue<'_>>) -> Option<String> {
        None
    }
}

/// What a TOML value is, for messages.
pub(crate) fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Notes that something else was expected.
pub(crate) fn expected<T>(what: &str, value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<T> {
    notes.fault(value.span(), format!("expected {what}, found {}", kind_of(value.get_ref())));
    None
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Placed<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

/// One table of the file.
pub(crate) struct Section<'a, 'i> {
    /// As in the file: `[device]`, `[[class]]`; `the file` for the outermost.
    name: String,
    span: Range<usize>,
    table: Option<&'a DeTable<'i>>,
    known: Vec<&'static str>,
    pub(crate) notes: &'a mut Notes,
}

impl<'a, 'i> Section<'a, 'i> {
    pub(crate) fn new(
        name: impl Into<String>,
        span: Range<usize>,
        table: Option<&'a DeTable<'i>>,
        notes: &'a mut Notes,
    ) -> Self {
        Self { name: name.into(), span, table, known: Vec::new(), notes }
    }

    /// Where the section stands.
    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Where the value of `key` stands, or else the section.
    pub(crate) fn span_of(&self, key: &str) -> Range<usize> {
        self.table.and_then(|table| table.get(key)).map_or(self.span.clone(), Spanned::span)
    }

    /// Whether `key` is given, well or badly.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    /// Whether `key` has been read and its value is wrong: what was meant nobody knows, and what goes with it is not
    /// judged.
    pub(crate) fn is_wrong(&self, key: &str) -> bool {
        let span = self.span_of(key);
        let inside = |fault: &Fault| span.start <= fault.span.start && fault.span.end <= span.end;
        self.has(key) && self.notes.faults.iter().any(inside)
    }

    fn raw(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'i>>> {
        self.known.push(key);
        self.notes.keys.push((self.name.clone(), key));
        self.table?.get(key)
    }

    /// The value of `key`, if it is there and right.
    pub(crate) fn read<T: Value>(&mut self, key: &'static str) -> Option<T> {
        T::read(self.raw(key)?, self.notes)
    }

    /// The same, with its place.
    pub(crate) fn placed<T: Value>(&mut self, key: &'static str) -> Option<Placed<T>> {
        let span = self.span_of(key);
        self.read(key).map(|value| Placed { value, span })
    }

    /// The value of `key`, or else the default.
    pub(crate) fn or<T: Value>(&mut self, key: &'static str, default: T) -> T {
        self.read(key).unwrap_or(default)
    }

    /// The same, within bounds.
    pub(crate) fn within<T>(&mut self, key: &'static str, default: T, bounds: RangeInclusive<T>) -> T
    where
        T: Value + PartialOrd + Shown,
    {
        self.between(key, bounds).unwrap_or(default)
    }

    /// The value of `key`, if it is there, right and within bounds.
    pub(crate) fn between<T>(&mut self, key: &'static str, bounds: RangeInclusive<T>) -> Option<T>
    where
        T: Value + PartialOrd + Shown,
    {
        let (span, raw) = (self.span_of(key), self.raw(key)?);
        // What the type has no room for is out of these bounds, not of the type's.
        let found = match T::beyond(raw) {
            Some(number) => number,
            None => match T::read(raw, self.notes)? {
                value if bounds.contains(&value) => return Some(value),
                value => value.shown(),
            },
        };
        let (least, most) = (bounds.start().shown(), bounds.end().shown());
        self.notes.fault(span, format!("`{key}` is {found}, not between {least} and {most}"));
        None
    }

    /// Notes that `key` must be there, and why; unless the section itself is not there.
    pub(crate) fn require(&mut self, key: &str, why: impl Into<String>) {
        if self.table.is_some() && !self.has(key) {
            let message = format!("{} has no `{key}`", self.name);
            self.notes.missing(self.span.clone(), message, why.into());
        }
    }

    /// Notes that `key` must not be there, and why.
    pub(crate) fn forbid(&mut self, key: &str, why: impl Into<String>) {
        if self.has(key) {
            let span = self.span_of(key);
            self.notes.advise(span, format!("`{key}` has no meaning here"), why);
        }
    }

    /// Whether the value of `key` is a list.
    pub(crate) fn is_list(&self, key: &str) -> bool {
        let value = self.table.and_then(|table| table.get(key));
        value.is_some_and(|value| matches!(value.get_ref(), DeValue::Array(_)))
    }

    /// Whether the value of `key` is a list of nothing.
    pub(crate) fn is_empty_list(&self, key: &str) -> bool {
        let value = self.table.and_then(|table| table.get(key));
        value.is_some_and(|value| matches!(value.get_ref(), DeValue::Array(all) if all.is_empty()))
    }

    /// The table `key`, or an empty one.
    pub(crate) fn table(&mut self, key: &'static str, name: &str) -> Section<'_, 'i> {
        let raw = self.raw(key);
        let table = raw.and_then(|value| match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => expected("a table", value, self.notes),
        });
        Section::new(name, raw.map_or(self.span.clone(), Spanned::span), table, self.notes)
    }

    /// Reads each table of the list `key`.
    pub(crate) fn tables<T>(
        &mut self,
        key: &'static str,
        name: &str,
        mut read: impl FnMut(Section<'_, 'i>) -> T,
    ) -> Vec<T> {
        let Some(value) = self.raw(key) else { return Vec::new() };
        let DeValue::Array(array) = value.get_ref() else {
            return expected(&format!("a list of tables, each headed {name}"), value, self.notes)
                .unwrap_or_default();
        };
        let mut all = Vec::new();
        for item in array.iter() {
            match item.get_ref() {
                DeValue::Table(table) => {
                    all.push(read(Section::new(name, item.span(), Some(table), self.notes)));
                }
                _ => all.extend(expected(&format!("a table, headed {name}"), item, self.notes)),
            }
        }
        all
    }

    /// The keys nobody asked for, for sections that take any.
    pub(crate) fn others(&self) -> impl Iterator<Item = (&'a str, Range<usize>, &'a Spanned<DeValue<'i>>)> {
        let known = self.known.clone();
        let entries = self.table.into_iter().flat_map(|table| table.iter());
        entries
            .map(|(key, value)| (key.get_ref().as_ref(), key.span(), value))
            .filter(move |(key, ..)| !known.contains(key))
    }

    /// Notes every key nobody asked for.
    pub(crate) fn finish(self) {
        let others: Vec<_> = self.others().map(|(key, span, _)| (key.to_owned(), span)).collect();
        self.notes.unknown.extend(others.into_iter().map(|(key, span)| Unknown {
            key,
            section: self.name.clone(),
            known: self.known.clone(),
            span,
        }));
    }
}

/// How a value is written in messages.
pub(crate) trait Shown {
    fn shown(&self) -> String;
}

/// A name for one of several things: reads one of `choices`.
pub(crate) fn choice<T: Copy>(
    choices: &[(&'static str, T)],
    value: &Spanned<DeValue<'_>>,
    notes: &mut Notes,
) -> Option<T> {
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let DeValue::String(text) = value.get_ref() else {
        return expected(&format!("one of {}", listed(&names)), value, notes);
    };
    let found = choices.iter().find(|(name, _)| name == text).map(|(_, choice)| *choice);
    if found.is_none() {
        let message = format!("there is no `{}` here", text.escape_debug());
        notes.advise(value.span(), message, suggestion(text, &names));
    }
    found
}

/// An enumeration whose values are words in the file.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Every one, with its word.
            pub const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),*];

            /// The word for it.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }

        impl $crate::read::Value for $name {
            fn read(
                value: &toml::Spanned<toml::de::DeValue<'_>>,
                notes: &mut $crate::read::Notes,
            ) -> Option<Self> {
                $crate::read::choice(Self::ALL, value, notes)
            }
        }
    };
}
pub(crate) use words;
