//! The decoder against ffmpeg's own command, and against everything that a network does to a stream.
//! The clips are made by ffmpeg for each run; where it is missing the tests say SKIPPED.

use super::*;
use crate::demux::Demuxer;
use crate::measure::packets;
use crate::screen::sum;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A short clip of a moving test picture, coded with these arguments; `None` without ffmpeg.
fn clip(name: &str, arguments: &str) -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    let source = "-nostdin -v error -f lavfi -i testsrc2=s=176x144:r=25 -frames:v 30 -pix_fmt yuv420p";
    let mut command = Command::new("ffmpeg");
    command.args(source.split(' ')).args(arguments.split(' ')).arg(&file);
    let Ok(status) = command.status() else {
        silk_testkit::skip("there is no ffmpeg");
        return None;
    };
    assert!(status.success());
    Some((folder, file))
}

fn mpeg() -> Option<(TempDir, PathBuf)> {
    clip("clip.mpg", "-c:v mpeg2video -g 12 -bf 2 -q:v 2 -ps 400")
}

fn coded(file: &Path) -> (Coding, Vec<Vec<u8>>) {
    let demuxer = Demuxer::open(file).unwrap();
    (demuxer.coding(), demuxer.map(|coded| coded.bytes().to_vec()).collect())
}

/// Stamp, sum and whether something was made up, of each picture in the order it came.
type Came = Vec<(u32, u64, bool)>;

fn decode<'u>(
    decoder: &mut AvDecoder,
    units: impl IntoIterator<Item = Unit<'u>>,
) -> (Came, Vec<DecodeError>) {
    let (mut came, mut errors) = (Vec::new(), Vec::new());
    let mut take =
        |picture: Box<dyn Picture>| came.push((picture.stamp(), sum(&*picture), picture.is_concealed()));
    for unit in units {
        errors.extend(decoder.decode(unit, &mut take).err());
    }
    decoder.finish(&mut take);
    (came, errors)
}

fn decoder(coding: Coding) -> AvDecoder {
    AvDecoder::new(coding, Limits::default()).unwrap()
}

/// The packets of all pictures, with their numbers in the order of decoding as stamps.
fn units(pictures: &[Vec<u8>]) -> Vec<Unit<'_>> {
    pictures.iter().zip(0..).flat_map(|(picture, stamp)| packets(picture, stamp)).collect()
}

/// The pictures of a clip as ffmpeg's own command decodes them.
fn by_ffmpeg(file: &Path) -> Vec<u8> {
    let output = Command::new("ffmpeg")
        .args(["-v", "error", "-threads", "1", "-i"])
        .arg(file)
        .args(["-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-"])
        .output()
        .unwrap();
    output.stdout
}

#[test]
fn pictures_are_those_of_ffmpeg_sample_by_sample_for_each_coding() {
    for (name, arguments) in [
        ("clip.mpg", "-c:v mpeg1video -g 12 -bf 2 -ps 400"),
        ("clip.m2v", "-c:v mpeg2video -g 12 -bf 2"),
        ("clip.mp4", "-c:v libx264 -preset fast -bf 3"),
    ] {
        let Some((_folder, file)) = clip(name, arguments) else { return };
        let (coding, pictures) = coded(&file);
        let (mut raw, mut decoder) = (Vec::<u8>::new(), decoder(coding));
        let mut take = |picture: Box<dyn Picture>| {
            for plane in picture.planes() {
                plane
                    .bytes
                    .chunks(plane.stride)
                    .take(plane.height)
                    .for_each(|row| raw.extend(&row[..plane.width]));
            }
        };
        units(&pictures).into_iter().for_each(|unit| decoder.decode(unit, &mut take).unwrap());
        decoder.finish(&mut take);
        assert_eq!(raw.len(), 30 * 176 * 144 * 3 / 2, "{name}");
        assert!(raw == by_ffmpeg(&file), "{name}");
    }
}

#[test]
fn pictures_come_in_the_order_they_are_shown_with_the_stamps_they_went_in_with() {
    let Some((_folder, file)) = mpeg() else { return };
    let (coding, pictures) = coded(&file);
    let (came, errors) = decode(&mut decoder(coding), units(&pictures));
    // Decoded I P B B P B B …, shown I B B P B B P ….
    assert_eq!(came.iter().take(7).map(|one| one.0).collect::<Vec<_>>(), [0, 2, 3, 1, 5, 6, 4]);
    assert_eq!((came.len(), errors), (30, vec![]));
    assert!(came.iter().all(|(_, _, concealed)| !concealed));
}

#[test]
fn the_decoder_begins_anew_after_the_end() {
    let Some((_folder, file)) = mpeg() else { return };
    let (coding, pictures) = coded(&file);
    let mut decoder = decoder(coding);
    let first = decode(&mut decoder, units(&pictures));
    assert_eq!(decode(&mut decoder, units(&pictures)), first);
}

#[test]
fn a_lost_packet_is_made_up_and_told() {
    let Some((_folder, file)) = mpeg() else { return };
    let (coding, pictures) = coded(&file);
    let whole = decode(&mut decoder(coding), units(&pictures)).0;
    let mut some = units(&pictures);
    // One from the middle of a B picture, to which nothing refers.
    let hurt = some.iter().rposition(|unit| !unit.first && !unit.last && unit.stamp % 3 != 1).unwrap();
    let stamp = some[hurt].stamp;
    some.remove(hurt);
    some[hurt].gap = true;
    let (came, errors) = decode(&mut decoder(coding), some);
    let different: Vec<_> = came.iter().zip(&whole).filter(|(came, whole)| came != whole).collect();
    assert_eq!(errors, []);
    assert_eq!(different.iter().map(|(came, _)| (came.0, came.2)).collect::<Vec<_>>(), [(stamp, true)]);
}

#[test]
fn what_was_lost_before_a_picture_is_not_its_own() {
    let Some((_folder, file)) = mpeg() else { return };
    let (coding, pictures) = coded(&file);
    // A whole B picture goes missing.
    let mut some = units(&pictures);
    some.retain(|unit| unit.stamp != 27);
    some.iter_mut().filter(|unit| unit.stamp == 28 && unit.first).for_each(|unit| unit.gap = true);
    let (came, errors) = decode(&mut decoder(coding), some);
    assert_eq!((came.len(), errors), (29, vec![]));
    assert!(came.iter().all(|(_, _, concealed)| !concealed));
}

#[test]
fn a_picture_without_its_last_packet_is_decoded_when_the_next_begins() {
    let Some((_folder, file)) = mpeg() else { return };
    let (coding, pictures) = coded(&file);
    let mut some = units(&pictures);
    some.retain(|unit| unit.stamp != 27 || !unit.last);
    let (came, errors) = decode(&mut decoder(coding), some);
    assert_eq!((came.len(), errors), (30, vec![]));
    assert_eq!(came.iter().filter(|one| one.2).map(|one| one.0).collect::<Vec<_>>(), [27]);
}

#[test]
fn a_picture_without_its_header_is_left_out_and_the_rest_plays_on() {
    let Some((_folder, file)) = mpeg() else { return };
    let (coding, pictures) = coded(&file);
    let mut some = units(&pictures);
    some.retain(|unit| unit.stamp != 27 || !unit.first);
    let (came, _) = decode(&mut decoder(coding), some);
    let stamps: Vec<u32> = came.iter().map(|one| one.0).collect();
    assert_eq!((came.len(), stamps.contains(&27)), (29, false));
}

#[test]
fn a_larger_picture_than_may_be_is_refused_by_its_header() {
    let Some((_folder, file)) = mpeg() else { return };
    let (coding, pictures) = coded(&file);
    let mut small = AvDecoder::new(coding, Limits::pixels(176 * 144 - 1)).unwrap();
    let (came, errors) = decode(&mut small, units(&pictures));
    assert_eq!((came, errors[0]), (vec![], DecodeError::TooLarge));
    let mut enough = AvDecoder::new(coding, Limits::pixels(176 * 144)).unwrap();
    assert_eq!(decode(&mut enough, units(&pictures)).0.len(), 30);
}

#[test]
fn a_picture_that_never_ends_takes_no_more_memory_than_the_limit() {
    let limits = Limits { pixels: 176 * 144, bytes: 10_000 };
    let mut decoder = AvDecoder::new(Coding::Mpeg, limits).unwrap();
    let unit = Unit { bytes: &[7; 1000], stamp: 1, first: false, last: false, gap: false };
    let (came, errors) = decode(&mut decoder, std::iter::repeat_n(unit, 1000));
    assert_eq!((came, errors), (vec![], vec![DecodeError::TooLarge]));
    assert!(decoder.collected.capacity() < 2 * limits.bytes);
}

/// Bytes that look random and are the same in each run (xorshift).
fn noise(seed: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(seed), |x| {
        let x = x ^ x << 13;
        let x = x ^ x >> 7;
        Some(x ^ x << 17)
    })
}

#[test]
fn whatever_happens_to_the_bytes_the_decoder_answers_and_later_pictures_come_out_right() {
    let h264 = clip("clip.mp4", "-c:v libx264 -preset fast -bf 3 -g 10 -x264-params slice-max-size=300");
    for (_folder, file) in [mpeg(), h264].into_iter().flatten() {
        let (coding, pictures) = coded(&file);
        let whole = decode(&mut decoder(coding), units(&pictures)).0;
        for seed in (1..40).map(|n| n << 32 | n) {
            let mut random = noise(seed);
            let mut hurt = pictures.clone();
            for picture in &mut hurt {
                for _ in 0..3 {
                    let at = random.next().unwrap() as usize % picture.len();
                    picture[at] ^= random.next().unwrap() as u8;
                }
            }
            let mut decoder = decoder(coding);
            let mut some = units(&hurt);
            // Some go missing, some come twice, some end early.
            some.retain(|_| !random.next().unwrap().is_multiple_of(16));
            let twice = some[random.next().unwrap() as usize % some.len()];
            some.insert(random.next().unwrap() as usize % some.len(), twice);
            for unit in some.iter_mut().step_by(11) {
                unit.bytes = &unit.bytes[..unit.bytes.len() / 2];
            }
            let (came, _) = decode(&mut decoder, some);
            assert!(came.len() <= 2 * pictures.len(), "{coding:?}, seed {seed}");
            assert_eq!(decode(&mut decoder, units(&pictures)).0, whole, "{coding:?}, seed {seed}");
        }
    }
}

#[test]
fn bytes_that_are_no_video_make_no_picture() {
    for coding in [Coding::Mpeg, Coding::H264] {
        let mut random = noise(7);
        let bytes: Vec<u8> = (0..20_000).map(|_| random.next().unwrap() as u8).collect();
        let units = bytes.chunks(1000).zip(0..);
        let units =
            units.map(|(bytes, stamp)| Unit { bytes, stamp, first: true, last: true, gap: stamp % 3 == 0 });
        let nothing = Unit { bytes: &[], stamp: 99, first: true, last: true, gap: true };
        assert_eq!(decode(&mut decoder(coding), units.chain([nothing])).0, []);
    }
}

#[test]
fn a_picture_keeps_its_bytes_when_its_decoder_is_gone() {
    let Some((_folder, file)) = mpeg() else { return };
    let (coding, pictures) = coded(&file);
    let (mut kept, mut sums) = (Vec::new(), Vec::new());
    let mut decoder = decoder(coding);
    let mut take = |picture: Box<dyn Picture>| {
        sums.push(sum(&*picture));
        kept.push(picture);
    };
    units(&pictures).into_iter().for_each(|unit| decoder.decode(unit, &mut take).unwrap());
    decoder.finish(&mut take);
    drop(decoder);
    assert_eq!(kept.iter().map(|picture| sum(&**picture)).collect::<Vec<_>>(), sums);
    assert!(kept.iter().all(|picture| picture.memory() >= 176 * 144 * 3 / 2));
}

#[test]
fn a_stream_that_says_it_has_no_b_pictures_is_shown_without_delay() {
    for (name, arguments) in [
        ("clip.m2v", "-c:v mpeg2video -bf 0 -flags +low_delay"),
        ("clip.mp4", "-c:v libx264 -tune zerolatency"),
    ] {
        let Some((_folder, file)) = clip(name, arguments) else { return };
        let (coding, pictures) = coded(&file);
        let (mut decoder, mut came) = (decoder(coding), Vec::new());
        for (picture, stamp) in pictures.iter().zip(0..) {
            let unit = Unit { bytes: picture, stamp, first: true, last: true, gap: false };
            decoder.decode(unit, &mut |picture| came.push((stamp, picture.stamp()))).unwrap();
        }
        assert_eq!(came, (0..30).map(|stamp| (stamp, stamp)).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn the_smallest_picture_is_decoded_again_and_again() {
    let mut smallest =
        silk_media::Smallest::new(Box::new(decoder(Coding::Mpeg))).expect("the first picture is decoded");
    assert!((0..100).all(|_| smallest.again()));
}
