//! Files in a stream, from a program that behaves and from one that does not.

use super::tests::end_with;
use super::*;
use proptest::prelude::*;
use silk_stream::{Leased, Pool, Reference, Sizes};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Bytes of the ring, and of the file.
const RING: u32 = 4096;
/// To what it grows.
const LARGEST: u32 = 64 << 10;
const FILE: usize = 10_000;
/// Where the file is, and which use of the place it is.
const PLACE: (u32, u32) = (3, 7);

fn content() -> Vec<u8> {
    (0..FILE).map(|n| (n ^ n >> 8) as u8).collect()
}

/// A program that writes, and the daemon's end.
struct Both {
    end: SocketEnd,
    pool: Pool,
    files: Files,
    write: u32,
}

impl Both {
    fn new() -> Self {
        Self::at(0)
    }

    /// With a stream that has come so far.
    fn at(index: u32) -> Self {
        let mut pool = Pool::new(Arena::create(Sizes { rings: 16 << 20, domains: 1 }).unwrap());
        let mut end = end_with(&mut pool, [4096, RING]);
        end.slot().tx_write.store(index, SeqCst);
        end.from_program.read = index;
        end.from_program.write = index;
        end.from_program.sent = index;
        let mut files = Files::default();
        files.set(PLACE.0, Some((PLACE.1, Arc::new(leased()))));
        Self { end, pool, files, write: index }
    }

    fn copy(&mut self, bytes: &[u8]) {
        self.end.from_program.bytes().write(self.write, bytes);
        self.wrote(bytes.len() as u32);
    }

    fn refer(&mut self, offset: u64, len: u32) {
        self.refer_to(Reference { before: 0, len, file: PLACE.0, generation: PLACE.1, offset });
    }

    fn refer_to(&mut self, reference: Reference) {
        let before = self.end.slot().tx_reference.swap(!self.write, SeqCst);
        let bytes = Reference { before, ..reference }.to_bytes();
        self.end.from_program.bytes().write(self.write, &bytes);
        self.wrote(reference.len);
    }

    fn wrote(&mut self, len: u32) {
        self.write = self.write.wrapping_add(len);
        self.end.slot().tx_write.store(self.write, SeqCst);
    }

    fn look(&mut self) -> bool {
        self.end.look(&self.files)
    }

    /// The program waits to write, and a ring of so many bytes would be of use.
    fn enlarge(&mut self, wanted: usize) {
        self.end.slot().waiting.store(waiting::WRITE, SeqCst);
        self.end.split().1.want(wanted);
        self.end.enlarge(&mut self.pool, LARGEST);
    }

    fn peek(&mut self, offset: usize, len: usize) -> Vec<u8> {
        self.end.split().1.peek(offset, len).concat()
    }
}

fn leased() -> Leased {
    let folder = std::env::temp_dir();
    let path =
        folder.join(format!("silk-references-{}-{:?}", std::process::id(), std::thread::current().id()));
    File::create(&path).unwrap().write_all(&content()).unwrap();
    let patience = Instant::now() + Duration::from_secs(20);
    let leased = loop {
        match Leased::take(File::open(&path).unwrap().as_fd(), 1 << 20) {
            // A child that another test starts has the file open for writing, too, until it executes its program.
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < patience => {}
            leased => break leased,
        }
    };
    fs::remove_file(path).unwrap();
    leased.unwrap()
}

#[test]
fn bytes_of_a_file_stand_between_those_of_the_ring() {
    let mut both = Both::new();
    both.copy(b"head");
    both.refer(100, 1000);
    both.copy(b"tail");
    assert!(both.look());
    assert!(!both.look());
    let whole = [b"head", &content()[100..1100], b"tail"].concat();
    assert_eq!(both.peek(0, 2000), whole);
    assert_eq!(both.peek(2, 4), whole[2..6]);
    assert_eq!(both.peek(1000, 8), whole[1000..1008]);
    both.end.split().1.consume(500);
    assert_eq!(both.peek(0, 2000), whole[500..]);
    both.end.split().1.consume(504);
    assert_eq!(
        (both.peek(0, 2000), both.end.from_program.references.as_ref().unwrap().are_there()),
        (b"tail".to_vec(), false)
    );
}

#[test]
fn a_file_that_is_about_to_change_is_copied_and_heard_of_later() {
    let mut both = Both::new();
    both.copy(b"head");
    both.refer(5, 2000);
    let (files, end) = (&both.files, &mut both.end);
    end.keep_copy_of(Some(PLACE.0 + 1), files);
    assert!(end.from_program.references.as_ref().unwrap().are_there());
    end.keep_copy_of(Some(PLACE.0), files);
    assert!(!end.from_program.references.as_ref().unwrap().are_there());
    both.files.set(PLACE.0, None);
    assert!(both.look(), "nobody has rung for it yet");
    assert!(!both.look());
    assert_eq!(both.peek(0, 3000), [b"head", &content()[5..2005]].concat());
}

#[test]
fn what_is_not_said_to_be_written_yet_is_taken_when_it_is() {
    let mut both = Both::new();
    both.copy(b"head");
    both.refer(0, 100);
    both.end.slot().tx_write.store(4, SeqCst);
    assert!(both.look());
    assert!(!both.end.is_nonsense());
    both.end.slot().tx_write.store(104, SeqCst);
    assert!(both.look());
    assert_eq!(both.peek(4, 100), content()[..100]);
}

/// Several mapped files in one `writev`, behind bytes that nobody has looked at.
#[test]
fn several_that_are_not_said_to_be_written_yet_are_taken_when_they_are() {
    let mut both = Both::new();
    both.copy(b"head");
    both.refer(0, 100);
    both.copy(b"between");
    both.refer(200, 100);
    both.refer(400, 100);
    both.end.slot().tx_write.store(4, SeqCst);
    assert!(both.look());
    assert!(!both.end.is_nonsense());
    assert_eq!(both.peek(0, 1000), b"head");
    both.end.slot().tx_write.store(both.write, SeqCst);
    assert!(both.look());
    let file = content();
    let whole = [b"head", &file[..100], b"between", &file[200..300], &file[400..500]].concat();
    assert_eq!(both.peek(0, 1000), whole);
}

#[test]
fn nothing_of_what_is_nonsense_is_sent() {
    let mut both = Both::new();
    both.copy(b"head");
    both.look();
    both.refer_to(Reference { before: 0, len: 100, file: PLACE.0 + 1, generation: PLACE.1, offset: 0 });
    both.look();
    assert!(both.end.is_nonsense());
    assert_eq!(both.peek(0, 1000), b"head");
}

#[test]
fn who_refers_to_what_there_is_not_is_told_apart() {
    let good = Reference { before: 0, len: 100, file: PLACE.0, generation: PLACE.1, offset: 0 };
    for bad in [
        Reference { file: PLACE.0 + 1, ..good },
        Reference { file: u32::MAX, ..good },
        Reference { generation: PLACE.1 + 1, ..good },
        Reference { offset: FILE as u64 - 99, ..good },
        Reference { offset: u64::MAX, ..good },
        Reference { len: Reference::SIZE as u32 - 1, ..good },
    ] {
        let mut both = Both::new();
        both.refer_to(bad);
        both.look();
        assert!(both.end.is_nonsense(), "{bad:?}");
    }
    let mut both = Both::new();
    both.refer_to(Reference { len: 100, ..good });
    both.end.slot().tx_write.store(99, SeqCst);
    both.look();
    assert!(both.end.is_nonsense(), "it is longer than what was written");
}

#[test]
fn references_that_go_round_in_a_circle_end() {
    let mut both = Both::new();
    both.refer(0, 100);
    both.refer(0, 100);
    // The first names the second as the one before it.
    let circle = Reference { before: !100, len: 100, file: PLACE.0, generation: PLACE.1, offset: 0 };
    both.end.from_program.bytes().write(0, &circle.to_bytes());
    both.look();
    assert!(both.end.is_nonsense());
}

#[derive(Clone, Debug)]
enum Step {
    Copy(Vec<u8>),
    Refer(u64, u32),
    Look,
    Consume(usize),
    Copied,
    Enlarge(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 1..600).prop_map(Step::Copy),
        (0..FILE as u64 - 1500, 24..1500u32).prop_map(|(offset, len)| Step::Refer(offset, len)),
        Just(Step::Look),
        (1..2000usize).prop_map(Step::Consume),
        Just(Step::Copied),
        (1..30_000usize).prop_map(Step::Enlarge),
    ]
}

/// It would be followed for ever.
#[test]
fn a_reference_that_names_itself_as_the_one_before_is_nonsense() {
    let mut both = Both::new();
    both.copy(&[1; 50]);
    // Behind what is said to be written, as that of a program that is in the middle of it.
    let (at, newest) = (100, !100);
    let itself = Reference { before: newest, len: 100, file: PLACE.0, generation: PLACE.1, offset: 0 };
    both.end.from_program.bytes().write(at, &itself.to_bytes());
    both.end.slot().tx_reference.store(newest, SeqCst);
    both.look();
    assert!(both.end.is_nonsense());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is copied, referred to, looked at, acknowledged and saved, and whenever the ring grows, the stream is what was
    /// written.
    #[test]
    fn a_stream_with_files_is_a_byte_queue(start in any::<u32>(), steps in prop::collection::vec(step(), 1..60)) {
        let mut both = Both::at(start);
        let (mut seen, mut fresh) = (Vec::new(), Vec::new());
        for step in steps {
            let ring = both.end.from_program.side.size as usize;
            let room = ring - seen.len() - fresh.len();
            match step {
                Step::Copy(bytes) if bytes.len() <= room => {
                    both.copy(&bytes);
                    fresh.extend(bytes);
                }
                // What the library does with the two indices that cannot be told.
                Step::Refer(offset, len) if len as usize <= room && both.write != u32::MAX && !both.write != both.end.slot().tx_reference.load(SeqCst) => {
                    both.refer(offset, len);
                    fresh.extend(&content()[offset as usize..][..len as usize]);
                }
                Step::Copy(_) | Step::Refer(..) => {}
                Step::Look => {
                    prop_assert_eq!(both.look(), !fresh.is_empty());
                    seen.append(&mut fresh);
                }
                Step::Consume(n) => {
                    let n = n.min(seen.len());
                    both.end.split().1.consume(n);
                    seen.drain(..n);
                }
                Step::Copied => {
                    let rung = !fresh.is_empty();
                    both.end.keep_copy_of(None, &both.files);
                    prop_assert_eq!(both.look(), rung);
                    seen.append(&mut fresh);
                }
                Step::Enlarge(wanted) => {
                    both.enlarge(wanted);
                    let grows = fresh.is_empty() && wanted > ring && ring < LARGEST as usize;
                    prop_assert_eq!(both.end.from_program.side.size as usize > ring, grows);
                }
            }
            prop_assert!(!both.end.is_nonsense());
            prop_assert_eq!(both.end.split().1.len(), seen.len());
            prop_assert_eq!(both.peek(0, LARGEST as usize), &seen[..]);
            let half = seen.len() / 2;
            prop_assert_eq!(both.peek(half, 100), &seen[half..seen.len().min(half + 100)]);
        }
    }

    /// Whatever a program leaves in its ring and its slot, the daemon ends soon and reads nothing but
    /// its ring and its files.
    #[test]
    fn no_program_can_confuse_the_daemon(
        words in prop::collection::vec(prop_oneof![any::<u32>(), 0..5000u32, Just(PLACE.0), Just(PLACE.1), any::<u16>().prop_map(|n| !u32::from(n))], 1024),
        claims in prop::collection::vec((any::<u32>(), prop_oneof![any::<u32>(), (0..5000u32).prop_map(|n| !n)]), 1..10),
    ) {
        let mut both = Both::new();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        both.end.from_program.bytes().write(0, &bytes);
        for (write, newest) in claims {
            both.end.slot().tx_write.store(write, SeqCst);
            both.end.slot().tx_reference.store(newest, SeqCst);
            both.look();
            let len = both.end.split().1.len();
            prop_assert!(len <= LARGEST as usize);
            prop_assert!(both.peek(0, len).len() <= len);
            both.end.split().1.consume(len / 3);
            // Somebody else's word for where its ring is.
            both.end.slot().tx_first.store(newest, SeqCst);
            both.end.slot().tx_place.store(u64::from(write) << 20, SeqCst);
            both.enlarge(9000);
        }
    }
}
