//! What the loader knows of the program: its text, its notes, and the names that it has in common with libraries.

use libc::{Elf64_Phdr, PF_X, PT_DYNAMIC, PT_LOAD, PT_NOTE, dl_phdr_info};
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::slice;

/// `DT_STRTAB` and `DT_STRSZ` of `<elf.h>`.
const STRINGS: u64 = 5;
const STRINGS_SIZE: u64 = 10;
/// The note that the Go linker leaves (`NT_GO_BUILD_ID`): its owner.
const GO: [u8; 4] = *b"Go\0\0";

/// The program that this library was loaded into.
pub struct Program {
    base: usize,
    segments: &'static [Elf64_Phdr],
}

impl Program {
    /// It is the first that the loader tells of.
    pub fn this() -> Option<Self> {
        let mut found = None;
        // SAFETY: the function below is called with what it expects, and only while this call lasts.
        unsafe { libc::dl_iterate_phdr(Some(take_first), (&raw mut found).cast()) };
        found
    }

    fn of_kind(&self, kind: u32) -> impl Iterator<Item = (&Elf64_Phdr, &'static [u8])> {
        self.segments.iter().filter(move |segment| segment.p_type == kind).map(|segment| {
            let start = std::ptr::with_exposed_provenance(self.base + segment.p_vaddr as usize);
            // SAFETY: the loader has mapped the program as its headers say, for as long as it runs.
            (segment, unsafe { slice::from_raw_parts(start, segment.p_filesz as usize) })
        })
    }

    /// The addresses of its executable segments.
    pub fn texts(&self) -> impl Iterator<Item = Range<usize>> {
        let is_text = |segment: &&Elf64_Phdr| segment.p_type == PT_LOAD && segment.p_flags & PF_X != 0;
        self.segments.iter().filter(is_text).map(|text| {
            let start = self.base + text.p_vaddr as usize;
            start..start + text.p_filesz as usize
        })
    }

    /// Whether the Go linker made it.
    pub fn is_go(&self) -> bool {
        self.of_kind(PT_NOTE).any(|(_, notes)| is_of_go(notes))
    }

    /// Whether this is among the names that it has in common with libraries, or the end of one: linkers let them share their
    /// ends.
    pub fn names(&self, name: &str) -> bool {
        let names = self.of_kind(PT_DYNAMIC).next().and_then(|(_, dynamic)| self.dynamic_names(dynamic));
        let end = [name.as_bytes(), b"\0"].concat();
        names.is_some_and(|names| memchr::memmem::find(names, &end).is_some())
    }

    fn dynamic_names(&self, dynamic: &[u8]) -> Option<&'static [u8]> {
        let entry = |wanted| {
            let mut words =
                dynamic.chunks_exact(8).filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)));
            while let (Some(tag), Some(value)) = (words.next(), words.next()) {
                if tag == wanted {
                    return usize::try_from(value).ok();
                }
            }
            None
        };
        let (at, size) = (entry(STRINGS)?, entry(STRINGS_SIZE)?);
        // Some loaders have made an address of it.
        let at = if at < self.base { self.base + at } else { at };
        let end = at.checked_add(size)?;
        let inside = |segment: &Elf64_Phdr| {
            let start = self.base + segment.p_vaddr as usize;
            start <= at && end <= start + segment.p_filesz as usize
        };
        self.of_kind(PT_LOAD).find(|(segment, _)| inside(segment))?;
        // SAFETY: it lies within a segment that is mapped for as long as the program runs.
        Some(unsafe { slice::from_raw_parts(std::ptr::with_exposed_provenance(at), size) })
    }
}

unsafe extern "C" fn take_first(info: *mut dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
    // SAFETY: the loader gives what is documented, for an object that stays; `found` is that of the caller above.
    unsafe {
        let segments = slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum.into());
        *found.cast::<Option<Program>>() = Some(Program { base: (*info).dlpi_addr as usize, segments });
    }
    1
}

/// Whether one of these notes is the Go linker's.
pub fn is_of_go(notes: &[u8]) -> bool {
    has_note_of(notes, &GO)
}

/// Whether one of these notes has this owner.
fn has_note_of(mut notes: &[u8], owner: &[u8]) -> bool {
    let word = |bytes: &[u8], n: usize| {
        let word = bytes.get(n * 4..n * 4 + 4)?.try_into().ok()?;
        Some(u32::from_ne_bytes(word) as usize)
    };
    while let (Some(name), Some(content)) = (word(notes, 0), word(notes, 1)) {
        if notes.get(12..).is_some_and(|rest| name == owner.len() && rest.starts_with(owner)) {
            return true;
        }
        // Both are of 32 bits.
        let length = 12 + name.next_multiple_of(4) + content.next_multiple_of(4);
        notes = notes.get(length..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(owner: &[u8], content: &[u8]) -> Vec<u8> {
        let mut note = vec![];
        for word in [owner.len(), content.len(), 4] {
            note.extend((word as u32).to_ne_bytes());
        }
        note.extend(owner);
        note.extend(content);
        note
    }

    #[test]
    fn a_note_is_found_behind_others() {
        let notes = [note(b"GNU\0", &[1; 20]), note(&GO, &[2; 8])].concat();
        assert!(has_note_of(&notes, &GO) && has_note_of(&notes, b"GNU\0"));
        assert!(!has_note_of(&notes[..32], &GO) && !has_note_of(&notes, b"X\0\0\0"));
        assert!((0..notes.len()).all(|end| !has_note_of(&notes[..end.min(40)], &GO)));
        assert!(!has_note_of(&[0xff; 64], &GO));
    }

    #[test]
    fn this_program_is_rusts_with_text_and_names() {
        let this = Program::this().expect("there is one");
        assert!(!this.is_go() && this.texts().any(|text| text.len() > 100_000));
        assert!(this.names("__errno_location"), "it uses the C library");
        assert!(!this.names("a name of nothing"));
    }
}
