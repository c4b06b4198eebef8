//! Ends with the status that its argument names: `status N`. Without one, panics.

#![no_std]
#![no_main]

use tally::runtime::arguments;

tally::main!(main);

fn main() -> i32 {
    let word = arguments().nth(1).expect("usage: status N");
    word.parse().expect("a number")
}
