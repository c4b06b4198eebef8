//! The ends of a run: each vCPU's start, and the truth when QEMU ends.

use std::{
    ffi::{c_int, c_uint, c_void},
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use crate::{
    log,
    options::Options,
    region, series,
    vcpu::{self, Vcpu},
};

static OPTIONS: OnceLock<Options> = OnceLock::new();

unsafe extern "C" {
    fn _exit(status: c_int) -> !;
}

/// Keeps the options for the run.
pub(crate) fn keep(options: Options) {
    let _ = OPTIONS.set(options);
}

/// The options of the run.
pub(crate) fn options() -> Option<&'static Options> {
    OPTIONS.get()
}

/// A vCPU is there.
pub(crate) extern "C" fn on_vcpu_init(index: c_uint, _: *mut c_void) {
    let Some(options) = options() else { return };
    if let Err(error) = vcpu::create(index as usize, options) {
        eprintln!("tally-vpmu: {error}");
        // SAFETY: ends the process at once; QEMU's own exit would wait for this very thread.
        unsafe { _exit(1) }
    }
}

/// QEMU ends.
pub(crate) extern "C" fn on_exit(_: *mut c_void) {
    let Some(options) = options() else { return };
    vcpu::all().for_each(Vcpu::end_truth);
    let truth = || match &options.truth {
        Some(path) => write(path, &region::truth(&options.profile, vcpu::all()))
            .map_err(|error| format!("truth={}: {error}", path.display())),
        None => Ok(()),
    };
    if let Err(error) = series::finish().and_then(|()| truth()) {
        log::line(&error);
        // A missing truth must not pass for a run without one.
        // SAFETY: QEMU is past its own end; nothing is left to be written but what just failed.
        unsafe { _exit(1) }
    }
}

/// The file that becomes the truth when it is whole.
fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    beside.into()
}

/// Fails at once where the truth could not be written at the end.
pub(crate) fn try_truth(path: &Path) -> Result<(), String> {
    fs::write(beside(path), "").map_err(|error| format!("truth={}: {error}", path.display()))
}

/// Writes beside and renames, so that there is never half a file.
fn write(path: &Path, truth: &tally_abi::truth::Truth) -> Result<(), String> {
    let text = serde_json::to_string_pretty(truth).map_err(|error| error.to_string())?;
    fs::write(beside(path), text).map_err(|error| error.to_string())?;
    fs::rename(beside(path), path).map_err(|error| error.to_string())
}
