//! A virtual PMU for x86-64 guests of stock QEMU's TCG, as a plugin.
//!
//! `qemu-system-x86_64 -plugin libtally_vpmu_plugin.so,profile=zen4,truth=truth.json …`
//!
//! The registers are in `tally-vpmu`, the machine that they count in `tally-model`; this crate is
//! the glue to QEMU's plugin interface, version 7. All entries from QEMU are `extern "C"` functions
//! named `on_…`; each sheds its pointers at once.

mod after;
mod apic;
mod dataflow;
mod decode;
mod exec;
mod exit;
mod ffi;
mod gear;
mod intercept;
mod log;
mod options;
mod planned;
mod region;
mod registers;
mod restart;
mod series;
mod translate;
mod unit;
mod vcpu;

use std::ffi::{CStr, c_char, c_int};

use options::Options;

/// The version of the plugin interface that QEMU looks for.
#[unsafe(no_mangle)]
#[used]
pub static qemu_plugin_version: c_int = ffi::API_VERSION;

/// QEMU loads the plugin.
///
/// # Safety
/// QEMU calls it, once, with what its plugin interface promises: `info` and `argc` strings at
/// `argv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    plugin: u64,
    info: *const std::ffi::c_void,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let info = unsafe { &*info.cast::<ffi::Info>() };
    let arguments: Vec<_> = (0..argc as usize)
        .map(|index| {
            // SAFETY: the caller's promise: `argc` pointers.
            let argument = unsafe { *argv.add(index) };
            // SAFETY: each to a string.
            unsafe { CStr::from_ptr(argument) }.to_string_lossy().into_owned()
        })
        .collect();
    let machine: Vec<_> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let options = check(info, &machine)
        .and_then(|()| Options::parse(&arguments))
        .and_then(|options| options.check_cpus(info.max_vcpus as u32));
    match options.and_then(install) {
        Ok(()) => {
            gear::start(plugin, options::counts_instructions(&machine));
            0
        }
        Err(error) => {
            eprintln!("tally-vpmu: {error}");
            1
        }
    }
}

/// Whether the plugin can serve this QEMU, with that command line.
fn check(info: &ffi::Info, machine: &[String]) -> Result<(), String> {
    // SAFETY: QEMU's name of its target is a string.
    let target = unsafe { CStr::from_ptr(info.target_name) };
    if target.to_bytes() != b"x86_64" || !info.system_emulation {
        return Err("needs qemu-system-x86_64".to_owned());
    }
    if !(info.version_min..=info.version_current).contains(&ffi::API_VERSION) {
        return Err(format!(
            "this QEMU has plugin interface {} to {}, not {}; use QEMU 11.1 or later",
            info.version_min,
            info.version_current,
            ffi::API_VERSION
        ));
    }
    if info.max_vcpus as usize > vcpu::MAX_VCPUS {
        return Err(format!("serves at most {} CPUs; lower -smp's maxcpus", vcpu::MAX_VCPUS));
    }
    options::check_machine(machine, info.max_vcpus as usize)
}

fn install(options: Options) -> Result<(), String> {
    if let Some(path) = &options.log {
        log::open(path)?;
    }
    if let Some(path) = &options.truth {
        exit::try_truth(path)?;
    }
    if let Some(series) = &options.series {
        series::create(series, &options.profile)?;
    }
    exit::keep(options);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_interface_or_target_is_refused() {
        let info = |target: &'static CStr, versions: (c_int, c_int)| ffi::Info {
            target_name: target.as_ptr(),
            version_min: versions.0,
            version_current: versions.1,
            system_emulation: true,
            smp_vcpus: 1,
            max_vcpus: 1,
        };
        assert_eq!(check(&info(c"x86_64", (2, ffi::API_VERSION)), &[]), Ok(()));
        let refused = |info| check(&info, &[]).unwrap_err();
        assert!(refused(info(c"x86_64", (8, 9))).contains("interface 8 to 9, not 7"));
        assert!(refused(info(c"x86_64", (0, 4))).contains("11.1 or later"));
        assert!(refused(info(c"aarch64", (2, 7))).contains("qemu-system-x86_64"));
        let many = ffi::Info { max_vcpus: 257, ..info(c"x86_64", (2, 7)) };
        assert!(refused(many).contains("at most 256 CPUs"));
    }
}
