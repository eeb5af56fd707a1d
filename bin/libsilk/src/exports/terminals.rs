//! What the C library does with the standard descriptors by itself, past `dup2` and `close` as others call them: `login_tty`,
//! `forkpty`, `daemon`. A program that a super-server started has its connection there.

use super::descriptors::{close, dup2};
use super::processes::_exit;
use crate::errno;
use crate::real;
use libc::{c_char, c_int, pid_t, termios, winsize};

/// This from now on is the standard descriptors.
///
/// # Safety
/// As `dup2`'s and `close`'s.
unsafe fn become_standard(fd: c_int) {
    for standard in 0..=2 {
        // SAFETY: as the caller promises.
        unsafe { dup2(fd, standard) };
    }
    if fd > 2 {
        // SAFETY: as above.
        unsafe { close(fd) };
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn login_tty(fd: c_int) -> c_int {
    // SAFETY: the program keeps the contract of the function it calls; so throughout.
    unsafe {
        libc::setsid();
        if real::ioctl(fd, libc::TIOCSCTTY, 0) == -1 {
            return -1;
        }
        become_standard(fd);
        0
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forkpty(
    terminal: *mut c_int,
    name: *mut c_char,
    settings: *const termios,
    size: *const winsize,
) -> pid_t {
    let (mut master, mut slave) = (-1, -1);
    // SAFETY: as above.
    unsafe {
        if real::openpty(&raw mut master, &raw mut slave, name, settings, size) == -1 {
            return -1;
        }
        match real::fork() {
            -1 => {
                let why = errno::last();
                close(master);
                close(slave);
                errno::set(why);
                -1
            }
            0 => {
                close(master);
                if login_tty(slave) == -1 {
                    _exit(1);
                }
                0
            }
            child => {
                terminal.write(master);
                close(slave);
                child
            }
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daemon(stays: c_int, keeps: c_int) -> c_int {
    // SAFETY: as above.
    unsafe {
        match real::fork() {
            -1 => return -1,
            0 => {}
            _ => _exit(0),
        }
        if libc::setsid() == -1 {
            return -1;
        }
        if stays == 0 {
            // As there, it is no failure.
            libc::chdir(c"/".as_ptr());
        }
        if keeps == 0 {
            let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
            if nowhere == -1 {
                return -1;
            }
            let is_null = |about: libc::stat| {
                about.st_mode & libc::S_IFMT == libc::S_IFCHR && about.st_rdev == libc::makedev(1, 3)
            };
            if !real::about(nowhere).is_some_and(is_null) {
                close(nowhere);
                errno::set(libc::ENODEV);
                return -1;
            }
            become_standard(nowhere);
        }
        0
    }
}
