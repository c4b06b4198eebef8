//! Two phases in the kernel, `maps CALLS PAGES`: system calls that do little, and pages that are
//! mapped, touched and unmapped, with hardly an instruction outside of the kernel.

#![no_std]
#![no_main]

use core::hint::black_box;

use tally::{
    ExitStatus, eprintln,
    runtime::{arguments, now_ns},
    sys,
};

tally::main!(main);

const PAGE: u64 = 4096;
/// Pages of a mapping.
const PAGES: u64 = 16;

fn call(calls: u64) {
    (0..calls).for_each(|_| {
        black_box(now_ns());
    });
}

fn map_and_touch(pages: u64) {
    for _ in 0..pages.div_ceil(PAGES) {
        let arguments = [0, PAGES * PAGE, 3, 0x22, u64::MAX, 0];
        // SAFETY: new memory anywhere; nothing refers to it after the end of the loop's body.
        let start = unsafe { sys::call(sys::MMAP, arguments) } as u64;
        for page in 0..PAGES {
            // SAFETY: the page is mapped and writable.
            unsafe { ((start + page * PAGE) as *mut u8).write_volatile(1) };
        }
        // SAFETY: as above.
        unsafe { sys::call(sys::MUNMAP, [start, PAGES * PAGE, 0, 0, 0, 0]) };
    }
}

fn main() -> i32 {
    let mut numbers = arguments().skip(1).map(str::parse);
    let (Some(Ok(calls)), Some(Ok(pages))) = (numbers.next(), numbers.next()) else {
        eprintln!("usage: maps CALLS PAGES");
        return u8::from(ExitStatus::Usage).into();
    };
    call(calls);
    map_and_touch(pages);
    0
}
