//! The work of `deflate` without a session, repeated: `cargo xtask bench vpmu` times it.
//!
//! `rounds COUNT BYTES [mark]` compresses and decompresses the first BYTES bytes of the text once
//! to warm up, prints `begin`, repeats that COUNT times, and prints `end`. With `mark` the virtual
//! PMU keeps exact counts: region 0 is the first round, region 1 the others.

#![no_std]
#![no_main]

extern crate alloc;

use tally::{ExitStatus, eprintln, io::read_file, println, region, runtime::arguments};
use tally_programs::store::Store;

tally::main!(main);

/// Compression level of `gzip` and of `deflate`.
const LEVEL: u8 = 6;
/// Exit status if the decompressed text differs.
const MISMATCH: i32 = 1;

fn main() -> i32 {
    let mut words = arguments().skip(1);
    let mut number = || words.next()?.parse().ok();
    let (Some(count), Some(bytes)) = (number(), number()) else {
        eprintln!("usage: rounds COUNT BYTES [mark]");
        return u8::from(ExitStatus::Usage).into();
    };
    let marks = words.next() == Some("mark");
    let text = match read_file("corpus.txt") {
        Ok(text) => text,
        Err(error) => {
            eprintln!("rounds: cannot read corpus.txt: error {}", error.0);
            return u8::from(ExitStatus::HostError).into();
        }
    };
    let text = text.get(..bytes).unwrap_or(&text);
    let mut store = Store::new(LEVEL);
    let mut all_equal = true;
    for (tag, count) in [(0, 1usize), (1, count)] {
        println!("{}", if tag == 0 { "warm up" } else { "begin" });
        if marks {
            region::open(tag);
        }
        all_equal &= (0..count).all(|_| store.round_trip(text).is_some());
        if marks {
            region::close(tag);
        }
    }
    println!("end");
    if all_equal { 0 } else { MISMATCH }
}
