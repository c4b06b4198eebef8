//! `cargo xtask`: parses the command line and hands over to the task.

use std::process::ExitCode;

use xtask::{cli, process};

fn main() -> ExitCode {
    process::end_children_with_me();
    ExitCode::from(cli::main())
}
