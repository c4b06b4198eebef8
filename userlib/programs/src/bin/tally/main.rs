//! Measures another program, with perf's syntax: `tally stat [-e EVENTS]… [OPTIONS] [--] PROGRAM
//! ARGUMENTS` prints counts, and `tally record [-e EVENT] [-c PERIOD] … PROGRAM …` prints the
//! addresses of samples.

#![no_std]
#![no_main]

extern crate alloc;

mod record;
mod stat;

use alloc::vec::Vec;

use tally::{ExitStatus, eprintln, println, runtime::arguments};
use tally_abi::command::{Command, Verb, help};
use tally_breakdown::Metrics;
use tally_programs::signature;

tally::main!(main);

fn main() -> i32 {
    let words: Vec<&str> = arguments().skip(1).collect();
    if let Some(help) = help(&words) {
        println!("{}", help.trim_end());
        return 0;
    }
    let done = Command::parse(&words).and_then(|mut command| {
        let metrics = Metrics::counted_by(&mut command, signature())?;
        Ok(match command.verb {
            Verb::Stat => stat::run(&command, metrics.as_ref()),
            Verb::Record => record::run(&command),
        })
    });
    match done {
        Ok(Ok(status)) => status.into(),
        Ok(Err(refused)) => {
            eprintln!("tally: {refused}");
            u8::from(refused.error.exit_status()).into()
        }
        Err(why) => {
            eprintln!("tally: {why}");
            u8::from(ExitStatus::Usage).into()
        }
    }
}
