//! The two CPUs of an experiment, one for each side.

/// The CPU of everything on the server's side: the web server, what stands in front of it, silkd, and
/// the processing of received packets.
pub const SERVER_CPU: &str = "1";
/// The CPU of everything on the clients' side.
pub const CLIENT_CPU: &str = "0";
