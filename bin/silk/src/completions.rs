//! `silk completions`: what a shell needs to complete this command, made from the definition of the command line.

use crate::Silk;
use crate::trouble::{Trouble, print};
use clap::{Command, CommandFactory};
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
    clap_complete::generate(options.shell, &mut shown(&Silk::command()), "silk", &mut script);
    print(&script)
}

/// The command without what is hidden in its help, which the scripts would offer all the same.
fn shown(command: &Command) -> Command {
    // Names live as long as the program, which has nothing else to do.
    let lasting = |text: &str| -> &'static str { text.to_owned().leak() };
    let subcommands = command.get_subcommands().filter(|one| !one.is_hide_set()).map(shown);
    let mut shown = Command::new(lasting(command.get_name()))
        .args(command.get_arguments().filter(|one| !one.is_hide_set()))
        .subcommands(subcommands);
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(version) = command.get_version() {
        shown = shown.version(lasting(version));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the scripts are made of, a line for each argument and subcommand.
    fn lines(command: &Command) -> Vec<String> {
        let (name, about) = (command.get_name(), command.get_about());
        let all = command.get_arguments().filter(|one| !one.is_hide_set());
        let mut lines: Vec<_> = all.map(|argument| format!("{name}: {argument:?}")).collect();
        lines.push(format!("{name}: {about:?} {:?}", command.get_version()));
        lines.extend(command.get_subcommands().filter(|one| !one.is_hide_set()).flat_map(self::lines));
        lines
    }

    #[test]
    fn all_is_there_that_is_not_hidden() {
        let command = Silk::command();
        assert_eq!(lines(&shown(&command)), lines(&command));
    }
}
