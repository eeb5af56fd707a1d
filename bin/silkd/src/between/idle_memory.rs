//! How long memory is kept that nobody needs.

use std::time::Duration;

/// What was not needed for so long is given back.
const PERIOD: Duration = Duration::from_secs(30);
/// The same while memory is short.
const SHORT_PERIOD: Duration = Duration::from_secs(1);

/// How long, where memory is short (`hurried`) and where it is not.
pub fn period(hurried: bool) -> Duration {
    if hurried { SHORT_PERIOD } else { PERIOD }
}
