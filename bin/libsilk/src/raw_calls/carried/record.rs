//! What is remembered of a thread of a carried program.

/// [`Record::top`] while the stack is in use.
pub const IN_USE: usize = 1;

/// A thread of the program's.
#[repr(C)]
pub struct Record {
    /// The upper end of what is free of the C library's stack; 1 while that is in use.
    pub top: usize,
    /// Where the C library's thread-local memory is.
    pub c_base: usize,
    /// Where the program's is, or was when it last called.
    pub base: usize,
    /// The registers with which the program called, or begins.
    pub registers: Registers,
    /// The stack pointer with which the C library's thread became the program's; what it needs again lies there.
    pub came: usize,
    /// This record.
    pub this: usize,
}

/// What a child that is a thread has in common with who made it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Registers {
    /// The stack pointer.
    pub rsp: usize,
    rbx: usize,
    rbp: usize,
    r12: usize,
    r13: usize,
    r14: usize,
    r15: usize,
    rdi: usize,
    rsi: usize,
    rdx: usize,
    r8: usize,
    r9: usize,
    r10: usize,
}

impl Registers {
    /// The same with another stack.
    pub fn on(self, rsp: usize) -> Self {
        Self { rsp, ..self }
    }
}

impl Record {
    /// Of a thread that will have these registers and its thread-local memory at `base`.
    pub fn new(registers: Registers, base: usize) -> Self {
        Self { top: IN_USE, c_base: 0, base, registers, came: 0, this: 0 }
    }

    /// The calling thread is the program's already, and its calls are to be answered on the stack with this upper end.
    ///
    /// # Safety
    /// The stack is free, and stays as long as the thread; so does the record.
    pub unsafe fn is_it(&mut self, top: usize) {
        self.top = top;
        self.this = (&raw const *self).expose_provenance();
        // SAFETY: nobody else uses `gs`; the processor and the kernel let a program set it, as the caller has asked.
        unsafe {
            std::arch::asm!("rdfsbase {}", out(reg) self.c_base, options(nomem, nostack, preserves_flags));
            std::arch::asm!("wrgsbase {}", in(reg) self.this, options(nomem, nostack, preserves_flags));
        }
    }
}
