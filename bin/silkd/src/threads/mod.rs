//! How threads are scheduled, and what they use: executors, receive threads, those of programs, and the watchdog above them.

pub mod cpu_time;
pub mod heir;
pub mod linux_share;
pub mod linux_turns;
pub mod manner;
pub mod overrun;
pub mod priority;
pub mod program_thread;
pub mod receive_thread;
pub mod receiving;
pub mod ringing;
pub mod stepping_down;
pub mod thread_number;
pub mod watchdog;
