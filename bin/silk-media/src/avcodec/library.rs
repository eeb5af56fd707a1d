//! The libraries as a whole: what they are, and that they keep quiet. What a hostile stream makes
//! them say about it would fill a terminal; a player counts it instead.

use std::sync::Once;

/// Silences the libraries and makes them known. Costs nothing the second time.
pub fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        ffmpeg_next::util::log::set_level(ffmpeg_next::util::log::Level::Quiet);
        // It answers an error only where it was built without its registration.
        let _ = ffmpeg_next::init();
    });
}

/// The version of libavcodec that runs, as its makers write it.
pub fn version() -> String {
    let version = ffmpeg_next::codec::version();
    format!("{}.{}.{}", version >> 16, version >> 8 & 0xff, version & 0xff)
}
