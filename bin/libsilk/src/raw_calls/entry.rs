//! The way from a system call of the program's to this library's. It looks like the kernel: of the registers only `rax`, `rcx`
//! and `r11` change, and `rax` is a value or a negated error. Go's stacks are small and end where nobody expects it, so each
//! thread has one of its own for this; while it is in use, by a call that a signal's handler interrupts, calls go to the kernel.

use super::PAGE;
use crate::errno;
use crate::exports::syscalls;
use crate::process;
use crate::real;
use libc::{c_int, c_long};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::with_exposed_provenance_mut;

/// Bytes of a thread's stack, with the page at its end that nobody may touch.
const STACK: usize = 256 << 10;

unsafe extern "C" {
    /// Where the program's calls lead; no function of Rust's or C's.
    fn silk_raw_call();
    /// From now on this thread's calls lead to the kernel.
    fn silk_raw_leave();
}

/// The address of that.
pub fn address() -> u64 {
    (silk_raw_call as *const ()).addr() as u64
}

// `silk_raw_stack` of each thread is 0 at first, the upper end of its stack once it has one, and 1 while that is in use or
// there is none any more.
std::arch::global_asm!(
    r#"
    .section .tbss,"awT",@nobits
    .type silk_raw_stack, @object
    .size silk_raw_stack, 8
    .p2align 3
silk_raw_stack:
    .zero 8

    .text
    .hidden silk_raw_call
    .globl silk_raw_call
    .type silk_raw_call, @function
    .p2align 4
silk_raw_call:
    mov rcx, qword ptr [rip + silk_raw_stack@GOTTPOFF]
    mov r11, qword ptr fs:[rcx]
    cmp r11, 1
    je 3f
    jb 2f
1:
    mov qword ptr fs:[rcx], 1
    mov qword ptr [r11 - 8], rsp
    mov qword ptr [r11 - 16], rbx
    mov qword ptr [r11 - 24], rdi
    mov qword ptr [r11 - 32], rsi
    mov qword ptr [r11 - 40], rdx
    mov qword ptr [r11 - 48], r8
    mov qword ptr [r11 - 56], r9
    mov qword ptr [r11 - 64], r10
    mov rbx, r11
    lea rsp, [r11 - 80]
    mov qword ptr [rsp], r9
    mov qword ptr [rsp + 8], r11
    mov r9, r8
    mov r8, r10
    mov rcx, rdx
    mov rdx, rsi
    mov rsi, rdi
    mov rdi, rax
    cld
    call {answer}
    mov rcx, qword ptr [rip + silk_raw_stack@GOTTPOFF]
    mov r11, rbx
    mov rdi, qword ptr [r11 - 24]
    mov rsi, qword ptr [r11 - 32]
    mov rdx, qword ptr [r11 - 40]
    mov r8, qword ptr [r11 - 48]
    mov r9, qword ptr [r11 - 56]
    mov r10, qword ptr [r11 - 64]
    mov rbx, qword ptr [r11 - 16]
    mov rsp, qword ptr [r11 - 8]
    mov qword ptr fs:[rcx], r11
    # Go keeps a zero there.
    xorps xmm15, xmm15
    cmp rax, -4095
    ret
2:
    push rax
    push rdi
    push rsi
    push rdx
    push r10
    push r8
    push r9
    xor edi, edi
    mov esi, {stack}
    mov edx, {protection}
    mov r10d, {flags}
    mov r8, -1
    xor r9d, r9d
    mov eax, {mmap}
    syscall
    mov r11, rax
    pop r9
    pop r8
    pop r10
    pop rdx
    pop rsi
    pop rdi
    pop rax
    cmp r11, -4095
    jae 3f
    mov rcx, qword ptr [rip + silk_raw_stack@GOTTPOFF]
    add r11, {stack}
    jmp 1b
3:
    cmp eax, {clone}
    jne 4f
    mov ecx, edi
    and ecx, {shared}
    cmp ecx, {shared}
    je 5f
4:
    syscall
    cmp rax, -4095
    ret
    # A child that shares this stack would leave another return address on it.
5:
    mov rax, -{enomem}
    cmp rax, -4095
    ret
    .size silk_raw_call, . - silk_raw_call

    .hidden silk_raw_leave
    .globl silk_raw_leave
    .type silk_raw_leave, @function
silk_raw_leave:
    mov rcx, qword ptr [rip + silk_raw_stack@GOTTPOFF]
    mov qword ptr fs:[rcx], 1
    ret
    .size silk_raw_leave, . - silk_raw_leave
"#,
    answer = sym answer,
    stack = const STACK,
    protection = const libc::PROT_READ | libc::PROT_WRITE,
    flags = const libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK,
    mmap = const libc::SYS_mmap,
    clone = const libc::SYS_clone,
    shared = const libc::CLONE_VM | libc::CLONE_VFORK,
    enomem = const libc::ENOMEM,
);

/// The upper end of a thread's stack, which goes with the thread; 0 if it has none.
struct Stack(Cell<usize>);

impl Stack {
    fn lower_end(&self) -> *mut c_void {
        with_exposed_provenance_mut(self.0.get() - STACK)
    }

    /// Of a new one the last page becomes one that nobody may touch.
    fn note(&self, top: usize) {
        if self.0.replace(top) != top {
            // SAFETY: the page was mapped for this thread, and is as far from what is used now as it can be.
            unsafe { libc::mprotect(self.lower_end(), PAGE, libc::PROT_NONE) };
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if self.0.get() > 0 {
            // SAFETY: it was mapped for this thread, which runs on the stack that it began with and does not come back to
            // this one.
            unsafe {
                silk_raw_leave();
                libc::munmap(self.lower_end(), STACK);
            }
        }
    }
}

thread_local! {
    static OWN: Stack = const { Stack(Cell::new(0)) };
}

/// What the program's call answers, as the kernel says it. It runs on the stack with this upper end.
///
/// # Safety
/// The program keeps the contract of the system call that it makes.
unsafe extern "C" fn answer(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
    top: usize,
) -> c_long {
    // A thread that is about to end has none any more.
    let _ = OWN.try_with(|own| own.note(top));
    // SAFETY: as the caller promises.
    unsafe { answered(number, [a, b, c, d, e, f]) }
}

/// The same on whatever stack.
///
/// # Safety
/// As [`answer`].
pub unsafe fn answered(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> c_long {
    // SAFETY: as the caller promises.
    let answer = unsafe {
        match own_memory_instead(number, a, b) {
            Some(flags) => fork(flags, c, d, e),
            None => syscalls::syscall(number, a, b, c, d, e, f),
        }
    };
    if answer == -1 { -c_long::from(errno::last()) } else { answer }
}

/// If the call makes a child that shares its parent's memory until it executes (`vfork`): its flags for one with memory of
/// its own, since the child of the other would write to our tables.
fn own_memory_instead(number: c_long, flags: usize, stack: usize) -> Option<c_int> {
    const SHARED: usize = (libc::CLONE_VM | libc::CLONE_VFORK) as usize;
    (number == libc::SYS_clone && flags & SHARED == SHARED && stack == 0)
        .then_some((flags & !SHARED) as c_int)
}

/// Makes such a child, by the C library where its `fork` can do it, which sees to what its other threads were in the middle of.
///
/// # Safety
/// The arguments are those that `clone(2)` wants with these flags.
unsafe fn fork(flags: c_int, parent: usize, child: usize, tls: usize) -> c_long {
    if flags & !libc::CLONE_PIDFD != libc::SIGCHLD {
        let words = [flags as usize, 0, parent, child, tls, 0];
        let [a, b, c, d, e, f] = words;
        // SAFETY: as the caller promises; the child has memory of its own.
        return process::fork_by(|| unsafe { real::syscall(libc::SYS_clone, a, b, c, d, e, f) });
    }
    // SAFETY: a fork, and a word of the program's that is there for the descriptor.
    unsafe {
        let pid = real::fork();
        if pid > 0 && flags & libc::CLONE_PIDFD != 0 {
            let descriptor = real::syscall(libc::SYS_pidfd_open, pid as usize, 0, 0, 0, 0, 0);
            *with_exposed_provenance_mut::<c_int>(parent) = descriptor as c_int;
        }
        pid.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_would_share_memory_gets_its_own() {
        let (shared, signal) = ((libc::CLONE_VM | libc::CLONE_VFORK) as usize, libc::SIGCHLD as usize);
        assert_eq!(own_memory_instead(libc::SYS_clone, shared | signal, 0), Some(libc::SIGCHLD));
        assert_eq!(own_memory_instead(libc::SYS_clone, signal, 0), None);
        assert_eq!(own_memory_instead(libc::SYS_clone, shared | signal, 4096), None, "a stack of its own");
        assert_eq!(own_memory_instead(libc::SYS_read, shared | signal, 0), None);
    }

    crate::raw_calls::call_by!(silk_raw_call);

    #[test]
    fn a_call_answers_as_the_kernel_and_leaves_its_arguments_alone() {
        real::resolve();
        for _ in 0..3 {
            let arguments = [usize::MAX, 2, 3, 4, 5, 6];
            assert_eq!(call(libc::SYS_close, arguments), (-c_long::from(libc::EBADF), arguments));
            let pid = c_long::from(std::process::id());
            assert_eq!(call(libc::SYS_getpid, [0; 6]).0, pid);
        }
        let own = |flags: c_int| call(libc::SYS_clone, [flags as usize, 0, 0, 0, 0, 0]).0;
        let child = own(libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD);
        if child == 0 {
            // SAFETY: a child with memory of its own, which ends at once.
            unsafe { real::syscall(libc::SYS_exit_group, 7, 0, 0, 0, 0, 0) };
        }
        let mut status = 0;
        // SAFETY: the child is ours, and the status a word.
        assert_eq!(unsafe { libc::waitpid(child as libc::pid_t, &raw mut status, 0) } as c_long, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7);
        // Each thread has a stack, which goes with it.
        let there = std::thread::spawn(|| call(libc::SYS_getuid, [0; 6]).0).join();
        // SAFETY: it only tells.
        assert_eq!(there.ok(), Some(c_long::from(unsafe { libc::getuid() })));
    }
}
