//! `silk completions`: what a shell needs to complete this command, made from the definition of the command line.

use crate::Silk;
use crate::trouble::{Trouble, print};
use clap::CommandFactory;
use clap_complete::Shell;

/// For whom.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub fn run(options: &Options) -> Result<(), Trouble> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Silk::command(), "silk", &mut script);
    print(&script)
}
