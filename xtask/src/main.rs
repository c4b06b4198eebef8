//! `cargo xtask`: parses the command line and calls the task.

use std::process::ExitCode;

use xtask::{cli, process};

fn main() -> ExitCode {
    process::kill_children_on_signals();
    ExitCode::from(cli::main())
}
