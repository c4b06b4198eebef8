//! Entry point, exit, panic handler and heap for programs without a standard library.
//!
//! A program defines `fn main() -> i32` and names it with [`crate::main!`].

use core::{
    arch::naked_asm,
    ffi::{CStr, c_char, c_int},
    fmt::Write,
    sync::atomic::{AtomicPtr, AtomicUsize, Ordering},
};

use talc::{
    TalcLock,
    base::{Talc, binning::Binning},
    source::Source,
};

use tally_abi::text::FixedText;

use crate::sys;

/// The smallest amount of memory that the heap requests from the kernel.
const CHUNK_BYTES: usize = 1 << 20;
const PROT_READ_WRITE: u64 = 3;
const MAP_PRIVATE_ANONYMOUS: u64 = 0x22;

static ARGC: AtomicUsize = AtomicUsize::new(0);
static ARGV: AtomicPtr<*const c_char> = AtomicPtr::new(core::ptr::null_mut());

unsafe extern "C" {
    fn main(argc: c_int, argv: *const *const c_char) -> c_int;
}

/// The program's entry point. The stack holds the argument count and the arguments, and is aligned
/// to 16 bytes (System V ABI for AMD64, section 3.4.1).
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn _start() -> ! {
    naked_asm!("xor ebp, ebp", "mov rdi, rsp", "call {begin}", "ud2", begin = sym begin)
}

unsafe extern "C" fn begin(stack: *const usize) -> ! {
    // SAFETY: by the ABI the stack holds the count, then that many pointers to strings.
    let (argc, argv) = unsafe { (*stack, stack.add(1).cast::<*const c_char>().cast_mut()) };
    ARGC.store(argc, Ordering::Relaxed);
    ARGV.store(argv, Ordering::Relaxed);
    // SAFETY: the program defines `main` of this type.
    sys::exit(unsafe { main(argc as c_int, argv) })
}

/// Declares a function, `fn() -> i32`, to be the program's main function.
#[macro_export]
macro_rules! main {
    ($function:path) => {
        const _: () = {
            const FUNCTION: fn() -> i32 = $function;
            #[unsafe(export_name = "main")]
            extern "C" fn c_main(_: core::ffi::c_int, _: *const *const core::ffi::c_char) -> i32 {
                FUNCTION()
            }
        };
    };
}

/// The program's arguments, its name first. An argument that is not UTF-8 ends the list.
pub fn arguments() -> impl Iterator<Item = &'static str> {
    let argv = ARGV.load(Ordering::Relaxed);
    (0..ARGC.load(Ordering::Relaxed)).map_while(move |index| {
        // SAFETY: there are ARGC arguments, each a zero-terminated string that lives as long as the
        // program (`begin`).
        unsafe { CStr::from_ptr(*argv.add(index)) }.to_str().ok()
    })
}

#[global_allocator]
static HEAP: TalcLock<spin::Mutex<()>, Kernel> = TalcLock::new(Kernel);

/// The heap's source of memory: anonymous mappings.
#[derive(Debug)]
struct Kernel;

// SAFETY: it allocates from the kernel, never from the heap itself.
unsafe impl Source for Kernel {
    fn acquire<B: Binning>(
        talc: &mut Talc<Self, B>,
        layout: core::alloc::Layout,
    ) -> Result<(), ()> {
        // The heap needs some memory of each block for its own data.
        let wanted = layout.size().checked_add(layout.align() + 4096).ok_or(())?;
        let bytes = wanted.max(CHUNK_BYTES).next_multiple_of(4096);
        let arguments = [0, bytes as u64, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, u64::MAX, 0];
        // SAFETY: the call maps new memory, which is unused.
        let start = unsafe { sys::call(sys::MMAP, arguments) };
        if start < 0 {
            return Err(());
        }
        // SAFETY: the memory was just mapped and belongs to the heap alone.
        unsafe { talc.claim(start as *mut u8, bytes) }.map(|_| ()).ok_or(())
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    // Formatted without the heap, which may have failed, and written in one call. A write error is
    // ignored.
    let text = FixedText::<512>::of(format_args!("{info}\n"));
    let _ = crate::io::Output::Err.write_str(text.as_str());
    sys::exit(PANIC_STATUS)
}

/// Status of a panicked program: the largest of Tally's range for programs (Rust's usual 101 is
/// outside of it).
const PANIC_STATUS: i32 = 63;
