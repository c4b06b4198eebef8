//! Writes a number of equal lines; the number is its argument.

#![no_std]
#![no_main]

use tally::{println, runtime::arguments};

tally::main!(main);

fn main() -> i32 {
    let lines: u32 = arguments().nth(1).and_then(|word| word.parse().ok()).expect("writes LINES");
    for _ in 0..lines {
        println!("{:80}", "the same");
    }
    0
}
