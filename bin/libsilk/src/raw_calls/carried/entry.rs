//! The way from a system call of a carried program's to this library and back, as the other [`entry`](super::super::entry), for threads whose
//! thread-local memory is not the C library's. Each has a [`Record`], which `gs` shows (nobody else uses it here), and is a
//! thread of the C library's: its calls are answered on the stack, and with the thread-local memory, that it has as such. While they are,
//! calls that a signal's handler makes go to the kernel.

use super::super::entry::answered;
use super::record::{IN_USE, Record};
use super::{own_file, signal, thread};
use libc::{c_int, c_long};
use std::mem::offset_of;

unsafe extern "C" {
    /// Where the program's calls lead; no function of Rust's or C's.
    fn silk_carried_call();
    /// The calling thread becomes the program's, with the registers of `record`, at `address`. Returns when that has ended.
    fn silk_carried_become(record: *mut Record, address: usize);
    /// The program's thread has ended: it is the C library's again, where it became the program's.
    fn silk_carried_leave(came: usize) -> !;
    /// The calling thread's record.
    fn silk_carried_record() -> *mut Record;
}

/// The address of the first.
pub fn address() -> u64 {
    (silk_carried_call as *const ()).addr() as u64
}

std::arch::global_asm!(
    r#"
    .text
    .hidden silk_carried_call
    .globl silk_carried_call
    .type silk_carried_call, @function
    .p2align 4
silk_carried_call:
    mov r11, qword ptr gs:[{top}]
    cmp r11, {in_use}
    je 3f
    mov qword ptr gs:[{top}], {in_use}
    mov qword ptr gs:[{rsp}], rsp
    mov qword ptr gs:[{rsp} + 8], rbx
    mov qword ptr gs:[{rsp} + 16], rbp
    mov qword ptr gs:[{rsp} + 24], r12
    mov qword ptr gs:[{rsp} + 32], r13
    mov qword ptr gs:[{rsp} + 40], r14
    mov qword ptr gs:[{rsp} + 48], r15
    mov qword ptr gs:[{rsp} + 56], rdi
    mov qword ptr gs:[{rsp} + 64], rsi
    mov qword ptr gs:[{rsp} + 72], rdx
    mov qword ptr gs:[{rsp} + 80], r8
    mov qword ptr gs:[{rsp} + 88], r9
    mov qword ptr gs:[{rsp} + 96], r10
    rdfsbase rcx
    mov qword ptr gs:[{base}], rcx
    mov rcx, qword ptr gs:[{c_base}]
    wrfsbase rcx
    mov rbx, r11
    lea rsp, [r11 - 16]
    mov qword ptr [rsp], r9
    mov r9, r8
    mov r8, r10
    mov rcx, rdx
    mov rdx, rsi
    mov rsi, rdi
    mov rdi, rax
    cld
    call {answer}
    mov rcx, qword ptr gs:[{base}]
    wrfsbase rcx
    mov r11, rbx
    mov rbx, qword ptr gs:[{rsp} + 8]
    mov rdi, qword ptr gs:[{rsp} + 56]
    mov rsi, qword ptr gs:[{rsp} + 64]
    mov rdx, qword ptr gs:[{rsp} + 72]
    mov r8, qword ptr gs:[{rsp} + 80]
    mov r9, qword ptr gs:[{rsp} + 88]
    mov r10, qword ptr gs:[{rsp} + 96]
    mov rsp, qword ptr gs:[{rsp}]
    mov qword ptr gs:[{top}], r11
    # Go keeps a zero there.
    xorps xmm15, xmm15
    cmp rax, -4095
    ret
3:
    cmp eax, {clone}
    jne 4f
    mov ecx, edi
    and ecx, {vm}
    jnz 5f
4:
    syscall
    cmp rax, -4095
    ret
    # A child that shares this memory would come back by another way.
5:
    mov rax, -{enomem}
    cmp rax, -4095
    ret
    .size silk_carried_call, . - silk_carried_call

    .hidden silk_carried_become
    .globl silk_carried_become
    .type silk_carried_become, @function
silk_carried_become:
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    mov qword ptr [rdi + {came}], rsp
    lea rax, [rsp - 64]
    and rax, -16
    mov qword ptr [rdi + {top}], rax
    mov qword ptr [rdi + {this}], rdi
    rdfsbase rax
    mov qword ptr [rdi + {c_base}], rax
    wrgsbase rdi
    mov rax, qword ptr [rdi + {base}]
    wrfsbase rax
    mov r11, rsi
    mov rsp, qword ptr [rdi + {rsp}]
    mov rbx, qword ptr [rdi + {rsp} + 8]
    mov rbp, qword ptr [rdi + {rsp} + 16]
    mov r12, qword ptr [rdi + {rsp} + 24]
    mov r13, qword ptr [rdi + {rsp} + 32]
    mov r14, qword ptr [rdi + {rsp} + 40]
    mov r15, qword ptr [rdi + {rsp} + 48]
    mov rsi, qword ptr [rdi + {rsp} + 64]
    mov rdx, qword ptr [rdi + {rsp} + 72]
    mov r8, qword ptr [rdi + {rsp} + 80]
    mov r9, qword ptr [rdi + {rsp} + 88]
    mov r10, qword ptr [rdi + {rsp} + 96]
    mov rdi, qword ptr [rdi + {rsp} + 56]
    xorps xmm15, xmm15
    xor eax, eax
    cmp rax, -4095
    jmp r11
    .size silk_carried_become, . - silk_carried_become

    .hidden silk_carried_leave
    .globl silk_carried_leave
    .type silk_carried_leave, @function
silk_carried_leave:
    mov rsp, rdi
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    ret
    .size silk_carried_leave, . - silk_carried_leave

    .hidden silk_carried_record
    .globl silk_carried_record
    .type silk_carried_record, @function
silk_carried_record:
    mov rax, qword ptr gs:[{this}]
    ret
    .size silk_carried_record, . - silk_carried_record

    # The handler of every signal that the program handles: it sees the program's thread-local memory. Where the signal has come
    # while a call was answered, the C library's is there again afterwards.
    .hidden silk_carried_signal
    .globl silk_carried_signal
    .type silk_carried_signal, @function
silk_carried_signal:
    lea r11, [rip + {handlers}]
    mov eax, edi
    mov r11, qword ptr [r11 + rax * 8]
    rdfsbase rax
    cmp rax, qword ptr gs:[{c_base}]
    je 1f
    jmp r11
1:
    push rax
    mov rcx, qword ptr gs:[{base}]
    wrfsbase rcx
    call r11
    pop rax
    wrfsbase rax
    ret
    .size silk_carried_signal, . - silk_carried_signal
"#,
    answer = sym answer,
    handlers = sym signal::HANDLERS,
    top = const offset_of!(Record, top),
    c_base = const offset_of!(Record, c_base),
    base = const offset_of!(Record, base),
    rsp = const offset_of!(Record, registers),
    came = const offset_of!(Record, came),
    this = const offset_of!(Record, this),
    in_use = const IN_USE,
    clone = const libc::SYS_clone,
    vm = const libc::CLONE_VM,
    enomem = const libc::ENOMEM,
);

impl Record {
    /// The calling thread becomes the program's at this address, and is the C library's again when that thread has ended.
    ///
    /// # Safety
    /// No signal arrives for which the program has a handler before the program lets it; what is at that address belongs to
    /// the program, and finds there what it needs.
    pub unsafe fn become_it(&mut self, address: usize) {
        // SAFETY: the record lives until this returns; otherwise as the caller promises.
        unsafe { silk_carried_become(self, address) };
    }
}

/// What the program's call answers, as the kernel says it.
///
/// # Safety
/// The program keeps the contract of the system call that it makes. (Where that is the thread's end, this does not return, and nothing that
/// is to be dropped may be held here.)
unsafe extern "C" fn answer(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    const THREAD: usize = (libc::CLONE_VM | libc::CLONE_THREAD) as usize;
    const SHARED: usize = (libc::CLONE_VM | libc::CLONE_VFORK) as usize;
    // SAFETY: as the caller promises; the calling thread has a record, or it could not have come here.
    unsafe {
        match number {
            libc::SYS_clone if a & THREAD == THREAD => thread::begin(&*silk_carried_record(), a, b, e),
            libc::SYS_clone if a & libc::CLONE_VM as usize != 0 && (a & SHARED != SHARED || b != 0) => {
                -c_long::from(libc::EINVAL)
            }
            libc::SYS_exit if !thread::is_first() => silk_carried_leave((*silk_carried_record()).came),
            libc::SYS_rt_sigaction => signal::action(a as c_int, b, c, d),
            libc::SYS_readlink if own_file::is_named(a) => own_file::tell(b, c),
            libc::SYS_readlinkat if own_file::is_named(b) => own_file::tell(c, d),
            libc::SYS_openat if own_file::is_named(b) => answered(number, [a, own_file::name(), c, d, e, f]),
            _ => answered(number, [a, b, c, d, e, f]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Registers;
    use super::super::{begin, has_two_kinds};
    use super::*;
    use std::io::{Write, stderr};
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::time::{Duration, Instant};

    crate::raw_calls::call_by!(silk_carried_call);

    /// Makes a thread with this stack that adds what it finds in a register to a word, and ends.
    fn thread(stack: usize, word: &AtomicU32, value: u32) -> c_long {
        let answer: c_long;
        // SAFETY: as above; the new thread uses its stack, the word, and no thread-local memory.
        unsafe {
            std::arch::asm!(
                "call {way}",
                "test rax, rax",
                "jnz 2f",
                "lock add dword ptr [r12], r13d",
                "mov eax, 60",
                "xor edi, edi",
                "jmp {way}",
                "2:",
                way = sym silk_carried_call,
                inlateout("rax") libc::SYS_clone => answer,
                in("rdi") libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SETTLS, in("rsi") stack,
                in("rdx") 0, in("r10") 0, in("r8") word.as_ptr(), in("r9") 0,
                in("r12") word.as_ptr(), in("r13") value,
                out("rcx") _, out("r11") _, clobber_abi("sysv64"),
            );
        }
        answer
    }

    #[test]
    fn a_threads_calls_and_its_threads_are_as_the_kernels() {
        crate::real::resolve();
        if !has_two_kinds() {
            let _ = writeln!(stderr(), "SKIPPED, tests nothing: this processor or kernel has no FSGSBASE");
            return;
        }
        let done = std::thread::spawn(|| {
            let mut record = Record::new(Registers::default(), 0);
            // SAFETY: a new stack; the record outlives what this thread does.
            unsafe { record.is_it(begin::stack().unwrap()) };
            for _ in 0..3 {
                let arguments = [usize::MAX, 2, 3, 4, 5, 6];
                assert_eq!(call(libc::SYS_close, arguments), (-c_long::from(libc::EBADF), arguments));
                assert_eq!(call(libc::SYS_getpid, [0; 6]).0, c_long::from(std::process::id()));
            }
            let shared = [libc::CLONE_VM as usize, 4096, 0, 0, 0, 0];
            assert_eq!(call(libc::SYS_clone, shared).0, -c_long::from(libc::EINVAL), "no thread");
            let sum = AtomicU32::new(0);
            let numbers: Vec<c_long> = (1..=20).map(|n| thread(begin::stack().unwrap(), &sum, n)).collect();
            assert!(numbers.iter().all(|number| *number > 0), "{numbers:?}");
            let (start, there) = (Instant::now(), |n: &c_long| {
                std::fs::exists(format!("/proc/self/task/{n}")).unwrap_or_default()
            });
            while numbers.iter().any(there) && start.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(1));
            }
            (numbers.iter().filter(|n| there(n)).count(), sum.load(SeqCst))
        });
        assert_eq!(done.join().ok(), Some((0, 210)));
    }
}
