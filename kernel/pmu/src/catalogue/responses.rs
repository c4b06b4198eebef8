//! Linux's names of off-core responses, which differ between cores whose other names are the same
//! (arch/x86/events/intel/core.c, `skl_hw_cache_extra_regs` and `snc_hw_cache_extra_regs`).

type Table = &'static [(&'static str, &'static str)];

/// Names of Skylake.
pub(super) const SKYLAKE: Table = &[
    ("LLC-loads", "cpu/event=0xb7,umask=1,offcore_rsp=0x3fc0010001/"),
    ("LLC-load-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x3ffc020001/"),
    ("LLC-stores", "cpu/event=0xb7,umask=1,offcore_rsp=0x3fc0010002/"),
    ("LLC-store-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x3ffc020002/"),
    ("node-loads", "cpu/event=0xb7,umask=1,offcore_rsp=0x1fc4000001/"),
    ("node-load-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x1ff8000001/"),
    ("node-stores", "cpu/event=0xb7,umask=1,offcore_rsp=0x1fc4000002/"),
    ("node-store-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x1ff8000002/"),
];

/// Names of Sunny Cove: those to which Linux corrected the servers' names. Linux still gives
/// clients Skylake's, whose bits the core's registers number otherwise.
pub(super) const SUNNY_COVE: Table = &[
    ("LLC-loads", "cpu/event=0xb7,umask=1,offcore_rsp=0x10001/"),
    ("LLC-load-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x3fbfc00001/"),
    ("LLC-stores", "cpu/event=0xb7,umask=1,offcore_rsp=0x3f3ffc0002/"),
    ("LLC-store-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x3f3fc00002/"),
    ("node-loads", "cpu/event=0xb7,umask=1,offcore_rsp=0x104000001/"),
    ("node-load-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x730000001/"),
    ("node-stores", "cpu/event=0xb7,umask=1,offcore_rsp=0x104000002/"),
    ("node-store-misses", "cpu/event=0xb7,umask=1,offcore_rsp=0x730000002/"),
];

/// Names of Golden Cove and later cores of its line.
pub(super) const GOLDEN_COVE: Table = &[
    ("LLC-loads", "cpu/event=0x2a,umask=1,offcore_rsp=0x10001/"),
    ("LLC-load-misses", "cpu/event=0x2a,umask=1,offcore_rsp=0x3fbfc00001/"),
    ("LLC-stores", "cpu/event=0x2a,umask=1,offcore_rsp=0x3f3ffc0002/"),
    ("LLC-store-misses", "cpu/event=0x2a,umask=1,offcore_rsp=0x3f3fc00002/"),
    ("node-loads", "cpu/event=0x2a,umask=1,offcore_rsp=0x104000001/"),
    ("node-load-misses", "cpu/event=0x2a,umask=1,offcore_rsp=0x730000001/"),
];
