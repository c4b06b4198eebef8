//! Loops of known content.

use core::{
    arch::asm,
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

use tally::{Error, sys};

/// Range of accesses at random lines, which determines the caches and TLBs that they miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// 16 KiB: in every first-level data cache, and four pages.
    Near,
    /// 256 KiB: beyond the first-level cache, in the second-level one.
    SecondLevel,
    /// 4 MiB: beyond the first-level TLB, in the second-level one.
    Pages,
    /// 64 MiB, flushed before: beyond caches and TLBs.
    Far,
}

impl Reach {
    const fn bytes(self) -> u64 {
        match self {
            Reach::Near => 16 << 10,
            Reach::SecondLevel => 256 << 10,
            Reach::Pages => 4 << 20,
            Reach::Far => FAR_BYTES,
        }
    }

    /// Returns the mask of a random number that gives the offset of a line.
    const fn mask(self) -> u64 {
        self.bytes() - LINE_BYTES
    }
}

const FAR_BYTES: u64 = 64 << 20;
const LINE_BYTES: u64 = 64;
const PAGE_BYTES: u64 = 4096;
/// Number of code pages, more than the translations of code in second-level TLBs.
const CODE_PAGES: u64 = 4096;
/// Distance in bytes between the jumps of adjacent pages of code.
const CODE_STRIDE: u64 = PAGE_BYTES;

/// A loop that raises events a known number of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loop {
    /// SUB and a taken branch.
    Spin,
    /// A branch that depends on a random bit, and a taken one.
    RandomBranches,
    /// A load, whose address depends on the one before.
    Loads(Reach),
    /// A store.
    Stores(Reach),
    /// A division of integers.
    Divisions,
    /// ADDSD, ADDSS, ADDPD and ADDPS.
    FloatingPoint,
    /// A call and its return.
    Calls,
    /// An indirect jump, always to the same place.
    IndirectJumps,
    /// Four NOPs.
    Nops,
    /// An addition with a lock.
    Locked,
    /// A load across two cache lines.
    SplitLoads,
    /// A store across two cache lines.
    SplitStores,
    /// A PAUSE.
    Pauses,
    /// PREFETCHT0 of a line that is in the cache.
    Prefetches,
    /// CLFLUSH.
    Flushes,
    /// CPUID.
    Cpuids,
    /// A jump to the next page of code.
    CodePages,
}

impl Loop {
    /// Returns the name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Loop::Spin => "spin",
            Loop::RandomBranches => "random branches",
            Loop::Loads(Reach::Near) => "near loads",
            Loop::Loads(Reach::SecondLevel) => "second-level loads",
            Loop::Loads(Reach::Pages) => "loads of pages",
            Loop::Loads(Reach::Far) => "far loads",
            Loop::Stores(Reach::Near) => "near stores",
            Loop::Stores(Reach::SecondLevel) => "second-level stores",
            Loop::Stores(Reach::Pages) => "stores to pages",
            Loop::Stores(Reach::Far) => "far stores",
            Loop::Divisions => "divisions",
            Loop::FloatingPoint => "floating point",
            Loop::Calls => "calls",
            Loop::IndirectJumps => "indirect jumps",
            Loop::Nops => "nops",
            Loop::Locked => "locked additions",
            Loop::SplitLoads => "split loads",
            Loop::SplitStores => "split stores",
            Loop::Pauses => "pauses",
            Loop::Prefetches => "prefetches",
            Loop::Flushes => "flushes",
            Loop::Cpuids => "cpuid",
            Loop::CodePages => "pages of code",
        }
    }

    /// Returns the number of turns. Some hypervisors intercept every CPUID.
    pub fn turns(self) -> u64 {
        match self {
            Loop::Cpuids => 100,
            Loop::CodePages => 2 * CODE_PAGES,
            _ => 10_000,
        }
    }
}

/// Memory that loops access and run.
pub struct Memory {
    data: u64,
    code: u64,
    /// State of the random numbers, which continue from one run to the next: a predictor can learn
    /// a sequence that repeats.
    random: AtomicU64,
}

impl Memory {
    /// Maps the memory, and touches every page.
    ///
    /// # Errors
    /// Memory is short.
    pub fn map() -> Result<Memory, Error> {
        let (data, code) = (map(FAR_BYTES)?, map(CODE_PAGES * PAGE_BYTES)?);
        for page in 0..FAR_BYTES / PAGE_BYTES {
            // SAFETY: the page was mapped just now.
            unsafe { ptr::with_exposed_provenance_mut::<u64>(at(data, page)).write_volatile(0) };
        }
        for page in 0..CODE_PAGES {
            let code = ptr::with_exposed_provenance_mut::<[u8; 5]>(at(code, page));
            let [a, b, c, d] = (CODE_STRIDE as u32 - 5).to_le_bytes();
            let is_last = page + 1 == CODE_PAGES;
            // RET, or JMP by a displacement.
            let instruction = if is_last { [0xc3, 0, 0, 0, 0] } else { [0xe9, a, b, c, d] };
            // SAFETY: the page was mapped just now, and nothing runs it yet.
            unsafe { code.write_volatile(instruction) };
        }
        const READ_EXECUTE: u64 = 5;
        let protect = [code, CODE_PAGES * PAGE_BYTES, READ_EXECUTE, 0, 0, 0];
        // SAFETY: nothing writes the pages any more.
        match unsafe { sys::call(sys::MPROTECT, protect) } {
            0 => Ok(Memory { data, code, random: AtomicU64::new(0x9e37_79b9_7f4a_7c15) }),
            _ => Err(Error::NoMemory),
        }
    }

    /// Brings caches and TLBs into the state that the loop needs.
    pub fn prepare(&self, work: Loop) {
        match work {
            Loop::Loads(Reach::Far) | Loop::Stores(Reach::Far) => self.flush_far(),
            Loop::Cpuids | Loop::Pauses => {}
            _ => self.run(work),
        }
    }

    /// Runs a loop.
    pub fn run(&self, work: Loop) {
        let turns = work.turns();
        match work {
            Loop::Spin => spin(turns),
            Loop::RandomBranches => self.random_branches(turns),
            Loop::Loads(reach) => self.load(turns, reach.mask()),
            Loop::Stores(reach) => self.store(turns, reach.mask()),
            Loop::CodePages => (0..turns / CODE_PAGES).for_each(|_| self.run_pages()),
            _ => short(work, turns, self.data),
        }
    }

    /// Flushes the lines of the next far accesses, which the state of the random numbers
    /// determines.
    fn flush_far(&self) {
        let mut random = self.random.load(Ordering::Relaxed);
        for _ in 0..Loop::Loads(Reach::Far).turns() {
            random = next(random);
            let line = self.data + (random & Reach::Far.mask());
            // SAFETY: the line is mapped, and flushing changes no data.
            unsafe { asm!("clflush [{}]", in(reg) line, options(nostack, preserves_flags)) };
        }
    }

    fn load(&self, turns: u64, mask: u64) {
        let mut random = self.random.load(Ordering::Relaxed);
        // SAFETY: reads the memory, which is all zeros: so the sums are the random numbers.
        unsafe {
            asm!(
                "2:",
                "mov {t}, {x}", "shl {t}, 13", "xor {x}, {t}",
                "mov {t}, {x}", "shr {t}, 7", "xor {x}, {t}",
                "mov {t}, {x}", "shl {t}, 17", "xor {x}, {t}",
                "mov {t}, {x}", "and {t}, {mask}",
                "xor {x}, [{data} + {t}]",
                "sub {turns}, 1",
                "jnz 2b",
                t = out(reg) _, x = inout(reg) random, mask = in(reg) mask,
                data = in(reg) self.data, turns = inout(reg) turns => _,
                options(nostack, readonly),
            );
        }
        self.random.store(random, Ordering::Relaxed);
    }

    fn store(&self, turns: u64, mask: u64) {
        let mut random = self.random.load(Ordering::Relaxed);
        // SAFETY: writes zeros to the memory, which is this value's.
        unsafe {
            asm!(
                "2:",
                "mov {t}, {x}", "shl {t}, 13", "xor {x}, {t}",
                "mov {t}, {x}", "shr {t}, 7", "xor {x}, {t}",
                "mov {t}, {x}", "shl {t}, 17", "xor {x}, {t}",
                "mov {t}, {x}", "and {t}, {mask}",
                "mov qword ptr [{data} + {t}], 0",
                "sub {turns}, 1",
                "jnz 2b",
                t = out(reg) _, x = inout(reg) random, mask = in(reg) mask,
                data = in(reg) self.data, turns = inout(reg) turns => _,
                options(nostack),
            );
        }
        self.random.store(random, Ordering::Relaxed);
    }

    fn random_branches(&self, turns: u64) {
        let mut random = self.random.load(Ordering::Relaxed);
        // SAFETY: works on registers.
        unsafe {
            asm!(
                "2:",
                "mov {t}, {x}", "shl {t}, 13", "xor {x}, {t}",
                "mov {t}, {x}", "shr {t}, 7", "xor {x}, {t}",
                "mov {t}, {x}", "shl {t}, 17", "xor {x}, {t}",
                "test {x}, 0x100000",
                "jz 3f",
                "nop",
                "3:",
                "sub {turns}, 1",
                "jnz 2b",
                t = out(reg) _, x = inout(reg) random, turns = inout(reg) turns => _,
                options(nostack, nomem),
            );
        }
        self.random.store(random, Ordering::Relaxed);
    }

    fn run_pages(&self) {
        // SAFETY: the code there is jumps, and a return at its end; it changes no register.
        unsafe { asm!("call {}", in(reg) self.code) };
    }
}

/// Returns the next number of Marsaglia's generator ("Xorshift RNGs", Journal of Statistical
/// Software 8, 2003), as in the loops.
fn next(mut random: u64) -> u64 {
    random ^= random << 13;
    random ^= random >> 7;
    random ^ random << 17
}

/// Returns the address of a page.
fn at(memory: u64, page: u64) -> usize {
    (memory + page * PAGE_BYTES) as usize
}

fn map(bytes: u64) -> Result<u64, Error> {
    const READ_WRITE: u64 = 3;
    const PRIVATE_ANONYMOUS: u64 = 0x22;
    let arguments = [0, bytes, READ_WRITE, PRIVATE_ANONYMOUS, u64::MAX, 0];
    // SAFETY: the kernel chooses where.
    u64::try_from(unsafe { sys::call(sys::MMAP, arguments) }).map_err(|_| Error::NoMemory)
}

/// Instructions and branches of a turn of [`spin`].
pub const SPIN_INSTRUCTIONS: u64 = 2;

/// Runs a loop of two instructions.
#[inline(never)] // So that the code around it is the same each time.
pub fn spin(turns: u64) {
    // SAFETY: works on one register.
    unsafe {
        asm!("2:", "sub {0}, 1", "jnz 2b", inout(reg) turns => _, options(nostack, nomem));
    }
}

/// Makes a loop of some instructions: `{0}` is the number of turns left, RDI the memory.
macro_rules! repeat {
    ($turns:ident, $data:ident, $($line:literal),* $(; $($clobber:tt)*)?) => {
        // SAFETY: it reads and writes the first lines of the loops' memory, and registers that are
        // named here.
        unsafe {
            asm!("2:", $($line,)* "sub {0}, 1", "jnz 2b",
                 inout(reg) $turns => _, in("rdi") $data, $($($clobber)*)?);
        }
    };
}

fn short(work: Loop, turns: u64, data: u64) {
    match work {
        Loop::Divisions => repeat!(turns, data, "mov eax, 1000003", "xor edx, edx", "div esi";
            in("esi") 7, out("eax") _, out("edx") _),
        Loop::FloatingPoint => repeat!(turns, data, "addsd xmm0, xmm1", "addss xmm2, xmm3",
            "addpd xmm4, xmm5", "addps xmm6, xmm7";
            inout("xmm0") 0.0_f64 => _, in("xmm1") 0.0_f64, inout("xmm2") 0.0_f64 => _,
            in("xmm3") 0.0_f64, inout("xmm4") 0.0_f64 => _, in("xmm5") 0.0_f64,
            inout("xmm6") 0.0_f64 => _, in("xmm7") 0.0_f64),
        Loop::Calls => repeat!(turns, data, "call 4f", "jmp 5f", "4:", "ret", "5:"),
        Loop::IndirectJumps => repeat!(turns, data, "lea rdx, [rip + 4f]", "jmp rdx", "4:";
            out("rdx") _),
        Loop::Nops => repeat!(turns, data, "nop", "nop", "nop", "nop"),
        Loop::Locked => repeat!(turns, data, "lock add qword ptr [rdi], 0"),
        Loop::SplitLoads => repeat!(turns, data, "mov rdx, [rdi + 60]"; out("rdx") _),
        Loop::SplitStores => repeat!(turns, data, "mov qword ptr [rdi + 60], 0"),
        Loop::Pauses => repeat!(turns, data, "pause"),
        Loop::Prefetches => repeat!(turns, data, "prefetcht0 [rdi]"),
        Loop::Flushes => repeat!(turns, data, "clflush [rdi]"),
        // RBX belongs to the compiler.
        Loop::Cpuids => repeat!(turns, data, "mov rsi, rbx", "xor eax, eax", "cpuid",
            "mov rbx, rsi";
            out("rsi") _, out("eax") _, out("ecx") _, out("edx") _),
        _ => {}
    }
}
