//! A virtual PMU for x86-64 guests of stock QEMU's TCG, as a plugin.
//!
//! `qemu-system-x86_64 -plugin libtally_vpmu_plugin.so,profile=zen4,truth=truth.json …`
//!
//! `tally-vpmu` implements the registers and `tally-model` the machine that they count; this crate
//! connects them to QEMU's plugin interface, version 7. QEMU enters through `extern "C"` functions
//! named `on_…`, each of which turns its pointers into references and calls safe functions.
//!
//! Layers, each using only those above it: `ffi`, `guest`, `registers`; `options`, `log`, `files`,
//! `totals`, `tag`, `region`, `series`, `blocks`, `instructions`, `cores`, `places`; `pending`,
//! `injection`, `timestamp`, `precision`; `vcpu`; `handlers`, `injector`, `precise`, `fixup`,
//! `restart`, `x2apic`; `instrumentation`, `replaced`, `intercept`, `exec`, `exit`; `translate`.

mod apic;
mod blocks;
mod branches;
mod code;
mod command_line;
mod cores;
mod dataflow;
mod decode;
mod exec;
mod exit;
mod ffi;
mod files;
mod fixup;
mod floating;
mod guest;
mod handlers;
mod injection;
mod injector;
mod instructions;
mod instrumentation;
mod intercept;
mod interrupts;
mod log;
mod options;
mod paging;
mod pending;
mod places;
mod precise;
mod precision;
mod region;
mod registers;
mod replaced;
mod restart;
mod series;
mod tag;
mod timestamp;
mod totals;
mod translate;
mod unit;
mod vcpu;
mod x2apic;

use std::{
    ffi::{CStr, c_char, c_int},
    ptr,
};

use tally_vpmu::PluginOptions;

/// The version of the plugin interface, which QEMU checks.
#[unsafe(no_mangle)]
#[used]
pub static qemu_plugin_version: c_int = ffi::API_VERSION;

/// The entry by which QEMU loads the plugin.
///
/// # Safety
/// Only QEMU may call it, once, with `info` and `argc` strings at `argv` as its plugin interface
/// specifies.
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
        .and_then(|()| PluginOptions::parse(&arguments))
        .and_then(|options| options.check_cpus(info.max_vcpus as u32));
    match options.and_then(install) {
        Ok(()) => {
            timestamp::store(timestamp::Clock::of(command_line::instruction_shift(&machine)));
            instrumentation::start(plugin, command_line::counts_instructions(&machine), register);
            0
        }
        Err(error) => {
            eprintln!("tally-vpmu: {error}");
            1
        }
    }
}

/// Checks that the plugin supports this QEMU and its command line.
fn check(info: &ffi::Info, machine: &[String]) -> Result<(), String> {
    // SAFETY: the target's name is a string.
    let target = unsafe { CStr::from_ptr(info.target_name) };
    if target.to_bytes() != b"x86_64" || !info.system_emulation {
        return Err("this QEMU emulates another target: use qemu-system-x86_64".to_owned());
    }
    if !(info.version_min..=info.version_current).contains(&ffi::API_VERSION) {
        return Err(format!(
            "this QEMU has plugin interface {} to {}, not {}: use QEMU 11.1 or later",
            info.version_min,
            info.version_current,
            ffi::API_VERSION
        ));
    }
    if info.max_vcpus as usize > vcpu::MAX_VCPUS {
        let most = vcpu::MAX_VCPUS;
        return Err(format!("{} CPUs are more than {most}: lower -smp's maxcpus", info.max_vcpus));
    }
    command_line::check_machine(machine, info.max_vcpus as usize)
}

fn install(options: PluginOptions) -> Result<(), String> {
    if let Some(path) = &options.log {
        log::open(path)?;
    }
    if let Some(path) = &options.truth {
        exit::check_truth_path(path)?;
    }
    if let Some(series) = &options.series {
        series::create(series, &options.profile)?;
    }
    for (option, path) in [("blocks", &options.blocks), ("instructions", &options.instructions)] {
        path.as_deref().map_or(Ok(()), |path| files::check(option, path))?;
    }
    if let Some(path) = &options.handlers {
        handlers::create(path)?;
    }
    options::store(options);
    Ok(())
}

/// Registers the plugin's callbacks with QEMU: at installation and after each reset.
fn register(plugin: ffi::PluginId) {
    let none = ptr::null_mut();
    // SAFETY: called at installation or from the reset's callback, where callbacks are registered.
    unsafe { ffi::qemu_plugin_register_vcpu_init_cb(plugin, exit::on_vcpu_init, none) };
    // SAFETY: likewise.
    unsafe { ffi::qemu_plugin_register_vcpu_tb_trans_cb(plugin, translate::on_translate, none) };
    // SAFETY: likewise.
    unsafe {
        ffi::qemu_plugin_register_vcpu_discon_cb(
            plugin,
            ffi::DISCON_INTERRUPT_OR_EXCEPTION,
            exec::on_discontinuity,
            none,
        );
    }
    // SAFETY: likewise.
    unsafe { ffi::qemu_plugin_register_flush_cb(plugin, translate::on_flush, none) };
    // SAFETY: likewise.
    unsafe { ffi::qemu_plugin_register_atexit_cb(plugin, exit::on_exit, none) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_another_interface_or_target() {
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
        let many = ffi::Info { max_vcpus: 1025, ..info(c"x86_64", (2, 7)) };
        assert!(refused(many).contains("1025 CPUs are more than 1024"));
    }
}
