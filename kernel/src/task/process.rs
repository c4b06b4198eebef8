//! A program that runs: its memory, its registers while it waits, its files, its session.
//!
//! A process is owned by the CPU that runs it or by the queue that it waits in, never by both, so
//! nothing of it needs a lock.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    string::String,
};
use core::{arch::asm, ops::Range};

use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};
use tally_abi::ExitStatus;

use super::{loader, upcall::Upcall};
use crate::{
    cpu::entry::Frame,
    files::{open::Descriptors, ramdisk},
    measure::{self, Context, OwnCounters},
    memory::{
        frames::FRAME_BYTES,
        space::{Access, AddressSpace, SpaceError, USER_END},
    },
};

/// Where `mmap` looks for room first: above every fixed program, far below the stack.
const MMAP_START: u64 = 0x1000_0000_0000;
/// The most that `brk` gives a program.
const MAX_HEAP_BYTES: u64 = 1 << 30;

/// FPU and SSE registers, as FXSAVE64 stores them.
#[derive(Clone)]
#[repr(C, align(16))]
pub struct FpuState([u8; 512]);

impl FpuState {
    /// The state at a program's start: System V ABI for AMD64, section 3.4.1.
    pub fn initial() -> Box<Self> {
        let mut state = FpuState([0; 512]);
        state.0[0..2].copy_from_slice(&0x037f_u16.to_le_bytes());
        state.0[24..28].copy_from_slice(&0x1f80_u32.to_le_bytes());
        Box::new(state)
    }

    /// Keeps the FPU's registers, which are the program's: the kernel uses none.
    pub fn save(&mut self) {
        // SAFETY: the area is 512 bytes, aligned to 16, as the instruction wants.
        unsafe { asm!("fxsave64 [{}]", in(reg) &raw mut *self, options(nostack)) };
    }

    /// Puts the FPU's registers back.
    pub fn restore(&self) {
        // SAFETY: the area was made by `fxsave64` or `initial`, so no reserved bit is set.
        unsafe { asm!("fxrstor64 [{}]", in(reg) &raw const *self, options(nostack)) };
    }
}

/// A program that runs.
pub struct Process {
    /// Its number, from 1.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its memory.
    pub space: AddressSpace,
    /// What it has open.
    pub files: Descriptors,
    /// What is measured of it, while it does not run.
    pub context: Option<Box<Context>>,
    /// The counters that it looks after itself, while it does not run.
    pub own_counters: Option<Box<OwnCounters>>,
    /// Its registers while it does not run.
    pub frame: Frame,
    /// What it was doing when it was diverted to a handler of its own.
    pub upcall: Upcall,
    /// Where its thread-local data is: the base of FS.
    pub fs_base: u64,
    /// Calls that it made and that are not there, as the log was told.
    pub unknown_calls: BTreeSet<u64>,
    random: Xoshiro256PlusPlus,
    heap: Range<u64>,
    fpu: Box<FpuState>,
    mappings: BTreeMap<u64, u64>,
    /// Mappings that the kernel writes.
    held: BTreeMap<u64, u64>,
    next_mapping: u64,
}

impl Process {
    /// Loads the program `words[0]` from the ramdisk.
    ///
    /// # Errors
    /// The status and sentence for the user.
    pub fn load(
        pid: u32,
        words: &[&str],
        kernel: &AddressSpace,
    ) -> Result<Process, (ExitStatus, &'static str)> {
        let name = words.first().copied().unwrap_or_default();
        let file = ramdisk::file(name)
            .ok_or((ExitStatus::ProgramNotFound, "there is no such program in the ramdisk"))?;
        let mut space = AddressSpace::for_program(kernel)
            .map_err(|_| loader::LoadError::OutOfMemory.explain())?;
        // The same for the same seed and program: runs are to be repeatable.
        let mut random = Xoshiro256PlusPlus::seed_from_u64(measure::seed() ^ u64::from(pid) << 32);
        let canary = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
        let start =
            loader::load(&mut space, file, words, canary).map_err(loader::LoadError::explain)?;
        Ok(Process {
            pid,
            name: name.into(),
            space,
            files: Descriptors::new(),
            context: None,
            own_counters: None,
            frame: Frame::user(start.rip, start.rsp),
            upcall: Upcall::default(),
            fs_base: 0,
            unknown_calls: BTreeSet::new(),
            random,
            heap: start.heap..start.heap,
            fpu: FpuState::initial(),
            mappings: BTreeMap::new(),
            held: BTreeMap::new(),
            next_mapping: MMAP_START,
        })
    }

    /// Keeps the FPU's registers.
    pub fn save_fpu(&mut self) {
        self.fpu.save();
    }

    /// Puts the FPU's registers back.
    pub fn restore_fpu(&self) {
        self.fpu.restore();
    }

    /// Moves the end of the heap to `end`, if that can be; gives where it is then.
    pub fn set_heap_end(&mut self, end: u64) -> u64 {
        let page = |address: u64| address.next_multiple_of(FRAME_BYTES);
        let fits = (self.heap.start..self.heap.start + MAX_HEAP_BYTES).contains(&end);
        let (old, new) = (page(self.heap.end), page(end.min(USER_END)));
        // A heap that shrinks keeps its pages: a program that cares for memory unmaps.
        if fits && (new <= old || self.space.map_zeroed(old, new - old, Access::Write).is_ok()) {
            self.heap.end = end.max(self.heap.end);
        }
        self.heap.end
    }

    /// The next random number.
    pub fn random(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// New memory of zeros; gives its address.
    ///
    /// # Errors
    /// No memory, or no room for so much.
    pub fn map(&mut self, bytes: u64, access: Access) -> Result<u64, SpaceError> {
        let (start, bytes) = self.map_next(bytes, access)?;
        self.mappings.insert(start, bytes);
        Ok(start)
    }

    /// The same for pages that the kernel writes and the program reads, and can neither unmap nor
    /// protect otherwise.
    ///
    /// # Errors
    /// As [`Self::map`].
    pub fn map_for_kernel(&mut self, bytes: u64) -> Result<u64, SpaceError> {
        let (start, bytes) = self.map_next(bytes, Access::Read)?;
        self.held.insert(start, bytes);
        Ok(start)
    }

    /// Gives a whole mapping of [`Self::map_for_kernel`] back, of which the kernel has no view any
    /// more.
    ///
    /// # Errors
    /// There is no such mapping.
    pub fn unmap_for_kernel(&mut self, start: u64) -> Result<(), SpaceError> {
        let bytes = self.held.remove(&start).ok_or(SpaceError::BadAddress)?;
        self.space.unmap(start, bytes)
    }

    /// Changes what the program may do with pages of its own.
    ///
    /// # Errors
    /// Some of them are not its own.
    pub fn protect(&mut self, start: u64, bytes: u64, access: Access) -> Result<(), SpaceError> {
        let end = start.checked_add(bytes).ok_or(SpaceError::BadAddress)?;
        if self.held.iter().any(|(held, bytes)| start < held + bytes && *held < end) {
            return Err(SpaceError::BadAddress);
        }
        self.space.protect(start, bytes, access)
    }

    fn map_next(&mut self, bytes: u64, access: Access) -> Result<(u64, u64), SpaceError> {
        let bytes = bytes.checked_next_multiple_of(FRAME_BYTES).ok_or(SpaceError::OutOfMemory)?;
        let start = self.next_mapping;
        // One page between mappings stays empty, so that running over an end is a fault.
        let end = start.checked_add(bytes).filter(|end| *end < USER_END / 2);
        let end = end.ok_or(SpaceError::OutOfMemory)?;
        self.space.map_zeroed(start, bytes, access)?;
        self.next_mapping = end + FRAME_BYTES;
        Ok((start, bytes))
    }

    /// Gives a whole mapping of [`Self::map`] back.
    ///
    /// # Errors
    /// There is no such mapping of that size.
    pub fn unmap(&mut self, start: u64, bytes: u64) -> Result<(), SpaceError> {
        let bytes = bytes.checked_next_multiple_of(FRAME_BYTES).ok_or(SpaceError::BadAddress)?;
        if self.mappings.get(&start) != Some(&bytes) {
            return Err(SpaceError::BadAddress);
        }
        self.mappings.remove(&start);
        self.space.unmap(start, bytes)
    }
}
