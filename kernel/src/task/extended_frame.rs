//! The extended state in a signal frame, in Linux's form: the area as XSAVE writes it, in the bytes
//! that FXSAVE leaves to software what it has, and a number behind it that ends it.
//!
//! A handler may change the state, and a program may return by a frame of its own making. What is
//! restored is copied into the thread's area first and checked there, so no other thread or program
//! can change it in between.

use super::{
    fault::Fault,
    fpu::{FpuState, LEGACY},
};
use crate::{
    arch::extended_state::{self, HEADER_BYTES, LEGACY_BYTES},
    memory::user::UserMemory,
};

/// Bytes of a frame without the extended state.
pub const CONTEXT_BYTES: u64 = 440;
/// `FP_XSTATE_MAGIC1` and `FP_XSTATE_MAGIC2`, behind the area.
const MAGIC: u32 = 0x4650_5853;
const END: u32 = 0x4650_5845;
const END_BYTES: usize = size_of::<u32>();
/// Where `struct _fpx_sw_bytes` is in the area: magic number, bytes with the one behind the area,
/// components, bytes of the area.
const SOFTWARE: usize = 464;
const SOFTWARE_END: usize = SOFTWARE + 24;
/// XSAVE's alignment of an area, and FXSAVE's.
const ALIGNMENT: u64 = 64;
const LEGACY_ALIGNMENT: u64 = 16;

/// Where the area of a frame below `top` is.
pub fn place(top: u64) -> u64 {
    let end = if extended_state::get().has_xsave() { END_BYTES } else { 0 };
    top.wrapping_sub((extended_state::get().bytes + end) as u64) & !(ALIGNMENT - 1)
}

/// `AT_MINSIGSTKSZ`: the bytes that a frame takes of a stack at most, as Linux reckons them.
pub fn min_stack_bytes() -> u64 {
    let state = extended_state::get();
    let area = (state.bytes + if state.has_xsave() { END_BYTES } else { 0 }) as u64;
    (CONTEXT_BYTES + (LEGACY_ALIGNMENT - 1) + area + (ALIGNMENT - 1)).next_multiple_of(16)
}

/// `UC_FP_XSTATE`, of a context with more than FXSAVE's area.
pub fn context_flag() -> u64 {
    extended_state::get().has_xsave().into()
}

/// Writes the running thread's state, whose area is `state`, to the frame's area at `at`.
///
/// # Errors
/// It is not the program's to write.
pub fn push(memory: &mut UserMemory, state: &mut FpuState, at: u64) -> Result<(), ()> {
    let extended = extended_state::get();
    state.save_whole();
    // Linux does so: a handler that changes these registers in the frame need not say so there.
    state.mark_legacy();
    let end = if extended.has_xsave() { END_BYTES } else { 0 };
    let software = if end == 0 { [0; SOFTWARE_END - SOFTWARE] } else { software() };
    state.bytes_mut()[SOFTWARE..SOFTWARE_END].copy_from_slice(&software);
    let behind = at.wrapping_add(extended.bytes as u64);
    memory.write(at, state.bytes()).map_err(drop)?;
    memory.write(behind, &END.to_le_bytes()[..end]).map_err(drop)
}

/// The software-reserved bytes of an area: what it has.
fn software() -> [u8; SOFTWARE_END - SOFTWARE] {
    let extended = extended_state::get();
    let mut software = [0; SOFTWARE_END - SOFTWARE];
    software[0..4].copy_from_slice(&MAGIC.to_le_bytes());
    let with_end = (extended.bytes + END_BYTES) as u32;
    software[4..8].copy_from_slice(&with_end.to_le_bytes());
    software[8..16].copy_from_slice(&extended.components.to_le_bytes());
    software[16..20].copy_from_slice(&(extended.bytes as u32).to_le_bytes());
    software
}

/// Restores the running thread's registers, by way of its area `state`, from the frame's area at
/// `at`. 0: gives them their initial values.
///
/// # Errors
/// The area is not the program's to read or not aligned, or restoring it would be a fault; on Linux
/// it is one. The registers are as before.
pub fn pop(memory: &mut UserMemory, state: &mut FpuState, at: u64) -> Result<(), Fault> {
    if at == 0 {
        super::fpu::reset();
        return Ok(());
    }
    if read(memory, state, at).is_none() {
        // The area was overwritten; what it had is still in the registers.
        state.save_whole();
        return Err(Fault::of_kind("return from a handler with an invalid FPU state", Some(at)));
    }
    state.restore();
    Ok(())
}

/// Reads and checks a frame's area.
fn read(memory: &mut UserMemory, state: &mut FpuState, at: u64) -> Option<()> {
    let area = state.bytes_mut();
    let (legacy, rest) = area.split_at_mut(LEGACY_BYTES);
    memory.read(at, legacy).ok()?;
    let Some(extended) = Extended::of(legacy, memory, at)? else {
        // As on Linux: of another area x87 and SSE are restored.
        state.make_legacy();
        return at.is_multiple_of(LEGACY_ALIGNMENT).then(|| state.accept(LEGACY).ok())?;
    };
    if !at.is_multiple_of(ALIGNMENT) {
        return None;
    }
    let (there, behind) = rest.split_at_mut(extended.bytes - LEGACY_BYTES);
    memory.read(at.checked_add(LEGACY_BYTES as u64)?, there).ok()?;
    // Zero is the initial value of all that an area of fewer components lacks.
    behind.fill(0);
    state.accept(extended.components).ok()
}

/// The description of a frame's area in its software-reserved bytes.
struct Extended {
    components: u64,
    bytes: usize,
}

impl Extended {
    /// Parses a frame's area at `at`, which begins with `legacy`. Some(None): it has x87 and SSE
    /// alone. None: its end is not the program's to read.
    fn of(legacy: &[u8], memory: &mut UserMemory, at: u64) -> Option<Option<Extended>> {
        let word = |from: usize| {
            let from = SOFTWARE + from;
            u32::from_le_bytes(core::array::from_fn(|index| legacy[from + index]))
        };
        let (magic, with_end, bytes) = (word(0), word(4), word(16));
        let components = u64::from(word(8)) | u64::from(word(12)) << 32;
        let possible = LEGACY_BYTES + HEADER_BYTES..=extended_state::get().bytes;
        let is_extended =
            magic == MAGIC && possible.contains(&(bytes as usize)) && bytes <= with_end;
        if !is_extended {
            return Some(None);
        }
        let mut end = [0; END_BYTES];
        memory.read(at.checked_add(bytes.into())?, &mut end).ok()?;
        let extended = Extended { components, bytes: bytes as usize };
        Some((u32::from_le_bytes(end) == END).then_some(extended))
    }
}
