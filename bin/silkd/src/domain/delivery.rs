//! How the connections of a class reach their programs, and at which priority those serve them.

/// How a class's connections are brought to threads.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// The class's place among the queues; the least important is 0.
    pub rank: usize,
    /// The priority its threads get, if paths are extended to programs and it is not 0.
    pub extend_to: Option<u32>,
    /// The real-time base priority.
    pub base: i32,
}
