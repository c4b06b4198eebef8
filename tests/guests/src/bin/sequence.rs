//! Runs programs one after another: `sequence PROGRAM ARGUMENTS ; PROGRAM ARGUMENTS ; …`. Ends with
//! the first status that is not 0.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;

use tally::{ExitStatus, Program, eprintln, runtime::arguments};

tally::main!(main);

fn main() -> i32 {
    let words: Vec<&str> = arguments().skip(1).collect();
    for words in words.split(|word| *word == ";") {
        let program = match Program::load(words) {
            Ok(program) => program,
            Err(refused) => {
                eprintln!("sequence: {refused}");
                return u8::from(ExitStatus::ProgramNotFound).into();
            }
        };
        program.run().expect("it was not started");
        let status = program.wait().expect("it was started");
        if status != 0 {
            eprintln!("sequence: {} ended with status {status}", words.join(" "));
            return status.into();
        }
    }
    0
}
