//! `silk shell`: a command for a player on another host, by its SHELL (Scout §4.1). Of a clip it can tell
//! the player beforehand what its pictures are like, and it says what an offer of less means.

use crate::demux::Demuxer;
use crate::host;
use crate::trouble::Trouble;
use silk_modules::shell::{MAX_REQUEST, PORT};
use std::io::{Write, stderr, stdout};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Whom to tell what.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Tell the player what the pictures of this clip are like, so that it can say whether they fit
    #[arg(long, value_name = "CLIP")]
    clip: Option<PathBuf>,
    /// Where the stream does not fit whole, play what does
    #[arg(long)]
    accept: bool,
    /// The player; an address of IPv6 with a port has brackets: `[fd00::1]:5540`
    #[arg(value_name = "HOST[:PORT]")]
    host: String,
    /// The command, see below
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

/// How often a command is sent before the player is given up; it is done once all the same.
const TRIES: u32 = 5;
/// How long to wait for each answer.
const PATIENCE: Duration = Duration::from_millis(400);

/// Sends the command and prints the answer.
///
/// # Errors
/// A host that is not found, a player that does not answer, a command that it refuses.
pub fn run(options: &Options) -> Result<ExitCode, Trouble> {
    let to = host::address(&options.host, PORT)?;
    let failed = |error| Trouble::Program(format!("cannot reach {to}: {error}"));
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).map_err(failed)?;
    socket.connect(to).map_err(failed)?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let number = silk_appliance::random() as u32;
    let request = request(number, &command(options)?);
    for _ in 0..TRIES {
        socket.send(request.as_bytes()).map_err(failed)?;
        if let Some(answer) = answer(&socket, number) {
            writeln!(stdout(), "{answer}")
                .map_err(|error| Trouble::Unwritable("the answer".into(), error))?;
            if let Some(less) = answer.strip_prefix("offer ") {
                explain(less);
            }
            let done = answer.starts_with("ok") || options.command[0] == "list";
            return Ok(if done { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
    }
    Err(Trouble::Program(format!(
        "no answer from {to}: does a player with a SHELL run there, and is this host one of its controllers?"
    )))
}

/// The command, with what the options add to it.
fn command(options: &Options) -> Result<String, Trouble> {
    let mut command = options.command.join(" ");
    if let Some(clip) = &options.clip {
        command += &about(clip)?;
    }
    if options.accept {
        command += " less=yes";
    }
    Ok(command)
}

/// What the pictures of a clip are like, in the words of `mpeg_decode`.
fn about(clip: &Path) -> Result<String, Trouble> {
    let (mut kinds, mut size) = ([(0u64, 0u64); 3], None);
    for coded in Demuxer::open(clip)? {
        size = size.or_else(|| silk_media::alf::sequence(coded.bytes()));
        // What is neither I nor B may be needed.
        let kind = match coded.kind {
            1 => 0,
            3 => 2,
            _ => 1,
        };
        kinds[kind].0 += 1;
        kinds[kind].1 += coded.bytes().len() as u64 * 8;
    }
    let size = size.ok_or_else(|| Trouble::Usage(format!("{} does not tell its size", clip.display())))?;
    let bits = kinds.map(|(count, bits)| (bits / count.max(1)).to_string()).join(",");
    let group = proportions(kinds.map(|(count, _)| count)).map(|count| count.to_string()).join(",");
    Ok(format!(" bits={bits} group={group} size={}x{}", size.width, size.height))
}

/// The counts of a group's kinds, made smaller together until `mpeg_decode` takes them. Of a kind that is there, one is left.
fn proportions(counts: [u64; 3]) -> [u64; 3] {
    let most = counts.into_iter().max().unwrap_or(0);
    let less = most.div_ceil(u16::MAX.into()).max(1);
    counts.map(|count| if count == 0 { 0 } else { (count / less).max(1) })
}

/// Says what an offer is.
fn explain(less: &str) {
    let what = match less.split_once('=') {
        Some(("every", every)) => format!("with only each {every}. picture"),
        Some(("without", _)) => "without the pictures that no other needs (B)".into(),
        Some(("fps", fps)) => format!("more slowly, at {fps} pictures a second"),
        _ => format!("with {less}"),
    };
    let _ = writeln!(
        stderr(),
        "silk: the stream does not fit whole; {what} it does: give the command with `{less}`, or with `--accept`"
    );
}

/// The datagram: as long as may be, for a reply is never longer than its command.
fn request(number: u32, command: &str) -> String {
    let text = format!("{number} {command}");
    format!("{text:<MAX_REQUEST$}")
}

/// The answer with this number, without it.
fn answer(socket: &UdpSocket, number: u32) -> Option<String> {
    let mut bytes = [0; MAX_REQUEST];
    loop {
        let length = socket.recv(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes[..length]);
        let mut parts = text.trim_end().splitn(2, ' ');
        if parts.next().and_then(|first| first.parse().ok()) == Some(number) {
            return Some(parts.next().unwrap_or_default().to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::proportions;

    #[test]
    fn a_long_film_keeps_the_proportions_of_its_group() {
        assert_eq!(proportions([12_000, 48_000, 120_000]), [6_000, 24_000, 60_000]);
        assert_eq!(proportions([1, 0, 1 << 20]), [1, 0, 61_680]);
        assert_eq!(proportions([1, 4, 10]), [1, 4, 10]);
    }
}
