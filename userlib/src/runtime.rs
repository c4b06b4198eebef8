//! A program's beginning, end and heap, where there is no standard library.
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

/// The least that the heap asks of the kernel at once.
const CHUNK_BYTES: usize = 1 << 20;
const PROT_READ_WRITE: u64 = 3;
const MAP_PRIVATE_ANONYMOUS: u64 = 0x22;

static ARGC: AtomicUsize = AtomicUsize::new(0);
static ARGV: AtomicPtr<*const c_char> = AtomicPtr::new(core::ptr::null_mut());

unsafe extern "C" {
    fn main(argc: c_int, argv: *const *const c_char) -> c_int;
}

/// Where the kernel begins a program: the stack holds the argument count and the arguments (System
/// V ABI for AMD64, section 3.4.1), and is aligned to 16.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn _start() -> ! {
    naked_asm!("xor ebp, ebp", "mov rdi, rsp", "call {begin}", "ud2", begin = sym begin)
}

unsafe extern "C" fn begin(stack: *const usize) -> ! {
    // SAFETY: the stack is as the ABI says: the count, then that many pointers to strings.
    let (argc, argv) = unsafe { (*stack, stack.add(1).cast::<*const c_char>().cast_mut()) };
    ARGC.store(argc, Ordering::Relaxed);
    ARGV.store(argv, Ordering::Relaxed);
    // SAFETY: the program defines `main` of this type.
    sys::exit(unsafe { main(argc as c_int, argv) })
}

/// Names a program's main function, `fn() -> i32`.
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

/// The program's arguments, its name first. One that is not UTF-8 ends the list.
pub fn arguments() -> impl Iterator<Item = &'static str> {
    let argv = ARGV.load(Ordering::Relaxed);
    (0..ARGC.load(Ordering::Relaxed)).map_while(move |index| {
        // SAFETY: there are that many arguments, each a string that ends in a zero byte and lives
        // as long as the program (`begin`).
        unsafe { CStr::from_ptr(*argv.add(index)) }.to_str().ok()
    })
}

#[global_allocator]
static HEAP: TalcLock<spin::Mutex<()>, Kernel> = TalcLock::new(Kernel);

/// Memory from the kernel.
#[derive(Debug)]
struct Kernel;

// SAFETY: asks the kernel and never the heap it feeds.
unsafe impl Source for Kernel {
    fn acquire<B: Binning>(
        talc: &mut Talc<Self, B>,
        layout: core::alloc::Layout,
    ) -> Result<(), ()> {
        // Room for the heap's own bookkeeping too, of which each block needs a little.
        let wanted = layout.size().checked_add(layout.align() + 4096).ok_or(())?;
        let bytes = wanted.max(CHUNK_BYTES).next_multiple_of(4096);
        let arguments = [0, bytes as u64, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, u64::MAX, 0];
        // SAFETY: asks for new memory, which nobody uses yet.
        let start = unsafe { sys::call(sys::MMAP, arguments) };
        if start < 0 {
            return Err(());
        }
        // SAFETY: the kernel just gave this memory to the heap alone.
        unsafe { talc.claim(start as *mut u8, bytes) }.map(|_| ()).ok_or(())
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    // Not by way of the heap, which may be what failed; in one piece; and to nobody, if nobody
    // takes it.
    let text = FixedText::<512>::of(format_args!("{info}\n"));
    let _ = crate::io::Output::Err.write_str(text.as_str());
    sys::exit(PANIC_STATUS)
}

/// The status of a program that panicked, as of Rust programs elsewhere, cut to Tally's range for
/// programs.
const PANIC_STATUS: i32 = 63;
