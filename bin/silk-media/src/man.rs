//! `silk-media man`: the manual pages, made from the definition of the command line.

use crate::Media;
use crate::trouble::Trouble;
use clap::CommandFactory;
use std::io::stdout;
use std::path::PathBuf;
use std::process::ExitCode;

/// Where to.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Write the pages of all commands into this folder, instead of the first to standard output
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
}

/// Prints or writes the pages.
pub fn run(options: &Options) -> Result<ExitCode, Trouble> {
    let (what, written) = match &options.into {
        Some(folder) => (folder.display().to_string(), clap_mangen::generate_to(Media::command(), folder)),
        None => ("the page".to_owned(), clap_mangen::Man::new(Media::command()).render(&mut stdout())),
    };
    written.map_err(|error| Trouble::Unwritable(what, error))?;
    Ok(ExitCode::SUCCESS)
}
