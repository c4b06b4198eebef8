//! Finds or fetches babeltrace2, with which a test reads traces in the Common Trace Format.

use std::process::Command;

use super::packages::programs;
use crate::{Result, project::Project};

/// Makes a call of babeltrace2, with its own dynamic linker, libraries and plugins.
///
/// # Errors
/// The program is missing and cannot be fetched.
pub fn babeltrace2(project: &Project) -> Result<Command> {
    let place = programs(project, "babeltrace2", &["babeltrace2"])?;
    let libraries = place.join("usr/lib/x86_64-linux-gnu");
    let mut command = Command::new(place.join("usr/lib64/ld-linux-x86-64.so.2"));
    command.arg("--library-path").arg(&libraries).arg(place.join("usr/bin/babeltrace2"));
    command.env("BABELTRACE_PLUGIN_PATH", libraries.join("babeltrace2/plugins"));
    Ok(command)
}
