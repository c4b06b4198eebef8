//! `cargo xtask completions` and `man`: completions and manual pages for the commands of `tally`.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::{
    Failure, Result,
    output::{self, TOOL},
    project,
};

/// Options of `cargo xtask completions`.
#[derive(Args, Clone, Debug)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Options of `cargo xtask man`.
#[derive(Args, Clone, Debug)]
pub struct ManArgs {
    /// The folder to write the pages to, such as ~/.local/share/man/man1
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints the script by which a shell completes the commands and options of `command`.
///
/// # Errors
/// Standard output cannot be written.
pub fn completions(args: &CompletionsArgs, mut command: Command) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, TOOL, &mut script);
    output::bytes(&script)?;
    Ok(0)
}

/// Writes a page for `command` and one for each of its commands, `tally-run.1` and so on.
///
/// # Errors
/// The folder cannot be written.
pub fn man(args: &ManArgs, command: Command) -> Result<u8> {
    project::make_folder(&args.folder)?;
    clap_mangen::generate_to(command.name(TOOL).bin_name(TOOL), &args.folder)
        .map_err(|error| Failure::io("write to the folder", &args.folder, &error))?;
    Ok(0)
}
