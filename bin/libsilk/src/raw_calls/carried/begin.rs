//! How a carried program begins: with a stack of its own on which lies what the kernel tells a new program (its arguments, its
//! environment, and the auxiliary vector of getauxval(3)), and without thread-local memory, which it makes itself.

use super::image::Image;
use super::record::{Record, Registers};
use super::{own_file, thread};
use crate::environment;
use std::ffi::{c_char, c_void};
use std::fs;
use std::ptr::null_mut;

/// Bytes of its stack, of which it touches what it uses.
const STACK: usize = 8 << 20;
/// What the kernel calls a program is shorter.
const COMM: usize = 16;
/// In the auxiliary vector: where the headers of the program's segments are, how many, where the loader is, where the program
/// begins, and its file's name.
const HEADERS: u64 = libc::AT_PHDR;
const COUNT: u64 = libc::AT_PHNUM;
const LOADER: u64 = libc::AT_BASE;
const ENTRY: u64 = libc::AT_ENTRY;
const FILE: u64 = libc::AT_EXECFN;

/// Begins the program, and never comes back.
///
/// # Safety
/// Its image is mapped, and its system calls lead here. `argv` is an array of C strings that ends with a null; nobody else runs.
pub unsafe fn begin(image: &Image, argv: *const *const c_char) -> &'static str {
    let Ok(vector) = fs::read("/proc/self/auxv") else { return "cannot begin without /proc" };
    // SAFETY: as the caller promises; the environment is the C library's.
    let words = unsafe { told(&strings(argv), &strings(environment::all()), &about(image, &vector)) };
    let Some(rsp) = stack_with(&words) else { return "cannot begin: there is no memory for its stack" };
    name();
    thread::prepare();
    let record = Box::leak(Box::new(Record::new(Registers::default().on(rsp), 0)));
    // SAFETY: nothing that the program handles can arrive yet; it finds on its stack what the kernel would have put there.
    unsafe { record.become_it(image.entry) };
    "has come back to where it began"
}

/// The addresses of an array of C strings.
///
/// # Safety
/// It ends with a null.
unsafe fn strings(array: *const *const c_char) -> Vec<usize> {
    // SAFETY: stops at the null.
    let all = (0..).map(|n| unsafe { *array.add(n) });
    all.take_while(|one| !one.is_null()).map(|one| one.expose_provenance()).collect()
}

/// The auxiliary vector, as it is of the program: what is `there` is of the one that carries it.
fn about(image: &Image, there: &[u8]) -> Vec<usize> {
    let words = there.chunks_exact(8).filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)));
    let words: Vec<u64> = words.collect();
    let mut all = Vec::new();
    for pair in words.chunks_exact(2) {
        let &[kind, value] = pair else { break };
        let value = match kind {
            HEADERS => image.headers.0,
            COUNT => image.headers.1,
            LOADER => 0,
            ENTRY => image.entry,
            FILE => own_file::name(),
            libc::AT_NULL => break,
            _ => value as usize,
        };
        all.extend([kind as usize, value]);
    }
    all.extend([libc::AT_NULL as usize, 0]);
    all
}

/// All that lies on the stack.
fn told(arguments: &[usize], environment: &[usize], vector: &[usize]) -> Vec<usize> {
    [&[arguments.len()], arguments, &[0], environment, &[0], vector].concat()
}

/// The first thread of a program that was loaded runs on the stack that it began with; its calls are answered on the one
/// with this upper end.
pub fn goes_on(top: usize) {
    thread::prepare();
    let record = Box::leak(Box::new(Record::new(Registers::default(), 0)));
    // SAFETY: both stay.
    unsafe { record.is_it(top) };
}

/// The upper end of a stack.
pub fn stack() -> Option<usize> {
    stack_with(&[])
}

/// A stack with these words at its upper end: where its pointer is then.
fn stack_with(words: &[usize]) -> Option<usize> {
    let size = size_of_val(words).next_multiple_of(16);
    let length = STACK + size;
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK,
    );
    // SAFETY: new memory, larger than the words, which go to its end.
    unsafe {
        let memory: *mut c_void = libc::mmap(null_mut(), length, protection, flags, -1, 0);
        if memory == libc::MAP_FAILED {
            return None;
        }
        let start = memory.cast::<u8>().add((length - size) & !15);
        start.cast::<usize>().copy_from_nonoverlapping(words.as_ptr(), words.len());
        Some(start.expose_provenance())
    }
}

/// Gives the process the program's name, as the kernel would have.
fn name() {
    let name = own_file::whole().file_name().unwrap_or_default().as_encoded_bytes();
    let mut comm = [0u8; COMM];
    comm.iter_mut().take(COMM - 1).zip(name).for_each(|(to, from)| *to = *from);
    // SAFETY: a C string of that size.
    unsafe { libc::prctl(libc::PR_SET_NAME, comm.as_ptr()) };
}
