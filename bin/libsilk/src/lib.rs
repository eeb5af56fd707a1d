//! The preload library: the sockets of an unmodified program on paths (SILK §3.1).
//!
//! It stands before the C library's socket calls. A call on a descriptor that is not silk's
//! costs one look into a table more; a call on one that is moves data through the arena that
//! the daemon shares with the program (`silk-stream`), without a system call unless one side
//! sleeps. Everything else (names, listening, forks) is asked of the daemon over the
//! process's lifeline (`silk-control`).
//!
//! It must never take the program down: it does not panic, waits for nobody who may be dead,
//! keeps its own descriptors out of the program's way, and leaves to Linux what it cannot
//! serve.
//!
//! | | files |
//! |---|---|
//! | what is known | `numbers` descriptor → a word, `table` → `socket`, `epoll_set`; its `slot` in the arena, `state`; `settings`; `inode`; `family`, `environment` |
//! | moving data | `stream_io`, `urgent`, `datagram_io`, `cork`, `sendfile` (`direct` of some files), `splice`; `transfer` picks; `vectors` are the program's buffers; `arrived`, `arrival` |
//! | waiting | `wait` on one socket, `accept` from a `listener`, `poll`, `select`, `epoll*`; `readiness` says what holds; `bell`, `thread`, `clock` |
//! | standard streams | `stdio` of sockets, `succession`, `reopen`; `speaking` to people |
//! | naming | `naming`, `connect`, `named_path`: to a `server`; `progress`, `spares`, `disconnect`, `options`, `groups`, `close`, `descriptor` |
//! | processes | `process` fork, `exec`, `spawn`, `passing` to another (`SCM_RIGHTS`); `record` is a socket in words, `shared` what several hold |
//! | memory | `heap` |
//! | the edge | `exports`: the C symbols; `real`: what lies behind them; `raw_calls` of programs that use neither |
//!
//! What is remembered lies beneath what is done with it. But for `raw_calls`, which lead back to the C symbols, no file needs one that
//! needs it, by whatever way.
//!
//! Limits: the C library's own calls do not pass here; a pointer that Linux would answer with `EFAULT` faults.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod accept;
mod address;
mod address_space;
mod arrival;
mod arrived;
mod bell;
mod clock;
mod close;
mod connect;
mod control;
mod cork;
mod corked;
mod cursor;
mod datagram_io;
mod descriptor;
mod direct;
mod disconnect;
mod ending;
mod environment;
mod epoll;
mod epoll_apart;
mod epoll_fired;
mod epoll_member;
mod epoll_place;
mod epoll_set;
mod epoll_wait;
mod epoll_watch;
mod errno;
mod error_queue;
mod exec;
mod exports;
mod family;
mod files;
mod gate;
mod given_up;
mod groups;
mod heap;
mod inode;
mod instead;
mod internal;
mod jump;
mod lanes;
mod last_thread;
mod listener;
mod lock;
mod lost;
mod mappings;
mod named_path;
mod nameless;
mod naming;
mod naming_turn;
mod numbers;
mod option_names;
mod options;
mod own_turn;
mod passing;
mod poll;
mod process;
mod progress;
#[cfg(target_arch = "x86_64")]
mod raw_calls;
mod readiness;
mod real;
mod record;
mod reopen;
mod select;
mod sendfile;
mod server;
mod settings;
mod shared;
mod shutdown;
mod signals;
mod slot;
mod socket;
mod spares;
mod spawn;
mod spawn_actions;
mod speaking;
mod splice;
mod state;
mod stdio;
mod stream_io;
mod succession;
mod table;
mod tcp_info;
mod thread;
mod too_large;
mod transfer;
mod unserved;
mod urgent;
mod vectors;
mod wait;
mod ways;
mod wishes;
mod writers_turn;

use libc::{c_char, c_int, c_void};

/// Not the program's, which a signal's handler may have interrupted.
#[global_allocator]
static HEAP: heap::Heap = heap::Heap::new();

/// Called by the loader before the program's own constructors, with the program's arguments.
extern "C" fn begin(_: c_int, argv: *const *const c_char) {
    real::resolve();
    environment::read();
    speaking::note(libc::STDERR_FILENO);
    process::watch_forks();
    poll::expect_end();
    // SAFETY: a function that lives as long as the process, and looks at no argument.
    unsafe { __cxa_at_quick_exit(end_quickly, std::ptr::null_mut()) };
    exec::resume();
    #[cfg(target_arch = "x86_64")]
    raw_calls::take_over();
    // SAFETY: the loader's word for the arguments; nobody else runs before it goes on.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        raw_calls::carried::take_over(argv);
    }
}

/// Called when the program ends by `exit` or by returning, after its own destructors.
extern "C" fn end() {
    stdio::flush();
    close::everything();
}

/// Called when it ends by `quick_exit`: last of all that was asked for, as it was the first. What streams have is not written, as ever.
extern "C" fn end_quickly(_: *mut c_void) {
    close::everything();
}

unsafe extern "C" {
    /// What `at_quick_exit` calls, which is part of the program.
    fn __cxa_at_quick_exit(function: extern "C" fn(*mut c_void), object: *mut c_void) -> c_int;
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn(c_int, *const *const c_char) = begin;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;
