//! Runs programs one after another: `sequence PROGRAM ARGUMENTS ; PROGRAM ARGUMENTS ; …`. Prints
//! the number and status of each, and ends with the first status that is not 0.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;

use tally::{ExitStatus, Program, eprintln, runtime::arguments};

tally::main!(main);

fn main() -> i32 {
    let words: Vec<&str> = arguments().skip(1).collect();
    let mut first = 0;
    for words in words.split(|word| *word == ";") {
        let status = run(words);
        first = if first == 0 { status } else { first };
    }
    first
}

/// Runs a program and returns its status.
fn run(words: &[&str]) -> i32 {
    let program = match Program::load(words) {
        Ok(program) => program,
        Err(refused) => {
            let status = u8::from(ExitStatus::ProgramNotFound);
            eprintln!("sequence: no program, status {status}: {refused}");
            return status.into();
        }
    };
    program.run().expect("it was not started");
    let number = program.number();
    let status = program.wait().expect("it was started");
    eprintln!("sequence: program {number}, status {status}: {}", words.join(" "));
    status.into()
}
