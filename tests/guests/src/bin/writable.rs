//! Prints the number of pages around a mapping to which the kernel allows writes: `writable N`.

#![no_std]
#![no_main]

use tally::{println, sys};

tally::main!(main);

const PAGE_BYTES: u64 = 4096;
const PAGES: u64 = 512;

fn main() -> i32 {
    // SAFETY: the mapping is new.
    let mapped = unsafe { sys::call(sys::MMAP, [0, PAGE_BYTES, 3, 0x22, u64::MAX, 0]) };
    let first = mapped as u64 - PAGES * PAGE_BYTES;
    let pages = (first..).step_by(PAGE_BYTES as usize).take(2 * PAGES as usize);
    let writable = pages.filter(|page| {
        // SAFETY: no value of this program lies in the page: the heap is not used, and the stack is
        // far above.
        unsafe { sys::call(sys::GETRANDOM, [page + PAGE_BYTES - 1, 1, 0, 0, 0, 0]) == 1 }
    });
    println!("writable {}", writable.count());
    0
}
