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

const TAG_IN_PARTS: usize = 1;
const TAG_CHASES: usize = 2;
const TAG_BLOCK: usize = 0xffff_ffff_ffc0;

impl AccessTag {
    pub(crate) fn new(
        block: *const Block,
        index: usize,
        in_parts: bool,
        chases: bool,
    ) -> AccessTag {
        let in_parts = if in_parts { TAG_IN_PARTS } else { 0 };
        let chases = if chases { TAG_CHASES } else { 0 };
        AccessTag(block as usize | index << 48 | in_parts | chases)
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

/// An instruction reads memory.
pub(crate) extern "C" fn on_load(vcpu: c_uint, info: u32, address: u64, tag: *mut c_void) {
    access::<false>(vcpu, info, address, AccessTag(tag as usize));
}

/// An instruction writes memory.
pub(crate) extern "C" fn on_store(vcpu: c_uint, info: u32, address: u64, tag: *mut c_void) {
    access::<true>(vcpu, info, address, AccessTag(tag as usize));
}

#[inline(always)] // Twice, each without the other's branch.
fn access<const STORE: bool>(vcpu: c_uint, info: u32, address: u64, tag: AccessTag) {
    let vcpu = vcpu::current(vcpu);
    // SAFETY: as in `on_block`.
    let block = unsafe { &*tag.block() };
    if !vcpu.is_in(block) {
        vcpu.aborted_into(block);
    }
    // QEMU's widest access is 16 bytes, so only one that starts in a line's last 16 can cross it;
    // the others need not be asked for their size.
    let bytes = match address & 63 {
        0..=48 if !vcpu.core.wants_sizes() => 1,
        // SAFETY: `info` is this callback's.
        _ => 1 << unsafe { ffi::qemu_plugin_mem_size_shift(info) },
    };
    let retires = tag.0 & TAG_IN_PARTS == 0 || vcpu.is_first_part(tag.0, STORE);
    let chases = tag.0 & TAG_CHASES != 0;
    let access = Access { address, bytes, retires, chases, insn: tag.0 >> 48 };
    vcpu.core.access::<STORE>(block, access, physical);
}

/// The physical address of a virtual one; the virtual one where there is none any more.
fn physical(address: u64) -> u64 {
    let mut found = address;
    // SAFETY: called from a memory callback, which is vCPU context.
    unsafe { ffi::qemu_plugin_translate_vaddr(address, &mut found) };
    found
}

/// An interrupt or exception. Of an exception QEMU tells twice: first that there is one, with the
/// address of the block's start twice; then, as of an interrupt, that it is delivered, with the
/// address of the instruction that raised it.
pub(crate) extern "C" fn on_discontinuity(
    vcpu: c_uint,
    kind: c_int,
    from_pc: u64,
    to_pc: u64,
    _: *mut c_void,
) {
    let vcpu = vcpu::current(vcpu);
    match kind {
        ffi::DISCON_EXCEPTION => vcpu.raised = true,
        _ => vcpu.delivered(from_pc, to_pc),
    }
}
