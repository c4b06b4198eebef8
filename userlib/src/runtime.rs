//! Entry point, exit, panic handler and heap for programs without a standard library.
//!
//! A program defines `fn main() -> i32` and names it with [`crate::main!`].

use core::{
    arch::naked_asm,
    ffi::{CStr, c_char, c_int},
    sync::atomic::{AtomicPtr, AtomicUsize, Ordering},
};

use crate::{heap, sys};

static ARGC: AtomicUsize = AtomicUsize::new(0);
static ARGV: AtomicPtr<*const c_char> = AtomicPtr::new(core::ptr::null_mut());

unsafe extern "C" {
    fn main(argc: c_int, argv: *const *const c_char) -> c_int;
}

/// Entry point of the program. The stack holds the argument count and the arguments, and is aligned
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

/// Returns the program's arguments, its name first. An argument that is not UTF-8 ends the list.
pub fn arguments() -> impl Iterator<Item = &'static str> {
    let argv = ARGV.load(Ordering::Relaxed);
    (0..ARGC.load(Ordering::Relaxed)).map_while(move |index| {
        // SAFETY: there are ARGC arguments, each a zero-terminated string that lives as long as the
        // program (`begin`).
        unsafe { CStr::from_ptr(*argv.add(index)) }.to_str().ok()
    })
}

/// Returns nanoseconds since boot; on another kernel those of a clock that cannot be set
/// (`CLOCK_MONOTONIC`).
pub fn now_ns() -> u64 {
    const MONOTONIC: u64 = 1;
    let mut time = [0_u64; 2];
    // SAFETY: the buffer is a `struct timespec`.
    unsafe { sys::call(sys::CLOCK_GETTIME, [MONOTONIC, time.as_mut_ptr() as u64, 0, 0, 0, 0]) };
    time[0] * 1_000_000_000 + time[1]
}

#[global_allocator]
static HEAP: heap::Heap = heap::new();

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    sys::exit_on_panic(info)
}
