//! `cargo xtask setup`: fetches missing tools into the project's folder `.tally/`.
//!
//! The task changes nothing on the system and needs no root. A package is unpacked into a temporary
//! folder, which is then renamed, so that it is complete or absent. A lock serializes concurrent
//! set-ups.

mod apt;
mod babeltrace;
mod install;
mod library;
mod linux;
mod lttng;
mod musl;
mod packages;
mod papi;
mod qemu;

use serde::{Deserialize, Serialize};

pub use babeltrace::babeltrace2;
pub(crate) use install::check_space;
pub use linux::{Linux, linux};
pub use lttng::Lttng;
pub use musl::{Musl, musl};
pub(crate) use packages::packages;
pub use papi::papi_tests;
pub use qemu::Qemu;

use crate::{Result, output, project::Project};

/// The tools that other tasks need.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tools {
    /// The sources of `core` and `alloc`: the folder `library`.
    pub library: std::path::PathBuf,
    /// QEMU and its firmware.
    pub qemu: Qemu,
}

/// Finds or fetches all tools.
///
/// # Errors
/// A tool is missing and cannot be fetched.
pub fn tools(project: &Project) -> Result<Tools> {
    Ok(Tools { library: library(project)?, qemu: qemu(project)? })
}

/// Finds or fetches QEMU and its firmware.
///
/// # Errors
/// They are missing and cannot be fetched.
pub fn qemu(project: &Project) -> Result<Qemu> {
    qemu::find_or_fetch(project)
}

/// Finds or fetches LTTng-UST.
///
/// # Errors
/// LTTng-UST is missing and cannot be fetched.
pub fn lttng(project: &Project) -> Result<Lttng> {
    lttng::find_or_fetch(project)
}

/// Finds or fetches the sources of Rust's library.
///
/// # Errors
/// They are missing and cannot be fetched.
pub fn library(project: &Project) -> Result<std::path::PathBuf> {
    library::find_or_fetch(project)
}

/// Fetches the tools and prints their paths.
///
/// # Errors
/// A tool is missing and cannot be fetched.
pub fn main(project: &Project) -> Result<u8> {
    let tools = tools(project)?;
    output::text(&format!(
        "library sources: {}\nQEMU:            {}\nfirmware:        {}\n",
        tools.library.display(),
        tools.qemu.describe(),
        tools.qemu.firmware.display()
    ))?;
    Ok(0)
}
