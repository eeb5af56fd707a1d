//! `[memory]`: what a program's streams and the daemon as a whole may use.

use crate::read::Section;
use crate::value::ByteSize;

/// `[memory]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The most for the rings of one program and its children; only what is touched costs memory.
    pub arena: ByteSize,
    /// The receive ring of a connection; a power of two.
    pub receive_ring: ByteSize,
    /// The send ring of a connection; a power of two.
    pub send_ring: ByteSize,
    /// To what either ring of a connection grows that it holds back; no larger than they are at first: they do not.
    pub largest_ring: ByteSize,
    /// What the arenas of all programs together use; `None`: half of the machine's memory.
    pub total: Option<ByteSize>,
    /// Files that are kept in memory to be sent by reference, of all programs together; 0: none.
    pub files: ByteSize,
}

impl Memory {
    pub(crate) fn read(mut section: Section<'_, '_>) -> Self {
        let memory = Self {
            arena: section.within(
                "arena",
                ByteSize::mib(8 << 10),
                ByteSize::mib(4)..=ByteSize::mib(64 << 10),
            ),
            receive_ring: read_ring(&mut section, "receive_ring", ByteSize::kib(128)),
            send_ring: read_ring(&mut section, "send_ring", ByteSize::kib(512)),
            largest_ring: read_ring(&mut section, "largest_ring", ByteSize::mib(4)),
            total: section.between("total", ByteSize::mib(8)..=ByteSize::mib(1 << 20)),
            files: section.within("files", ByteSize::mib(64), ByteSize::bytes(0)..=ByteSize::mib(64 << 10)),
        };
        memory.check(&mut section);
        section.finish();
        memory
    }

    fn check(&self, section: &mut Section<'_, '_>) {
        let one = self.receive_ring.get() + self.send_ring.get();
        if one > self.arena.get() {
            let message = format!("one connection's rings can need {one} bytes, more than an arena has");
            section.notes.fault(section.span_of("arena"), message);
        }
    }
}

fn read_ring(section: &mut Section<'_, '_>, key: &'static str, default: ByteSize) -> ByteSize {
    let ring = section.within(key, default, ByteSize::kib(4)..=ByteSize::mib(4));
    if !ring.get().is_power_of_two() {
        let above = ByteSize::bytes(ring.get().next_power_of_two());
        let below = ByteSize::bytes(above.get() / 2);
        let span = section.span_of(key);
        section.notes.advise(
            span,
            format!("{ring} is not a power of two"),
            format!("the nearest are `\"{below}\"` and `\"{above}\"`"),
        );
    }
    ring
}
