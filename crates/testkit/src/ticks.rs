//! How a CPU has spent its time, the hypervisor's share included (proc(5), `/proc/stat`).

use std::time::Duration;

/// A tick of `/proc/stat`: `sysconf(_SC_CLK_TCK)` is 100 on every Linux that this runs on.
const TICK: Duration = Duration::from_millis(10);

/// A CPU's time since the machine started, in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ticks {
    busy: u64,
    idle: u64,
    stolen: u64,
}

impl Ticks {
    /// Those of a CPU, by its number, until now; none where the kernel does not say.
    pub fn now(cpu: &str) -> Self {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        Self::of(&stat, cpu).unwrap_or_default()
    }

    /// From the text of `/proc/stat`: user nice system idle iowait irq softirq steal.
    pub fn of(stat: &str, cpu: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} ")))?;
        let ticks: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let &[user, nice, system, idle, wait, hard, soft, stolen, ..] = ticks.as_slice() else { return None };
        Some(Self { busy: user + nice + system + hard + soft, idle: idle + wait, stolen })
    }

    /// What came since `start`.
    #[must_use]
    pub fn since(&self, start: &Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(start.busy),
            idle: self.idle.saturating_sub(start.idle),
            stolen: self.stolen.saturating_sub(start.stolen),
        }
    }

    /// The time in which a hypervisor had it.
    pub fn stolen(&self) -> Duration {
        TICK.saturating_mul(u32::try_from(self.stolen).unwrap_or(u32::MAX))
    }

    fn all(&self) -> f64 {
        (self.busy + self.idle + self.stolen).max(1) as f64
    }

    /// The part in which it worked, 0 to 1.
    pub fn busy_share(&self) -> f64 {
        self.busy as f64 / self.all()
    }

    /// The part in which a hypervisor had it, 0 to 1.
    pub fn stolen_share(&self) -> f64 {
        self.stolen as f64 / self.all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpus_time_is_shared_between_busy_idle_and_stolen() {
        let before = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 0 0 0 0 0 0 0 0 0\ncpu1 10 0 5 80 5 0 0 0 0 0\n";
        let after = "cpu0 1 0 0 0 0 0 0 0 0 0\ncpu1 30 0 15 110 15 5 5 20 0 0\n";
        let spent = Ticks::of(after, "1").unwrap().since(&Ticks::of(before, "1").unwrap());
        assert_eq!((spent.busy_share(), spent.stolen_share()), (0.4, 0.2));
        assert_eq!(spent.stolen(), Duration::from_millis(200));
    }
}
