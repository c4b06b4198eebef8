//! The callbacks of executed code: a block, a memory access, an interrupt or exception.
//!
//! QEMU calls these callbacks hundreds of millions of times. Each turns its pointers into
//! references and calls a safe function.

use std::ffi::{c_int, c_uint, c_void};

use tally_model::{Access, Block, Privilege};

use crate::{decode::Decoded, ffi, guest::physical, vcpu};

/// The argument of a memory callback, in one pointer-sized word, so that the common case reads
/// nothing else: the block's address (aligned to 64 bytes, below 2^48), above it the instruction's
/// index and the ring, below it flags and a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccessTag(pub(crate) usize);

const TAG_IN_PARTS: usize = 1;
const TAG_LAST_BYTE_SHIFT: u32 = 2;
const TAG_BLOCK: usize = 0xffff_ffff_ffc0;
const TAG_INDEX_SHIFT: u32 = 48;
const TAG_KERNEL: usize = 1 << 63;

/// Bytes of AVX's widest load or store, which is two accesses of QEMU's.
const WIDE_BYTES: u64 = 32;
/// The largest access of QEMU in bytes.
const MOST_BYTES: u8 = 16;

impl AccessTag {
    /// Makes the tag for instruction `index` of a block that runs in `ring`.
    pub(crate) fn new(
        block: *const Block,
        ring: Privilege,
        index: usize,
        decoded: &Decoded,
    ) -> AccessTag {
        let bytes = match decoded.access_bytes {
            bytes @ 1..MOST_BYTES => bytes,
            _ => MOST_BYTES,
        };
        let mut tag = block as usize | index << TAG_INDEX_SHIFT;
        tag |= usize::from(bytes - 1) << TAG_LAST_BYTE_SHIFT;
        for (flag, is_set) in
            [(TAG_IN_PARTS, decoded.in_parts), (TAG_KERNEL, ring == Privilege::Kernel)]
        {
            tag |= if is_set { flag } else { 0 };
        }
        AccessTag(tag)
    }

    #[inline]
    fn block(self) -> *const Block {
        (self.0 & TAG_BLOCK) as *const Block
    }

    #[inline]
    fn index(self) -> usize {
        (self.0 & !TAG_KERNEL) >> TAG_INDEX_SHIFT
    }

    #[inline]
    fn ring(self) -> Privilege {
        if self.0 & TAG_KERNEL == 0 { Privilege::User } else { Privilege::Kernel }
    }

    /// Returns whether an access at `address` is certainly within one line.
    #[inline]
    fn ends_in_line(self, address: u64) -> bool {
        (address as usize & 63) + (self.0 >> TAG_LAST_BYTE_SHIFT & 15) < 64
    }
}

/// Called when a block starts.
pub(crate) extern "C" fn on_block(vcpu: c_uint, block: *mut c_void) {
    // SAFETY: the word is a block that `translate` keeps for as long as QEMU keeps the translation.
    let block = unsafe { &*block.cast::<Block>() };
    vcpu::current(vcpu).enter(block);
}

/// Called when a block of one instruction starts, which QEMU may be executing again.
pub(crate) extern "C" fn on_single(vcpu: c_uint, block: *mut c_void) {
    // SAFETY: as in `on_block`.
    let block = unsafe { &*block.cast::<Block>() };
    let vcpu = vcpu::current(vcpu);
    if block.ends_in_repeat && vcpu.is_in(block) {
        // The next element of a string instruction: nothing retires.
        return vcpu.check_deadline();
    }
    vcpu.maybe_restarted(block);
    vcpu.enter(block);
}

/// Called when an instruction reads memory.
pub(crate) extern "C" fn on_load(vcpu: c_uint, info: u32, address: u64, tag: *mut c_void) {
    access::<false>(vcpu, info, address, AccessTag(tag as usize));
}

/// Called when an instruction writes memory.
pub(crate) extern "C" fn on_store(vcpu: c_uint, info: u32, address: u64, tag: *mut c_void) {
    access::<true>(vcpu, info, address, AccessTag(tag as usize));
}

/// Called when a repeated string instruction reads memory.
pub(crate) extern "C" fn on_string_load(vcpu: c_uint, info: u32, address: u64, tag: *mut c_void) {
    access_string::<false>(vcpu, info, address, AccessTag(tag as usize));
}

/// Called when a repeated string instruction writes memory.
pub(crate) extern "C" fn on_string_store(vcpu: c_uint, info: u32, address: u64, tag: *mut c_void) {
    access_string::<true>(vcpu, info, address, AccessTag(tag as usize));
}

/// Fast path of an access by a repeated string instruction.
#[inline(always)]
fn access_string<const STORE: bool>(index: c_uint, info: u32, address: u64, tag: AccessTag) {
    let vcpu = vcpu::current(index);
    // SAFETY: as in `on_block`.
    let block = unsafe { &*tag.block() };
    if !vcpu.is_in(block)
        || !tag.ends_in_line(address)
        || !vcpu.core.access_string_again::<STORE>(block, address)
    {
        access_any::<STORE>(index, info, address, tag);
    }
}

/// Fast path of an access, so small that it needs no stack; [`access_any`] handles all other cases.
#[inline(always)]
fn access<const STORE: bool>(index: c_uint, info: u32, address: u64, tag: AccessTag) {
    let vcpu = vcpu::current(index);
    // One comparison tests two things: the access is by the pending block, not by an instruction in
    // parts.
    let is_plain = vcpu.is_in((tag.0 & (TAG_BLOCK | TAG_IN_PARTS)) as *const Block);
    if !is_plain
        || !tag.ends_in_line(address)
        || !vcpu.core.access_recent::<STORE>(tag.ring(), address)
    {
        access_any::<STORE>(index, info, address, tag);
    }
}

#[inline(never)]
fn access_any<const STORE: bool>(index: c_uint, info: u32, address: u64, tag: AccessTag) {
    let vcpu = vcpu::current(index);
    // SAFETY: as in `on_block`.
    let block = unsafe { &*tag.block() };
    if !vcpu.is_in(block) {
        vcpu.aborted_into(block);
    }
    if vcpu.precision.is_stepping {
        vcpu.settle(tag.index());
    }
    let insn = &block.insns()[tag.index()];
    let retires = tag.0 & TAG_IN_PARTS == 0 || vcpu.is_first_part(tag.0, STORE);
    let bytes = if insn.wide && is_whole(address) {
        if !retires {
            // The first part was counted as the whole.
            return;
        }
        WIDE_BYTES
    } else if tag.ends_in_line(address) && !vcpu.core.needs_sizes() {
        1
    } else {
        // SAFETY: `info` is this callback's.
        1 << unsafe { ffi::qemu_plugin_mem_size_shift(info) }
    };
    let access = Access { address, bytes, retires, insn: tag.index() };
    vcpu.core.access::<STORE>(block, access, physical);
}

/// Returns whether the part at `address` stands for a whole wide access: it is in one page, or the
/// next is mapped too, so that the other part does not fault. Addresses of the other part alone are
/// the next page's.
fn is_whole(address: u64) -> bool {
    let next = (address | 0xfff).wrapping_add(1);
    address & 0xfff <= 0x1000 - WIDE_BYTES || physical(next) != next
}

/// An interrupt or exception. QEMU calls twice for an exception: first when it is raised, with the
/// address of the block's start twice; then, as for an interrupt, when it is delivered, with the
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
