//! Pending work before a vCPU's next instruction or block, and the flag that makes the next block
//! check for it.
//!
//! QEMU evaluates the flag inline, before each block: it is a word of a scoreboard, one for each
//! vCPU.

use std::{ffi::c_uint, sync::OnceLock};

use crate::ffi;

/// A correction of the guest's registers after an instruction that QEMU executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fixup {
    /// Patches the processor's answer to this CPUID leaf and subleaf.
    Cpuid(u32, u32),
    /// Adds the extended space to the APIC's version in EAX.
    ExtendedVersion,
    /// Notes the time-stamp counter in EDX:EAX, and corrects nothing.
    NoteTimestamp,
    /// Sets those of RAX, RBX, RCX and RDX for which there is a value.
    Set([Option<u64>; 4]),
}

/// A request to leave the block after an instruction and to resume at another address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockExit {
    /// Number of the block's instructions up to there.
    pub(crate) settled: usize,
    /// The address to resume at.
    pub(crate) pc: u64,
}

#[derive(Clone, Copy)]
struct Flag(ffi::PerVcpu);

// SAFETY: the scoreboard is QEMU's and lives for ever; each vCPU has an element of its own.
unsafe impl Send for Flag {}
// SAFETY: likewise.
unsafe impl Sync for Flag {}

static FLAG: OnceLock<Flag> = OnceLock::new();

/// The flag of every vCPU, for inline conditions.
pub(crate) fn flag() -> ffi::PerVcpu {
    let Flag(entry) = FLAG.get_or_init(|| {
        // SAFETY: called from installation or later.
        let scoreboard = unsafe { ffi::qemu_plugin_scoreboard_new(8) };
        Flag(ffi::PerVcpu { scoreboard, offset: 0 })
    });
    *entry
}

/// Sets the flag of a vCPU: its next block calls back before it runs.
pub(crate) fn raise_flag(vcpu: c_uint) {
    // SAFETY: the vCPU exists.
    unsafe { ffi::qemu_plugin_u64_set(flag(), vcpu, 1) };
}

/// Clears the flag of a vCPU.
pub(crate) fn clear_flag(vcpu: c_uint) {
    // SAFETY: the vCPU exists.
    unsafe { ffi::qemu_plugin_u64_set(flag(), vcpu, 0) };
}
