//! RDPMC instructions whose bytes in the guest's memory were replaced by a CPUID's.
//!
//! QEMU executes CPUID with its lazily evaluated flags up to date, and both are two bytes long.
//! The list outlives QEMU's translations, as the bytes stay replaced.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{guest::physical, registers::GuestRegisters};

/// RDPMC's bytes.
pub(crate) const RDPMC: [u8; 2] = [0x0f, 0x33];
/// CPUID's bytes.
pub(crate) const CPUID: [u8; 2] = [0x0f, 0xa2];

/// Physical addresses of the replaced instructions.
static REPLACED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

fn replaced() -> MutexGuard<'static, BTreeSet<u64>> {
    REPLACED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether the instruction with these bytes at the virtual address `pc` is a replaced
/// RDPMC.
pub(crate) fn is_replaced(bytes: &[u8], pc: u64) -> bool {
    if bytes != CPUID {
        return false;
    }
    let replaced = replaced();
    !replaced.is_empty() && replaced.contains(&physical(pc))
}

/// Replaces the RDPMC at a virtual address by a CPUID; returns whether its memory could be written.
pub(crate) fn replace_rdpmc(registers: &mut GuestRegisters, address: u64) -> bool {
    let written = registers.write_virtual(address, &CPUID);
    if written {
        replaced().insert(physical(address));
    }
    written
}
