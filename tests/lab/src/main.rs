//! The laboratory's program: parses the command line and calls the task.

use std::process::ExitCode;

use tally_lab::cli;
use xtask::process;

fn main() -> ExitCode {
    process::kill_children_on_signals();
    ExitCode::from(cli::main())
}
