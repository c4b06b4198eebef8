//! Descriptions of the processor, its PMU and the program, from CPUID and the files of `/proc`.

use alloc::{boxed::Box, format, string::String};
use core::{
    arch::x86_64::_rdtsc,
    ffi::{c_int, c_void},
};

use raw_cpuid::{CpuId, CpuIdReader, CpuIdReaderNative};
use tally_pmu::{DetectedPmu, detect};
use tally_rust::{io::read_file, session::MAX_EVENTS, sys};

use crate::{
    layout::{ComponentInfo, HardwareInfo, LEVELS, LibraryInfo, MemoryInfo, ProgramInfo, flags},
    pointers::{put, zeros},
};

/// Domains: ring 3, ring 0.
pub(crate) const USER: c_int = 1;
pub(crate) const KERNEL: c_int = 2;
/// Granularity: each thread.
pub(crate) const THREAD: c_int = 1;
/// Name of the component.
pub(crate) const COMPONENT: &str = "tally";

const VENDOR_INTEL: c_int = 1;
const VENDOR_AMD: c_int = 2;
/// `CLOCK_MONOTONIC`.
const REAL: u64 = 1;
/// `CLOCK_THREAD_CPUTIME_ID`.
const OF_THREAD: u64 = 3;
/// Duration of the clock rate measurement.
const MEASURED_NS: i64 = 200_000;

/// Properties that do not change while the program runs.
pub(crate) struct Machine {
    /// Detected PMU; `None` if the processor has no PMU that Tally drives.
    pub(crate) pmu: Option<DetectedPmu>,
    pub(crate) hardware: &'static HardwareInfo,
}

impl Machine {
    pub(crate) fn detect() -> Machine {
        let hardware = Box::leak(Box::new(hardware()));
        Machine { pmu: detect(CpuIdReaderNative).ok(), hardware }
    }

    /// Returns the number of counters of the PMU.
    pub(crate) fn counters(&self) -> c_int {
        self.pmu.map_or(0, |pmu| {
            let info = pmu.info();
            c_int::from(info.general) + c_int::from(info.pinned)
        })
    }

    /// Returns the description of the only component.
    pub(crate) fn component(&self, presets: usize) -> ComponentInfo {
        let mut info: ComponentInfo = zeros();
        put(&mut info.name, COMPONENT);
        put(&mut info.short_name, COMPONENT);
        put(&mut info.description, "Tally: estimates of logical counters");
        put(&mut info.version, env!("CARGO_PKG_VERSION"));
        put(&mut info.support_version, "n/a");
        put(&mut info.kernel_version, "n/a");
        info.num_cntrs = self.counters();
        info.num_mpx_cntrs = MAX_EVENTS as c_int;
        info.num_preset_events = presets as c_int;
        info.num_native_events =
            self.pmu.map_or(0, |pmu| pmu.catalogue().entries().count()) as c_int;
        info.default_domain = USER;
        info.available_domains = USER | KERNEL;
        info.default_granularity = THREAD;
        info.available_granularities = THREAD;
        info.flags = flags::HARDWARE_INTERRUPT
            | flags::KERNEL_MULTIPLEX
            | flags::FAST_COUNTER_READ
            | flags::FAST_REAL_TIMER;
        info
    }
}

/// Returns a clock's time in nanoseconds.
fn clock_ns(clock: u64) -> i64 {
    let mut time = [0_i64; 2];
    // SAFETY: the call writes two words.
    unsafe { sys::call(sys::CLOCK_GETTIME, [clock, time.as_mut_ptr() as u64, 0, 0, 0, 0]) };
    time[0] * 1_000_000_000 + time[1]
}

/// Returns nanoseconds since boot.
pub(crate) fn real_ns() -> i64 {
    clock_ns(REAL)
}

/// Returns the nanoseconds for which the calling thread has run.
pub(crate) fn thread_ns() -> i64 {
    clock_ns(OF_THREAD)
}

/// Returns TSC ticks since boot.
pub(crate) fn real_cycles() -> i64 {
    // SAFETY: every x86-64 processor has the instruction, and ring 3 may use it.
    unsafe { _rdtsc() as i64 }
}

/// Returns the number of the calling thread.
pub(crate) fn thread() -> u64 {
    // SAFETY: the call has no buffer.
    unsafe { sys::call(sys::GETTID, [0; 6]) as u64 }
}

/// Returns TSC ticks per microsecond.
fn clock_mhz() -> c_int {
    let (cycles, ns) = (real_cycles(), real_ns());
    loop {
        let passed = real_ns() - ns;
        if passed >= MEASURED_NS {
            return (((real_cycles() - cycles) * 1000 + passed / 2) / passed) as c_int;
        }
    }
}

fn text_of(path: &str) -> String {
    let bytes = read_file(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the value of an environment variable.
pub(crate) fn variable(name: &str) -> Option<String> {
    let all = text_of("/proc/self/environ");
    let values = all.split('\0').filter_map(|variable| variable.split_once('='));
    values.into_iter().find(|(of, _)| *of == name).map(|(_, value)| value.into())
}

fn hardware() -> HardwareInfo {
    let id = CpuId::new();
    let mut info: HardwareInfo = zeros();
    let cpus = text_of("/proc/cpuinfo");
    let cpus = cpus.lines().filter(|line| line.starts_with("processor"));
    info.totalcpus = (cpus.count() as c_int).max(1);
    (info.ncpu, info.cores) = (info.totalcpus, info.totalcpus);
    (info.threads, info.sockets, info.nnodes) = (1, 1, 1);
    let vendor = id.get_vendor_info();
    let vendor = vendor.as_ref().map_or("unknown", |vendor| vendor.as_str());
    info.vendor = match vendor {
        "GenuineIntel" => VENDOR_INTEL,
        "AuthenticAMD" => VENDOR_AMD,
        _ => 0,
    };
    put(&mut info.vendor_string, vendor);
    let brand = id.get_processor_brand_string();
    put(&mut info.model_string, brand.as_ref().map_or("unknown", |brand| brand.as_str().trim()));
    if let Some(of) = id.get_feature_info() {
        info.cpuid_family = of.family_id().into();
        info.cpuid_model = of.model_id().into();
        info.cpuid_stepping = of.stepping_id().into();
        info.virtualized = of.has_hypervisor().into();
        (info.model, info.revision) = (info.cpuid_model, f32::from(of.stepping_id()));
    }
    info.clock_mhz = clock_mhz();
    (info.cpu_max_mhz, info.cpu_min_mhz) = (info.clock_mhz, info.clock_mhz);
    info.mhz = info.clock_mhz as f32;
    caches(&mut info);
    info
}

/// Describes the caches: Intel's leaf 4 and AMD's Fn8000_001D have the same format.
fn caches(info: &mut HardwareInfo) {
    let reader = CpuIdReaderNative;
    let leaf = match info.vendor {
        VENDOR_INTEL if reader.cpuid1(0).eax >= 4 => 4,
        VENDOR_AMD if reader.cpuid1(0x8000_0000).eax >= 0x8000_001d => 0x8000_001d,
        _ => return,
    };
    for index in 0..8 {
        let of = reader.cpuid2(leaf, index);
        let field =
            |register: u32, low: u32, bits: u32| (register >> low & ((1 << bits) - 1)) as c_int;
        let (kind, level) = (field(of.eax, 0, 5), field(of.eax, 5, 3));
        // PAPI's types: 1 instructions, 2 data, 3 both. CPUID's: 1 data, 2 instructions, 3 both.
        let Some(kind) = [0, 2, 1, 3].get(kind as usize).copied().filter(|kind| *kind > 0) else {
            return;
        };
        let line_size = field(of.ebx, 0, 12) + 1;
        let associativity = field(of.ebx, 22, 10) + 1;
        let num_lines =
            (field(of.ebx, 12, 10) + 1) * associativity * (of.ecx as c_int).saturating_add(1);
        let at = level.clamp(1, LEVELS as c_int);
        info.cache_levels = info.cache_levels.max(at);
        let caches = &mut info.level[at as usize - 1].cache;
        if let Some(cache) = caches.iter_mut().find(|cache| cache.kind == 0) {
            (cache.kind, cache.line_size, cache.num_lines) = (kind, line_size, num_lines);
            (cache.associativity, cache.size) = (associativity, line_size * num_lines);
        }
    }
}

/// Returns the program's file and its ranges in memory.
pub(crate) fn program() -> ProgramInfo {
    let mut info: ProgramInfo = zeros();
    let name = format!("/{}", text_of("/proc/self/comm").trim());
    let maps = text_of("/proc/self/maps");
    let areas = maps.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let access = words.next()?;
        words.nth(2)?;
        let file = words.next().filter(|file| file.starts_with('/'))?;
        Some((file, access, address(start)?, address(end)?))
    });
    let mut full_name = name;
    for (file, access, start, end) in areas {
        let part = match access.get(..3) {
            Some("r-x") => 0,
            Some("rw-") => 2,
            _ => continue,
        };
        full_name = file.into();
        if info.ranges[part].is_null() {
            info.ranges[part] = start as *mut c_void;
        }
        info.ranges[part + 1] = end as *mut c_void;
    }
    // Zero-initialized data has no area of its own.
    (info.ranges[4], info.ranges[5]) = (info.ranges[3], info.ranges[3]);
    put(&mut info.fullname, &full_name);
    put(&mut info.name, &full_name);
    info
}

/// Describes no shared libraries: the program is static.
pub(crate) fn libraries() -> LibraryInfo {
    zeros()
}

/// Returns the program's memory: sizes in kilobytes, except the page size, which is in bytes.
pub(crate) fn memory() -> MemoryInfo {
    let status = text_of("/proc/self/status");
    let size = |name: &str| -> i64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let word = line.and_then(|line| line.split_ascii_whitespace().next());
        word.and_then(|word| word.parse().ok()).unwrap_or(0)
    };
    let (peak, all, resident) = (size("VmPeak:"), size("VmSize:"), size("VmRSS:"));
    let (high, locked) = (size("VmHWM:"), size("VmLck:"));
    MemoryInfo([peak, all, resident, high, 0, 0, 0, 0, locked, 0, 4096, 0])
}
