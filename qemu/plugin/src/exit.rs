//! The start of each vCPU, and the truth file at the end of the run.

use std::{
    ffi::{c_int, c_uint, c_void},
    fs,
    path::{Path, PathBuf},
};

use tally_abi::truth::Truth;
use tally_vpmu::PluginOptions;

use crate::{
    blocks::{self, Blocks},
    cores::{self, Cores},
    handlers,
    instructions::{self, Instructions},
    log, options, region, series,
    vcpu::{self, Vcpu},
};

unsafe extern "C" {
    fn _exit(status: c_int) -> !;
}

/// Called when QEMU has initialized a vCPU.
pub(crate) extern "C" fn on_vcpu_init(index: c_uint, _: *mut c_void) {
    let Some(options) = options::get() else { return };
    if let Err(error) = vcpu::create(index as usize, options) {
        eprintln!("tally-vpmu: {error}");
        // SAFETY: ends the process at once; QEMU's own exit would wait for this thread.
        unsafe { _exit(1) }
    }
}

/// Called when QEMU exits.
pub(crate) extern "C" fn on_exit(_: *mut c_void) {
    let Some(options) = options::get() else { return };
    vcpu::all().for_each(Vcpu::end_truth);
    let places = || vcpu::all().filter_map(|vcpu| vcpu.places.as_mut());
    let blocks = || {
        places().filter_map(|places| places.blocks.take()).for_each(Blocks::finish);
        options.blocks.as_deref().map_or(Ok(()), |path| blocks::write(path, &options.profile))
    };
    let instructions = || {
        let all = places().filter_map(|places| places.instructions.take());
        all.for_each(Instructions::finish);
        options.instructions.as_deref().map_or(Ok(()), instructions::write)
    };
    let truth = || match &options.truth {
        Some(path) => write(path, &all_truth(options))
            .map_err(|error| format!("truth={}: {error}", path.display())),
        None => Ok(()),
    };
    if let Err(error) = series::finish()
        .and_then(|()| handlers::finish())
        .and_then(|()| blocks())
        .and_then(|()| instructions())
        .and_then(|()| truth())
    {
        log::line(&error);
        // A run whose truth is missing must not look like a run without one.
        // SAFETY: QEMU has finished; nothing is left to be written but what just failed.
        unsafe { _exit(1) }
    }
}

/// The truth of all vCPUs and of their shadow cores.
fn all_truth(options: &PluginOptions) -> Truth {
    let vcpus: Vec<&Vcpu> = vcpu::all().map(|vcpu| &*vcpu).collect();
    let cores: Vec<&Cores> = vcpus.iter().map(|vcpu| &vcpu.core).collect();
    Truth {
        shadows: cores::shadows(options, &cores),
        ..region::truth(&options.profile, vcpus.iter().map(|vcpu| &vcpu.truth))
    }
}

/// Path of the file that is renamed to the truth file when it is complete.
fn partial(path: &Path) -> PathBuf {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".part");
    partial.into()
}

/// Checks that the truth can be written, so that the run fails now instead of at its end.
pub(crate) fn check_truth_path(path: &Path) -> Result<(), String> {
    fs::write(partial(path), "").map_err(|error| format!("truth={}: {error}", path.display()))
}

/// Writes the truth to another file and renames that, so that there is never an incomplete truth.
fn write(path: &Path, truth: &Truth) -> Result<(), String> {
    let text = serde_json::to_string_pretty(truth).map_err(|error| error.to_string())?;
    fs::write(partial(path), text).map_err(|error| error.to_string())?;
    fs::rename(partial(path), path).map_err(|error| error.to_string())
}
