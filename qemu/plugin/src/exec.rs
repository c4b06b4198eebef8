//! The callbacks of running code: a block, a memory access, an interrupt or exception.
//!
//! These are called hundreds of millions of times. Each sheds its pointers and calls a safe function.

use std::ffi::{c_int, c_uint, c_void};

use tally_model::{Access, Block};

use crate::{ffi, vcpu};

/// What a memory callback is given: the block's address (aligned to 64 bytes, below 2^48), the
/// instruction's index above it, and flags below it, in one pointer-sized word, so that the common
/// case reads nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccessTag(pub(crate) usize);

const TAG_LOCKED: usize = 1;
const TAG_IN_PARTS: usize = 2;
const TAG_BLOCK: usize = 0xffff_ffff_ffc0;

impl AccessTag {
    pub(crate) fn new(block: *const Block, index: usize, locked: bool, in_parts: bool) -> AccessTag {
        let flags = usize::from(locked) * TAG_LOCKED | usize::from(in_parts) * TAG_IN_PARTS;
        AccessTag(block as usize | index << 48 | flags)
    }

    fn block(self) -> *const Block {
        (self.0 & TAG_BLOCK) as *const Block
    }
}

/// A block starts.
pub(crate) extern "C" fn on_block(vcpu: c_uint, block: *mut c_void) {
    // SAFETY: the word is the block that `translate` kept for as long as QEMU keeps the translation.
    let block = unsafe { &*block.cast::<Block>() };
    vcpu::current(vcpu).enter(block);
}

/// An instruction reads or writes memory.
pub(crate) extern "C" fn on_access(vcpu: c_uint, info: u32, address: u64, tag: *mut c_void) {
    let vcpu = vcpu::current(vcpu);
    let tag = AccessTag(tag as usize);
    // SAFETY: as in `on_block`.
    let block = unsafe { &*tag.block() };
    if !vcpu.is_in(block) {
        vcpu.aborted_into(block);
    }
    // SAFETY: `info` is this callback's.
    let store = unsafe { ffi::qemu_plugin_mem_is_store(info) };
    // SAFETY: likewise.
    let bytes = 1 << unsafe { ffi::qemu_plugin_mem_size_shift(info) };
    let retires = tag.0 & TAG_IN_PARTS == 0 || vcpu.is_first_part(tag.0, store);
    let locked = tag.0 & TAG_LOCKED != 0;
    vcpu.core.access(
        block.ring,
        Access { address, bytes, store, locked, retires },
        physical,
    );
}

/// The physical address of a virtual one; the virtual one where there is none any more.
fn physical(address: u64) -> u64 {
    let mut found = address;
    // SAFETY: called from a memory callback, which is vCPU context.
    unsafe { ffi::qemu_plugin_translate_vaddr(address, &mut found) };
    found
}

/// An interrupt or exception was taken.
pub(crate) extern "C" fn on_discontinuity(
    vcpu: c_uint,
    kind: c_int,
    from_pc: u64,
    to_pc: u64,
    _: *mut c_void,
) {
    let vcpu = vcpu::current(vcpu);
    if let Some((register, value)) = vcpu.restore.take() {
        vcpu.registers.write(register, value);
    }
    vcpu.interrupted(kind != ffi::DISCON_INTERRUPT, from_pc, to_pc);
}
