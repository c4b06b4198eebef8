//! The Tally kernel: boots a machine, runs programs on it, and counts what they do.
//!
//! [`boot`] runs once, on the first CPU: memory, the PMU, this CPU, the other CPUs, the programs.
//! Then every CPU runs its idle loop, the scheduler and programs. See ARCHITECTURE.md for the map.

#![no_std]
#![no_main]

extern crate alloc;

use core::arch::asm;

mod arch;
mod calls;
mod cpu;
mod entry;
mod files;
mod machine;
mod measure;
mod memory;
mod plant;
mod sched;
mod task;

use bootloader_api::{
    BootInfo, BootloaderConfig,
    config::{Mapping, Mappings},
};
use tally_abi::{
    ExitStatus,
    boot::{
        CommandLine, FW_CFG_COMMAND_LINE, KERNEL_BASE, MAX_CPUS, RAMDISK_COMMAND_LINE, WIRE_PORT,
    },
    wire::Message,
};

use files::ramdisk;
use machine::{
    clock,
    console::{self, Place},
    fw_cfg,
    reference::Reference,
    screen, serial,
};
use memory::{audit, frames, heap, kernel, stacks, takeover};

/// Message for a machine that cannot be halted.
const NO_HALTS: &str = "halts need a PMU with two general counters: boot without `halt`";
/// Message for a machine without a timer to calibrate against.
const NO_REFERENCE: &str = "the machine has no timer of a known frequency: neither a PIT, an HPET, an \
                            ACPI PM timer, nor a processor that tells its TSC's";
/// Length of the scheduler's turn, in microseconds.
const TURN_US: u64 = 10_000;
/// Number of waits by which clocks are calibrated. The shortest counts: a system-management
/// interrupt only lengthens a wait.
const WAITS: usize = 3;

const CONFIG: BootloaderConfig = {
    let mut config = BootloaderConfig::new_default();
    let mut mappings = Mappings::new_default();
    mappings.physical_memory = Some(Mapping::Dynamic);
    mappings.kernel_base = Mapping::FixedAddress(KERNEL_BASE);
    mappings.dynamic_range_start = Some(KERNEL_BASE);
    config.mappings = mappings;
    config.kernel_stack_size = 64 * 1024;
    config
};

bootloader_api::entry_point!(boot, config = &CONFIG);

fn boot(info: &'static mut BootInfo) -> ! {
    clock::start();
    init_log(info);
    let stack = info.kernel_stack_bottom;
    stacks::note_boot_stack(stack..stack + info.kernel_stack_len);
    init_memory(info);
    // The boot loader's stack is wherever the boot loader had room.
    let stack = kernel::allocate_stack();
    let info = core::ptr::from_ref(info);
    // SAFETY: (1) the stack is new, and reaches below its top; (2) `boot_here` does not return, and
    // takes the reference that this function gives up.
    unsafe {
        asm!("mov rsp, {}", "xor ebp, ebp", "call {}", in(reg) stack.as_u64(), sym boot_here,
             in("rdi") info, options(noreturn));
    }
}

/// The rest of [`boot`], on a stack of the kernel's.
extern "C" fn boot_here(info: &'static BootInfo) -> ! {
    let text = command_line().leak();
    let rsdp = info.rsdp_addr.into_option();
    let parsed = CommandLine::parse(text);
    // A line that cannot be read may ask for the wire.
    open_console(rsdp, parsed.as_ref().map_or(true, |line| line.wire));
    let line = match parsed {
        Ok(line) => line,
        Err(bad) => refuse_command_line(bad.0),
    };
    serial::set_log_level(line.log);
    log::debug!("command line: {text}");
    combine_writes();
    let (ramdisk, memory) = (info.ramdisk_len, frames::in_use_bytes());
    log::debug!("ramdisk: {ramdisk} bytes; memory in use: {memory} bytes");
    init_messages(&line);
    arch::lapic::mask_legacy_interrupts();
    clock::set_date(line.date);
    sched::send_files_at_end(line.send_files);
    measure::init(&line);
    refuse_halts_without_pmu(&line);
    entry::start_cpu(0);
    machine::io_apic::mask_all(rsdp);
    let timer_ticks = calibrate_timer(rsdp);
    log::debug!("timer: {timer_ticks} ticks a turn of {TURN_US} µs");
    let cpus = entry::smp::start_others(rsdp, line.cpus, timer_ticks);
    announce(cpus, info.ramdisk_len, line.seed);
    plant::plant(line.fail);
    sched::set_jobs(line);
    if !sched::begin_job() {
        sched::finish();
    }
    serial::send(&Message::Ready { boot_ns: clock::now_ns() });
    entry::smp::release();
    // Not earlier: a turn begins with the programs, however long the boot took.
    // SAFETY: interrupts are off and no other reference to this CPU's state is live.
    unsafe { cpu::Cpu::current() }.lapic.start_timer(timer_ticks);
    cpu::run()
}

/// Opens the log on the first serial port and on the screen, where the machine has them.
fn init_log(info: &mut BootInfo) {
    serial::init_log();
    if let Some(framebuffer) = info.framebuffer.take() {
        screen::init(framebuffer);
    }
    log::info!("tally {}", env!("CARGO_PKG_VERSION"));
}

/// Makes this CPU combine writes to the screen: one by one, those of all its pixels take up to a
/// second.
fn combine_writes() {
    arch::control::set_memory_types();
    if let Some(pixels) = screen::pixels() {
        log::debug!("screen: writes to {} pages combine", kernel::combine_writes(pixels));
    }
}

/// Writes the log to firmware's console too, unless the wire has that port.
fn open_console(rsdp: Option<u64>, has_wire: bool) {
    let console = machine::acpi::console(rsdp);
    if let Some(console) = console.filter(|it| !has_wire || *it != Place::Port(WIRE_PORT)) {
        console::follow(console);
    }
}

/// Opens the wire if the command line asks for it. Without the wire the screen shows the results.
fn init_messages(line: &CommandLine) {
    if line.wire {
        serial::init_wire();
    }
    if line.codes_ms.is_some() || !serial::has_wire() {
        screen::show_results_at_end(line.codes_ms);
    }
}

/// Takes over memory, its page tables and the ramdisk from the boot loader.
fn init_memory(info: &'static BootInfo) {
    let offset = info.physical_memory_offset.into_option().expect("CONFIG requests the mapping");
    frames::init(&info.memory_regions, offset);
    let space = takeover::take_over(&info.memory_regions, offset);
    kernel::init(space.expect("there is memory for the kernel's page tables"));
    audit::begin();
    let ramdisk = info.ramdisk_addr.into_option().map(|start| {
        // SAFETY: the boot loader mapped the ramdisk there for the kernel, and nothing writes or
        // unmaps it; its frames are not in the usable regions.
        unsafe { core::slice::from_raw_parts(start as *const u8, info.ramdisk_len as usize) }
    });
    heap::apart(|| files::init(ramdisk));
}

/// Command line: from the host's firmware configuration, else from the ramdisk.
fn command_line() -> alloc::string::String {
    fw_cfg::read_text(FW_CFG_COMMAND_LINE)
        .or_else(|| {
            let bytes = ramdisk::file(RAMDISK_COMMAND_LINE)?;
            Some(alloc::string::String::from_utf8_lossy(bytes).into_owned())
        })
        .unwrap_or_default()
}

fn refuse_command_line(option: &str) -> ! {
    // The unreadable line may or may not say `wire`: report on both serial ports.
    serial::init_wire();
    let why = alloc::format!("unknown or malformed option on the command line: `{option}`");
    sched::refuse("kernel", ExitStatus::Usage, &why);
    sched::finish()
}

fn refuse_halts_without_pmu(line: &CommandLine) {
    if line.halts.is_some() && measure::pmu_info().is_none() {
        sched::refuse("kernel", ExitStatus::NoPmu, NO_HALTS);
        sched::finish()
    }
}

/// Calibrates the time-stamp counter and the scheduler's timer. Returns the timer's ticks of one
/// turn.
fn calibrate_timer(rsdp: Option<u64>) -> u32 {
    // SAFETY: interrupts are off and no other reference to this CPU's state is live.
    let lapic = unsafe { cpu::Cpu::current() }.lapic;
    let by = |reference: Reference| {
        let wait = || clock::measure(|| reference.wait_us(TURN_US));
        let (mut shortest, mut shortest_timer) = (u64::MAX, u32::MAX);
        for _ in 0..WAITS {
            let (ticks, timer_ticks) = lapic.measure_timer(wait)?;
            log::debug!("clock: {ticks} ticks in {TURN_US} µs by {reference:?}");
            shortest = shortest.min(ticks);
            shortest_timer = shortest_timer.min(timer_ticks);
        }
        match reference {
            Reference::Tsc(hz) => clock::set_speed(hz, clock::SECOND_NS),
            _ => clock::set_speed(shortest, TURN_US * 1000),
        }
        Some(shortest_timer)
    };
    let Some(ticks) = Reference::all(rsdp).find_map(by) else {
        sched::refuse("kernel", ExitStatus::MachineFailed, NO_REFERENCE);
        sched::finish()
    };
    ticks
}

fn announce(cpus: u32, ramdisk_bytes: u64, seed: u64) {
    let memory_bytes = frames::in_use_bytes() - ramdisk_bytes;
    log::info!("{cpus} CPUs (maximum {MAX_CPUS})");
    let (tsc_hz, pmu) = (clock::tsc_hz(), measure::pmu_info());
    serial::send(&Message::Booted { cpus, memory_bytes, seed, tsc_hz, pmu });
    measure::send_checked();
}
