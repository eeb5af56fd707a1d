//! `[control]`: who may command the daemon.

use crate::read::{Notes, Section, Value, expected};
use std::path::PathBuf;
use toml::Spanned;
use toml::de::DeValue;

/// `[control]`: the socket over which programs join and commands come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// Where it is.
    pub socket: PathBuf,
    /// Who may open it, as the permission bits of the file.
    pub mode: Mode,
    /// The group that owns it; `None` for the daemon's own.
    pub group: Option<String>,
}

impl Control {
    pub(crate) fn read(mut section: Section<'_, '_>) -> Self {
        let control = Self {
            socket: section.or("socket", PathBuf::from("/run/silk/control.sock")),
            mode: section.or("mode", Mode(0o660)),
            group: section.read("group"),
        };
        let length = control.socket.as_os_str().len();
        if length > 107 {
            let span = section.span_of("socket");
            section.notes.fault(span, "the path of a Unix socket has at most 107 bytes");
        }
        section.finish();
        control
    }
}

/// Permission bits: `"0660"` or `0o660`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(u32);

impl Mode {
    /// The bits, at most `0o777`.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl Value for Mode {
    fn read(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
        let octal = |digits: &str| u32::from_str_radix(digits, 8).ok().filter(|&bits| bits <= 0o777);
        let mode = match value.get_ref() {
            DeValue::String(text) if text.bytes().all(|b| b.is_ascii_digit()) => octal(text),
            DeValue::Integer(integer) if integer.radix() == 8 => octal(integer.as_str()),
            DeValue::String(_) | DeValue::Integer(_) => None,
            _ => return expected("permission bits such as `\"0660\"`", value, notes),
        };
        if mode.is_none() {
            notes.advise(value.span(), "these are no permission bits", "write them in octal: `\"0660\"`");
        }
        mode.map(Self)
    }
}
