//! Exec: the new image finds its sockets again. What the old one knows is written to a file
//! in memory whose number the environment carries; the lifeline stays open across the exec,
//! so that the daemon notices nothing.
//!
//! Descriptors that are closed on exec are simply gone in the new image, which lets go of
//! what they named. Where all are, the lifeline is closed as well, and the daemon told before that this is no death. A program that clears the environment stays in its family: the
//! variables that make it one are put back, and this library is loaded beside what it wants to be.

use crate::descriptor;
use crate::environment;
use crate::errno::{Answer, check, last};
use crate::family;
use crate::groups::early;
use crate::instead::Instead;
use crate::internal;
#[cfg(target_arch = "x86_64")]
use crate::raw_calls::carried;
use crate::real;
use crate::record;
use crate::shared;
use crate::socket::{self, Role, Socket};
use crate::table::{self, Entry};
use crate::{close, speaking};
use libc::c_char;
use silk_control::{CARRIED_VARIABLE, CARRIER_VARIABLE, FAMILY_VARIABLE, Request, SOCKET_VARIABLE};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, c_int};
use std::iter;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// The variable that carries the number.
const VARIABLE: &str = "SILK_EXEC";
/// First word of the file.
const MAGIC: u32 = 0x5117_0002;
/// Words of one socket: its descriptor, its place in the old image's table, its record.
const ENTRY: usize = 2 + record::WORDS;
/// Words of a group that a socket joined before anybody served it: the socket's place as above, the group.
const GROUP: usize = 1 + early::WORDS;
/// The most words a file may have.
const MOST: usize = 16 << 20;

/// It was said that a new image cannot have this library.
static HAS_WARNED: AtomicBool = AtomicBool::new(false);

impl Instead {
    /// Instead of this file, which is looked for in `PATH` if it is a `name`.
    ///
    /// # Safety
    /// It is null or a C string.
    pub unsafe fn of(file: *const c_char, name: bool) -> Option<Self> {
        if !cfg!(target_arch = "x86_64") || file.is_null() {
            return None;
        }
        // SAFETY: as the caller promises.
        let file = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(file) }.to_bytes()));
        #[cfg(target_arch = "x86_64")]
        return if name { carried::instead_of_name(file) } else { carried::instead_of(file) };
        #[cfg(not(target_arch = "x86_64"))]
        None
    }
}

/// The environment of the new image.
pub struct Luggage {
    /// Terminated by a null, as `execve` wants it.
    pointers: Vec<*const c_char>,
    /// What the pointers beyond the program's own point to.
    _owned: Vec<CString>,
    /// What is executed instead of the program.
    carrier: Option<CString>,
    file: Option<OwnedFd>,
    kept_open: Vec<c_int>,
    /// The daemon expects the lifeline to be closed.
    is_expected: bool,
}

impl Luggage {
    /// Packs everything for an exec with the environment `envp`, of what is executed `instead` or of what was asked for.
    ///
    /// # Safety
    /// `envp` is null or an array of C strings that ends with a null.
    pub unsafe fn pack(envp: *const *const c_char, instead: Option<Instead>) -> Self {
        let (file, kept_open) = if is_needed() { keep() } else { (None, Vec::new()) };
        if file.is_some() && !environment::has_library() && !HAS_WARNED.swap(true, Relaxed) {
            speaking::say(
                &"what is executed in a root that does not have this library cannot use the sockets that it inherits",
            );
        }
        let is_expected = file.is_none() && has_connections();
        if is_expected {
            family::tell(&Request::Executes { now: true });
        }
        // SAFETY: as the caller promises.
        unsafe { Self { is_expected, ..Self::with(envp, instead, file, kept_open) } }
    }

    /// For a child that is to have none of our sockets: the environment alone.
    ///
    /// # Safety
    /// As [`Luggage::pack`].
    pub unsafe fn light(envp: *const *const c_char, instead: Option<Instead>) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self::with(envp, instead, None, Vec::new()) }
    }

    /// # Safety
    /// As [`Luggage::pack`].
    unsafe fn with(
        envp: *const *const c_char,
        instead: Option<Instead>,
        file: Option<OwnedFd>,
        kept_open: Vec<c_int>,
    ) -> Self {
        // SAFETY: as the caller promises.
        let mut pointers = unsafe { variables(envp) };
        // SAFETY: the pointers are those of C strings.
        let preload = unsafe { beside_others(&mut pointers) };
        pointers.extend(preload.iter().map(|text| text.as_ptr()));
        // SAFETY: as above.
        let mut owned: Vec<CString> = unsafe { missing(&pointers) };
        if let Some(file) = &file {
            owned.extend(CString::new(format!("{VARIABLE}={}", file.as_raw_fd())));
        }
        let carrier = instead.map(|instead| {
            owned.push(instead.variable);
            instead.file
        });
        pointers.extend(owned.iter().map(|text| text.as_ptr()));
        pointers.push(std::ptr::null());
        owned.extend(preload);
        Self { pointers, _owned: owned, carrier, file, kept_open, is_expected: false }
    }

    /// The array.
    pub fn environment(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }

    /// What is to be executed instead of what was asked for.
    pub fn carrier(&self) -> Option<*const c_char> {
        self.carrier.as_ref().map(|file| file.as_ptr())
    }

    /// The exec has failed: everything is as before.
    pub fn unpack(self) {
        let errno = last();
        self.kept_open.iter().for_each(|fd| close_on_exec(*fd, true));
        self.file.into_iter().for_each(internal::close);
        if self.is_expected {
            family::tell(&Request::Executes { now: false });
        }
        crate::errno::set(errno);
    }
}

/// # Safety
/// As [`Luggage::pack`].
unsafe fn variables(envp: *const *const c_char) -> Vec<*const c_char> {
    let mut all = Vec::new();
    if envp.is_null() {
        return all;
    }
    for n in 0.. {
        // SAFETY: the array ends with a null, at which this stops.
        let one = unsafe { *envp.add(n) };
        if one.is_null() {
            break;
        }
        // SAFETY: each entry is a C string.
        if ![VARIABLE, CARRIED_VARIABLE].iter().any(|name| is_named(unsafe { CStr::from_ptr(one) }, name)) {
            all.push(one);
        }
    }
    all
}

fn is_named(variable: &CStr, name: &str) -> bool {
    variable.to_bytes().strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'='))
}

/// Another `LD_PRELOAD` than one that names this library is taken out, for one that names both. What is the program's comes first: so it
/// stands before this library as it would stand before the C library.
///
/// # Safety
/// The pointers must be those of C strings.
unsafe fn beside_others(there: &mut Vec<*const c_char>) -> Option<CString> {
    const PRELOAD: &str = "LD_PRELOAD";
    let library = environment::library()?.as_bytes();
    // SAFETY: as the caller promises.
    let text = |one: &*const c_char| unsafe { CStr::from_ptr(*one) };
    let at = there.iter().position(|one| is_named(text(one), PRELOAD))?;
    let others = text(there.get(at)?).to_bytes().get(PRELOAD.len() + 1..)?;
    if others.split(|byte| matches!(byte, b':' | b' ')).any(|one| one == library) {
        return None;
    }
    let between: &[u8] = if others.is_empty() { b"" } else { b":" };
    let both = CString::new([PRELOAD.as_bytes(), b"=", others, between, library].concat()).ok();
    there.remove(at);
    both
}

/// Variables that a process of a family has and this environment lacks.
///
/// # Safety
/// The pointers must be those of C strings.
unsafe fn missing(there: &[*const c_char]) -> Vec<CString> {
    let mut wanted = Vec::new();
    let mut want = |name: &str, value: &OsStr| {
        // SAFETY: as the caller promises.
        if !there.iter().any(|one| is_named(unsafe { CStr::from_ptr(*one) }, name)) {
            let text = [name.as_bytes(), b"=", value.as_bytes()].concat();
            wanted.extend(CString::new(text));
        }
    };
    if let Some(preload) = environment::preload() {
        want("LD_PRELOAD", preload);
        want(SOCKET_VARIABLE, environment::socket_path().as_os_str());
        environment::carrier().into_iter().for_each(|carrier| want(CARRIER_VARIABLE, carrier));
    }
    let token = family::joined().map(|family| family.token).or_else(environment::family);
    if let Some(token) = token {
        want(FAMILY_VARIABLE, OsStr::new(&token.to_string()));
    }
    wanted
}

/// Whether a new image would find this socket again.
pub fn is_carried(socket: &Socket) -> bool {
    socket.may_be_silks()
}

/// Whether a new image needs more than the environment.
pub fn is_needed() -> bool {
    has_sockets_to_keep() || is_locked_out()
}

/// Whether a connection of ours may end by the exec.
fn has_connections() -> bool {
    let is_stream = |socket: &Socket| socket.is_served() && socket.role() == Role::Stream;
    table::within(0, u32::MAX).any(|(_, entry)| matches!(entry, Entry::Socket(socket) if is_stream(socket)))
}

/// Whether any socket survives the exec; if none does, the hang-up of the lifeline is mostly all the
/// daemon needs to hear.
fn has_sockets_to_keep() -> bool {
    family::joined().is_some()
        && table::within(0, u32::MAX).any(|(fd, entry)| match entry {
            Entry::Socket(socket) if is_carried(socket) => {
                // SAFETY: asks about a number only.
                unsafe { real::fcntl(fd, libc::F_GETFD, 0) & libc::FD_CLOEXEC == 0 }
            }
            _ => false,
        })
}

/// Whether the new image could not join the family by itself, and is to be of it: the program has given up the rights to, or the way to
/// the daemon, and has had no socket. One that has had some does not share them with what it executes for others, as `sshd` does: the
/// family's memory has all that its sockets send and receive.
fn is_locked_out() -> bool {
    let Ok(path) = CString::new(environment::socket_path().into_os_string().into_vec()) else { return false };
    // SAFETY: a C string.
    let may = || unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK, libc::AT_EACCESS) } == 0;
    // A new user may have capabilities until the exec that open every door, and none afterwards.
    let joined = family::joined().is_some_and(|family| !family.is_dead() && !socket::has_served());
    joined && (environment::is_anothers() || !may())
}

fn close_on_exec(fd: c_int, on: bool) {
    // SAFETY: concerns a descriptor of ours only.
    unsafe { real::fcntl(fd, libc::F_SETFD, if on { libc::FD_CLOEXEC as usize } else { 0 }) };
}

/// Writes the file and lets the library's own descriptors survive.
fn keep() -> (Option<OwnedFd>, Vec<c_int>) {
    let Some(family) = family::joined() else { return (None, Vec::new()) };
    let own = [family::line_number(), family.arena.file().as_raw_fd()];
    let own: Vec<c_int> = own.into_iter().chain(family.events().iter().map(AsRawFd::as_raw_fd)).collect();
    let words = describe(family.token, &own);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let Some(file) = written(&bytes) else { return (None, Vec::new()) };
    own.iter().for_each(|fd| close_on_exec(*fd, false));
    close_on_exec(file.as_raw_fd(), false);
    let mut kept = own;
    kept.push(file.as_raw_fd());
    (Some(file), kept)
}

fn written(bytes: &[u8]) -> Option<OwnedFd> {
    // SAFETY: a new descriptor of ours.
    let file = unsafe {
        let fd = libc::memfd_create(c"silk-exec".as_ptr(), libc::MFD_CLOEXEC);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
    }?;
    let file = internal::keep(file);
    // SAFETY: the bytes are those of the slice.
    let done = unsafe { real::pwrite(file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
    if usize::try_from(done) != Ok(bytes.len()) {
        internal::close(file);
        return None;
    }
    Some(file)
}

fn describe(token: u64, own: &[c_int]) -> Vec<u32> {
    let mut words = vec![MAGIC, family::process(), token as u32, (token >> 32) as u32, own.len() as u32];
    words.extend(own.iter().map(|fd| fd.cast_unsigned()));
    let carried = table::within(0, u32::MAX).filter_map(|(fd, entry)| match entry {
        Entry::Socket(socket) if is_carried(socket) => Some((fd, socket)),
        _ => None,
    });
    let carried: Vec<_> = carried.collect();
    words.push(carried.len() as u32);
    for (fd, socket) in &carried {
        words.extend([fd.cast_unsigned(), socket.index()]);
        words.extend(record::describe(socket));
    }
    // Behind the sockets, once of each, however many descriptors name it.
    let sockets: BTreeMap<_, _> = carried.into_iter().map(|(_, socket)| (socket.index(), socket)).collect();
    for (index, socket) in sockets {
        socket.early.words().for_each(|group| words.extend(iter::once(index).chain(group)));
    }
    words
}

/// In a new image: takes over what the old one left, if it left anything.
pub fn resume() {
    let Ok(value) = std::env::var(VARIABLE) else { return };
    // SAFETY: nobody else runs yet: this is the library's constructor.
    unsafe { std::env::remove_var(VARIABLE) };
    let Ok(number) = value.parse::<c_int>() else { return };
    let Some(words) = read(number) else { return };
    if restore(&words).is_none() {
        speaking::say(&"the sockets of before the exec could not be taken over");
    }
}

fn read(number: c_int) -> Option<Vec<u32>> {
    // SAFETY: only a number so far; it is ours if it is a file of ours.
    let length = unsafe { libc::lseek(number, 0, libc::SEEK_END) };
    let length = usize::try_from(length).ok().filter(|length| *length / 4 <= MOST)?;
    let mut bytes = vec![0u8; length];
    // SAFETY: the buffer is as long as said. Then the file is done with.
    let got = unsafe {
        let got = real::pread(number, bytes.as_mut_ptr().cast(), length, 0);
        real::close(number);
        got
    };
    if usize::try_from(got) != Ok(length) {
        return None;
    }
    Some(bytes.chunks_exact(4).filter_map(|word| Some(u32::from_le_bytes(word.try_into().ok()?))).collect())
}

fn restore(words: &[u32]) -> Option<()> {
    let (head, rest) = words.split_at_checked(5)?;
    let &[MAGIC, process, low, high, count] = head else { return None };
    let (own, rest) = rest.split_at_checked(count as usize)?;
    let mut own = own.iter().map(|fd| adopt(fd.cast_signed()));
    let (line, arena) = (own.next()??, own.next()??);
    let events = own.collect::<Option<Vec<_>>>()?;
    family::resume(line, arena, events, u64::from(high) << 32 | u64::from(low), process).ok()?;
    family::renew();
    let (carried, rest) = rest.split_first()?;
    let (records, groups) = rest.split_at_checked(*carried as usize * ENTRY)?;
    let mut known = BTreeMap::new();
    for entry in records.chunks_exact(ENTRY) {
        restore_one(entry, &mut known)?;
    }
    for [index, group @ ..] in groups.as_chunks::<GROUP>().0 {
        known.get(index).into_iter().for_each(|socket| socket.early.take_over(group));
    }
    // What only closed-on-exec descriptors named.
    known.into_values().filter(|socket| socket.drop_descriptor()).for_each(close::let_go);
    Some(())
}

/// One of the library's own descriptors, in the new image.
fn adopt(fd: c_int) -> Option<OwnedFd> {
    // SAFETY: asks about a number; if it is open it is ours, as the old image says.
    unsafe {
        check(real::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC as usize)).ok()?;
        table::put(fd, Entry::Internal);
        Some(OwnedFd::from_raw_fd(fd))
    }
}

fn restore_one(entry: &[u32], known: &mut BTreeMap<u32, &'static Socket>) -> Option<()> {
    let &[fd, index, ref words @ ..] = entry else { return None };
    let socket = match known.get(&index) {
        Some(socket) => *socket,
        None => {
            let socket = record::restore(words)?;
            if socket.slot().is_ok_and(|slot| slot.holders.load(Relaxed) > 1) {
                shared::resume(socket);
            }
            known.insert(index, socket);
            socket
        }
    };
    let fd = fd.cast_signed();
    // SAFETY: asks about a number only.
    let open: Answer<c_int> = check(unsafe { real::fcntl(fd, libc::F_GETFD, 0) });
    if open.is_ok() && descriptor::name(fd, socket) {
        socket.add_descriptor();
    }
    Some(())
}
