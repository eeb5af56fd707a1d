//! `silk man`: the manual pages, made from the definition of the command line.

use crate::Silk;
use crate::trouble::{Trouble, print};
use clap::CommandFactory;
use std::path::PathBuf;

/// Where to.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Write the pages of all commands into this folder, instead of the first to standard output
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
}

/// Prints or writes the pages.
pub fn run(options: &Options) -> Result<(), Trouble> {
    let unwritable = |what: String| |error| Trouble::Unwritable(what, error);
    if let Some(folder) = &options.into {
        let what = folder.display().to_string();
        return clap_mangen::generate_to(Silk::command(), folder).map_err(unwritable(what));
    }
    let mut page = Vec::new();
    let man = clap_mangen::Man::new(Silk::command());
    man.render(&mut page).map_err(unwritable("the page".to_owned()))?;
    print(&page)
}
