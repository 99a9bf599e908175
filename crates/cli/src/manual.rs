//! Completions and manual pages, made from the very definition that reads the command line.

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{Cli, Shell};
use crate::exit::{self, Failure};
use crate::look::put;

/// Prints a completion script.
pub fn completions(shell: Shell) -> Result<u8, Failure> {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "lockkeeper", &mut script);
    put(&script).map(|_| 0)
}

/// Prints a manual page, for `man -l -` or a file.
pub fn page(of: Option<&str>) -> Result<u8, Failure> {
    let mut program = Cli::command().version(env!("CARGO_PKG_VERSION"));
    // Gives the commands their full names and the flags that they share.
    program.build();
    let command = match of {
        None => program,
        Some(name) => described(&program, name)?,
    };
    let mut page = Vec::new();
    Man::new(command)
        .source(concat!("lockkeeper ", env!("CARGO_PKG_VERSION")))
        .render(&mut page)
        .map_err(|error| Failure::new(exit::BUG, format!("the page could not be made: {error}")))?;
    put(&page).map(|_| 0)
}

fn described(program: &Command, name: &str) -> Result<Command, Failure> {
    let known = program.get_subcommands().find(|command| command.get_name() == name);
    known.cloned().ok_or_else(|| {
        Failure::new(exit::USAGE, format!("there is no command `{name}`"))
            .with_hint("`lockkeeper --help` lists the commands")
    })
}
