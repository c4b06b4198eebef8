//! Structures of `papi.h`, with the layout that C gives them.

use core::ffi::{c_char, c_int, c_uint, c_void};

use crate::pointers::Plain;

pub(crate) const MIN_TEXT: usize = 64;
pub(crate) const MAX_TEXT: usize = 128;
pub(crate) const TWICE_TEXT: usize = 256;
pub(crate) const HUGE_TEXT: usize = 1024;
const PMUS: usize = 80;
const TERMS: usize = 12;
/// Number of caches and TLBs of a level, and of levels.
const PLACES: usize = 6;
pub(crate) const LEVELS: usize = 4;

macro_rules! plain {
    ($($name:ty),*) => {
        // SAFETY: the structure has integers, floating-point numbers, raw pointers, and arrays and
        // structures of them.
        $(unsafe impl Plain for $name {})*
    };
}

plain!(EventInfo, CacheInfo, HardwareInfo, ComponentInfo, ProgramInfo, LibraryInfo, MemoryInfo);

/// `PAPI_event_info_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct EventInfo {
    pub(crate) event_code: c_uint,
    pub(crate) symbol: [c_char; HUGE_TEXT],
    pub(crate) short_descr: [c_char; MIN_TEXT],
    pub(crate) long_descr: [c_char; HUGE_TEXT],
    pub(crate) component_index: c_int,
    pub(crate) units: [c_char; MIN_TEXT],
    /// Location, type of the data and of the value, time scope, type and rate of updates.
    pub(crate) kinds: [c_int; 6],
    pub(crate) count: c_uint,
    pub(crate) event_type: c_uint,
    pub(crate) derived: [c_char; MIN_TEXT],
    pub(crate) postfix: [c_char; TWICE_TEXT],
    pub(crate) code: [c_uint; TERMS],
    pub(crate) name: [[c_char; TWICE_TEXT]; TERMS],
    pub(crate) note: [c_char; HUGE_TEXT],
}

/// `PAPI_mh_cache_info_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CacheInfo {
    pub(crate) kind: c_int,
    pub(crate) size: c_int,
    pub(crate) line_size: c_int,
    pub(crate) num_lines: c_int,
    pub(crate) associativity: c_int,
}

/// `PAPI_mh_level_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct LevelInfo {
    /// Type, entries, page size and associativity of each TLB. All are empty, because CPUID's
    /// description is not read.
    pub(crate) tlb: [[c_int; 4]; PLACES],
    pub(crate) cache: [CacheInfo; PLACES],
}

/// `PAPI_hw_info_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct HardwareInfo {
    pub(crate) ncpu: c_int,
    pub(crate) threads: c_int,
    pub(crate) cores: c_int,
    pub(crate) sockets: c_int,
    pub(crate) nnodes: c_int,
    pub(crate) totalcpus: c_int,
    pub(crate) vendor: c_int,
    pub(crate) vendor_string: [c_char; MAX_TEXT],
    pub(crate) model: c_int,
    pub(crate) model_string: [c_char; MAX_TEXT],
    pub(crate) revision: f32,
    pub(crate) cpuid_family: c_int,
    pub(crate) cpuid_model: c_int,
    pub(crate) cpuid_stepping: c_int,
    pub(crate) cpu_max_mhz: c_int,
    pub(crate) cpu_min_mhz: c_int,
    pub(crate) cache_levels: c_int,
    pub(crate) level: [LevelInfo; LEVELS],
    pub(crate) virtualized: c_int,
    pub(crate) virtual_vendor_string: [c_char; MAX_TEXT],
    pub(crate) virtual_vendor_version: [c_char; MAX_TEXT],
    pub(crate) mhz: f32,
    pub(crate) clock_mhz: c_int,
    pub(crate) reserved: [c_int; 8],
}

/// `PAPI_component_info_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ComponentInfo {
    pub(crate) name: [c_char; MAX_TEXT],
    pub(crate) short_name: [c_char; MIN_TEXT],
    pub(crate) description: [c_char; MAX_TEXT],
    pub(crate) version: [c_char; MIN_TEXT],
    pub(crate) support_version: [c_char; MIN_TEXT],
    pub(crate) kernel_version: [c_char; MIN_TEXT],
    pub(crate) disabled_reason: [c_char; HUGE_TEXT],
    pub(crate) disabled: c_int,
    pub(crate) initialized: c_int,
    pub(crate) index: c_int,
    pub(crate) num_cntrs: c_int,
    pub(crate) num_mpx_cntrs: c_int,
    pub(crate) num_preset_events: c_int,
    pub(crate) num_native_events: c_int,
    pub(crate) default_domain: c_int,
    pub(crate) available_domains: c_int,
    pub(crate) default_granularity: c_int,
    pub(crate) available_granularities: c_int,
    pub(crate) hardware_intr_sig: c_int,
    pub(crate) component_type: c_int,
    pub(crate) pmu_names: [*mut c_char; PMUS],
    pub(crate) reserved: [c_int; 8],
    /// Bit fields, from bit 0 on: [`flags`].
    pub(crate) flags: c_uint,
}

/// Bits of [`ComponentInfo::flags`] that are set.
pub(crate) mod flags {
    use core::ffi::c_uint;

    pub(crate) const HARDWARE_INTERRUPT: c_uint = 1 << 0;
    pub(crate) const KERNEL_MULTIPLEX: c_uint = 1 << 4;
    pub(crate) const FAST_COUNTER_READ: c_uint = 1 << 5;
    pub(crate) const FAST_REAL_TIMER: c_uint = 1 << 6;
}

/// `PAPI_exe_info_t`: the full name, then the address map of the same name and its ranges.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ProgramInfo {
    pub(crate) fullname: [c_char; HUGE_TEXT],
    pub(crate) name: [c_char; HUGE_TEXT],
    /// Start and end of the text, of the data, and of the zero-initialized data.
    pub(crate) ranges: [*mut c_void; 6],
}

/// `PAPI_shlib_info_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct LibraryInfo {
    pub(crate) map: *mut c_void,
    pub(crate) count: c_int,
}

/// `PAPI_dmem_info_t`, in its order: peak, size, resident, high water mark, shared, text, library,
/// heap, locked, stack, size of a page, page table.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct MemoryInfo(pub(crate) [i64; 12]);

/// `PAPI_sprofil_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Histogram {
    pub(crate) base: *mut c_void,
    /// Size in bytes.
    pub(crate) size: c_uint,
    pub(crate) offset: *mut c_void,
    /// Buckets per two bytes of text, times 65,536.
    pub(crate) scale: c_uint,
}

/// First words of `PAPI_option_t`, which contain all of its members that are used: numbers, a
/// pointer in the first two, or a pointer in the last two.
pub(crate) type OptionWords = [c_int; 4];

/// `PAPI_overflow_handler_t`.
pub(crate) type OverflowHandler =
    extern "C" fn(set: c_int, address: *mut c_void, vector: i64, context: *mut c_void);
