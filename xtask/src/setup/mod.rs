//! `cargo xtask setup`: fetches what this machine lacks into the project's own folder.
//!
//! Nothing on the system changes and root is not needed. What is fetched is unpacked beside its
//! place and then renamed, so that it is there whole or not at all; a lock keeps two set-ups apart.

mod apt;
mod install;
mod library;
mod linux;
mod lttng;
mod musl;
mod qemu;

use serde::{Deserialize, Serialize};

pub(crate) use install::check_space;
pub use linux::{Linux, linux};
pub use lttng::Lttng;
pub use musl::{Musl, musl};
pub use qemu::Qemu;

use crate::{Result, output, project::Project};

/// What the other tasks need of this machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tools {
    /// The sources of `core` and `alloc`: the folder `library`.
    pub library: std::path::PathBuf,
    /// QEMU and its firmware.
    pub qemu: Qemu,
}

/// Sees to it that everything is there.
///
/// # Errors
/// Something is missing and cannot be fetched.
pub fn tools(project: &Project) -> Result<Tools> {
    Ok(Tools { library: library(project)?, qemu: qemu(project)? })
}

/// Sees to it that QEMU and its firmware are there.
///
/// # Errors
/// They are missing and cannot be fetched.
pub fn qemu(project: &Project) -> Result<Qemu> {
    qemu::find_or_fetch(project)
}

/// Sees to it that LTTng-UST is there.
///
/// # Errors
/// It is missing and cannot be fetched.
pub fn lttng(project: &Project) -> Result<Lttng> {
    lttng::find_or_fetch(project)
}

/// Sees to it that the library sources are there.
///
/// # Errors
/// They are missing and cannot be fetched.
pub fn library(project: &Project) -> Result<std::path::PathBuf> {
    library::find_or_fetch(project)
}

/// Does the task.
///
/// # Errors
/// Something is missing and cannot be fetched.
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
