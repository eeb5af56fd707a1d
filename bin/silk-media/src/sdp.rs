//! Session descriptions (SDP, RFC 8866) as senders of RTP write them: where the video goes to, how it is
//! coded, and the parameters that its sender leaves out of the stream (`sprop-parameter-sets`, RFC 6184
//! §8.1). The file is hostile: what is in it is read by a parser of SDP, bounded, and given to the decoder
//! alone, which takes it as it takes what comes from the network.

use crate::trouble::Trouble;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sdp_types::{Media, Session};
use silk_media::{Coding, Rate, alf, h264::START_CODE};
use silk_wire::rtp;
use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::path::Path;

/// The longest file, bytes.
const LONGEST: u64 = 64 * 1024;

/// What a description says of its video.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The UDP port it is sent to.
    pub port: u16,
    /// How it is coded.
    pub coding: Coding,
    /// What the decoder is to have before the stream, with start codes; none for MPEG.
    pub parameters: Vec<u8>,
    /// Pictures in a second, where it says so.
    pub rate: Option<Rate>,
}

/// Reads the description in `file`.
///
/// # Errors
/// The file cannot be read, or describes nothing that can be played: why.
pub fn read(file: &Path) -> Result<Described, Trouble> {
    let name = file.display();
    let mut text = Vec::new();
    File::open(file)
        .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text))
        .map_err(|error| Trouble::Unreadable(name.to_string(), error))?;
    described(&text).map_err(|why| Trouble::Usage(format!("`{name}` {why}")))
}

/// What `text` describes, or why it is of no use.
fn described(text: &[u8]) -> Result<Described, String> {
    if text.len() as u64 > LONGEST {
        return Err("is too long for a session description".into());
    }
    // ffmpeg prints this above one that it prints at all.
    let text = text.strip_prefix(b"SDP:\n").unwrap_or(text);
    let session =
        Session::parse(text).map_err(|error| format!("is no session description (SDP): {error}"))?;
    let videos = || session.medias.iter().filter(|media| media.media == "video");
    if videos().next().is_none() {
        return Err("describes no video".into());
    }
    let mut refused = String::new();
    for media in videos() {
        match video(&session, media) {
            Ok(described) => return Ok(described),
            Err(why) => refused = why,
        }
    }
    Err(refused)
}

/// One stream of video.
fn video(session: &Session, media: &Media) -> Result<Described, String> {
    if !matches!(media.proto.as_str(), "RTP/AVP" | "RTP/AVPF") {
        return Err(format!("describes video over {}; only RTP/AVP is read", quoted(&media.proto)));
    }
    let groups = session.connection.iter().chain(&media.connections);
    if groups.clone().any(|connection| is_group(&connection.connection_address)) {
        return Err("describes video for a group of hosts (multicast), which comes to Linux alone".into());
    }
    let formats = media.fmt.split_whitespace().filter_map(|format| format.parse::<u8>().ok());
    let coding = formats.clone().find_map(|format| Some((format, coding(media, format)?)));
    let Some((format, coding)) = coding else {
        return Err("describes no video that is played: MPEG with payload type 32 (RFC 2250), or H.264 \
                    with one of 96 to 127 (RFC 6184)"
            .into());
    };
    let parameters = if coding == Coding::H264 { parameters(media, format)? } else { Vec::new() };
    let told = value(media, "framerate").and_then(|rate| rate.trim().parse::<f64>().ok());
    let told = told.and_then(|rate| Rate::from_millis((rate * 1000.0).round() as u32));
    let rate = alf::h264_rate(&parameters).and_then(alf::Rate::played).or(told);
    match media.port {
        0 => Err("describes video that is not sent (port 0)".into()),
        port => Ok(Described { port, coding, parameters, rate }),
    }
}

/// How what comes with this payload type is coded, where that is played.
fn coding(media: &Media, format: u8) -> Option<Coding> {
    let name = attributes(media, "rtpmap", format).next().and_then(|map| map.split('/').next());
    match (format, name) {
        (rtp::MPV, None) => Some(Coding::Mpeg),
        (rtp::MPV, Some(name)) if name.eq_ignore_ascii_case("MPV") => Some(Coding::Mpeg),
        (96..=127, Some(name)) if name.eq_ignore_ascii_case("H264") => Some(Coding::H264),
        _ => None,
    }
}

/// The parameter sets of H.264, with start codes (RFC 6184 §8.1).
fn parameters(media: &Media, format: u8) -> Result<Vec<u8>, String> {
    let mut sets = Vec::new();
    let parts = attributes(media, "fmtp", format).flat_map(|text| text.split(';'));
    for (name, value) in parts.filter_map(|part| part.trim().split_once('=')) {
        match name {
            "packetization-mode" if value == "2" => {
                return Err("describes H.264 in interleaved packets, which are not read".into());
            }
            "sprop-parameter-sets" => {
                for set in value.split(',') {
                    let set = STANDARD.decode(set).map_err(|error| {
                        format!("has parameters of H.264 (sprop-parameter-sets) that are no Base64: {error}")
                    })?;
                    sets.extend(START_CODE.into_iter().chain(set));
                }
            }
            _ => {}
        }
    }
    Ok(sets)
}

/// The values of the attributes called `name` that are about `format`.
fn attributes<'a>(media: &'a Media, name: &'a str, format: u8) -> impl Iterator<Item = &'a str> {
    let named = media.attributes.iter().filter(move |attribute| attribute.attribute == name);
    named.filter_map(move |attribute| {
        let (about, rest) = attribute.value.as_deref()?.split_once(' ')?;
        (about.parse() == Ok(format)).then_some(rest.trim())
    })
}

fn value<'a>(media: &'a Media, name: &str) -> Option<&'a str> {
    media.attributes.iter().find(|attribute| attribute.attribute == name)?.value.as_deref()
}

fn is_group(address: &str) -> bool {
    let address = address.split('/').next().unwrap_or_default();
    address.parse().is_ok_and(|address: IpAddr| address.is_multicast())
}

/// A word of the file as it may be shown on a terminal.
fn quoted(word: &str) -> String {
    let shown: String = word.chars().filter(|c| c.is_ascii_graphic()).take(20).collect();
    format!("`{shown}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FFMPEG: &str = "SDP:\nv=0\no=- 0 0 IN IP4 127.0.0.1\ns=No Name\nc=IN IP4 10.99.0.1\nt=0 0\n\
        a=tool:libavformat\nm=video 5006 RTP/AVP 96\nb=AS:200\na=rtpmap:96 H264/90000\n\
        a=fmtp:96 packetization-mode=1; sprop-parameter-sets=Z0LACg==,aM48gA==; profile-level-id=42C00A\n";

    fn of(text: &str) -> Result<Described, String> {
        described(text.as_bytes())
    }

    #[test]
    fn what_ffmpeg_writes_says_port_coding_and_parameters() {
        let parameters = [&[0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x0a][..], &[0, 0, 0, 1, 0x68, 0xce, 0x3c, 0x80]];
        let expected =
            Described { port: 5006, coding: Coding::H264, parameters: parameters.concat(), rate: None };
        assert_eq!(of(FFMPEG), Ok(expected.clone()));
        let with_rate = Rate::from_millis(29_970);
        assert_eq!(
            of(&format!("{FFMPEG}a=framerate:29.97\n")),
            Ok(Described { rate: with_rate, ..expected })
        );
    }

    #[test]
    fn mpeg_needs_no_more_than_its_payload_type() {
        let text = "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 10.0.0.1\nt=0 0\nm=audio 5000 RTP/AVP 0\n\
                    m=video 5004 RTP/AVP 32\n";
        let expected = Described { port: 5004, coding: Coding::Mpeg, parameters: vec![], rate: None };
        assert_eq!(of(text), Ok(expected));
    }

    proptest::proptest! {
        /// Whatever is in the file, it is refused or read, and bounded.
        #[test]
        fn any_file_is_refused_or_read(
            changes in proptest::collection::vec((0usize..400, proptest::num::u8::ANY), 0..8),
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..80),
        ) {
            let mut text = FFMPEG.as_bytes().to_vec();
            for (at, byte) in changes {
                let at = at % text.len();
                text[at] = byte;
            }
            for text in [text, bytes] {
                if let Ok(described) = described(&text) {
                    proptest::prop_assert!(described.port > 0 && described.parameters.len() < 1000);
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_played_is_told() {
        for (text, why) in [
            ("clip".to_owned(), "is no session description (SDP)"),
            (FFMPEG.replace("m=video", "m=audio"), "describes no video"),
            (FFMPEG.replace("H264", "VP8"), "describes no video that is played"),
            (FFMPEG.replace("RTP/AVP", "RTP/SAVP"), "describes video over `RTP/SAVP`"),
            (FFMPEG.replace("10.99.0.1", "239.0.0.1/4"), "describes video for a group"),
            (FFMPEG.replace("mode=1", "mode=2"), "describes H.264 in interleaved packets"),
            (FFMPEG.replace("Z0LACg==", "Z0L*"), "has parameters of H.264 (sprop-parameter-sets)"),
            (FFMPEG.replace("5006", "0"), "describes video that is not sent"),
            ("a".repeat(70_000), "is too long"),
        ] {
            let told = of(&text).unwrap_err();
            assert!(told.starts_with(why), "{told}");
        }
    }
}
