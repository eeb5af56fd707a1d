//! `silkd --man`: the manual page, made from the definition of the command line.

use crate::Arguments;
use crate::say::say;
use clap::CommandFactory;
use std::io::{Write, stdout};
use std::process::ExitCode;

/// Prints the page.
pub fn print() -> ExitCode {
    let page = clap_mangen::Man::new(Arguments::command()).section("8");
    let mut to = stdout().lock();
    match page.render(&mut to).and_then(|()| to.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say!(Error, "silkd: could not write the page: {error}");
            ExitCode::FAILURE
        }
    }
}
