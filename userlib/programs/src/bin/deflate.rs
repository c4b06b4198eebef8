//! Default job: compresses a text with a library, decompresses it and checks the result. It
//! measures itself, unless another program has a session on it.
//!
//! The text is processed block by block, as in a store of compressed blocks.
//!
//! `deflate [--events LIST] [--slice CYCLES] [--budget PERCENT] [--shares KIND] [--unit yes]
//! [--file PATH] [--level 0..10] [--kib N]`

#![no_std]
#![no_main]

extern crate alloc;

use alloc::{format, string::String};

use tally::{
    ExitStatus, Session, SessionConfig, eprintln, io::read_file, println, runtime::arguments,
    session,
};
use tally_programs::{default_events, options::ProgramOptions, store::Store};

tally::main!(main);

/// Events that every processor counts.
const ALWAYS: &str = "cycles,instructions";
/// Exit status if the decompressed text differs.
const MISMATCH: i32 = 1;

fn main() -> i32 {
    match run() {
        Ok(()) => 0,
        Err((status, text)) => {
            eprintln!("deflate: {text}");
            status
        }
    }
}

type Failure = (i32, String);

fn status(status: ExitStatus) -> i32 {
    i32::from(u8::from(status))
}

fn run() -> Result<(), Failure> {
    let usage = |text: String| (status(ExitStatus::Usage), text);
    let options = ProgramOptions::parse(arguments().skip(1)).map_err(usage)?;
    let path = options.file.unwrap_or("corpus.txt");
    let mut text = read_file(path).map_err(|e| {
        (status(ExitStatus::HostError), format!("cannot read {path}: error {}", e.0))
    })?;
    text.truncate(options.kib.map_or(usize::MAX, |kib| kib.saturating_mul(1024)));
    let config = SessionConfig {
        slice: options.slice.unwrap_or_default(),
        budget_ppm: options.budget_ppm.unwrap_or(session::DEFAULT_BUDGET_PPM),
        shares: options.shares.unwrap_or_default(),
        exclusive: true,
        unit: options.unit,
        ..SessionConfig::default()
    };
    let session = session(options.events, config)?;
    let failed = |error: tally::Error| (status(error.exit_status()), error.message().into());
    let mut store = Store::new(options.level.unwrap_or(6));
    session.as_ref().map_or(Ok(()), Session::start).map_err(failed)?;
    let packed_bytes = store.round_trip(&text);
    session.as_ref().map_or(Ok(()), Session::stop).map_err(failed)?;
    let packed_bytes = packed_bytes.ok_or((MISMATCH, "the decompressed text differs".into()))?;
    println!(
        "deflate: compressed {} bytes to {packed_bytes}, decompressed and compared",
        text.len()
    );
    Ok(())
}

/// Opens a session on a list, or on the processor's own; `None` if the program is measured from
/// outside, as by `tally stat`: its counters are not shared.
fn session(list: Option<&str>, config: SessionConfig) -> Result<Option<Session>, Failure> {
    let events = match list {
        Some(list) => list,
        None => default_events(),
    };
    let session = match (Session::open(events, config), list) {
        // The processor has another list of its own: a virtual one, or one whose hypervisor hides
        // events.
        (Err(refused), None) if refused.error == tally::Error::EventNotSupported => {
            let open = Session::open(ALWAYS, config);
            if open.is_ok() {
                println!("deflate: counts {ALWAYS}: {}", refused.detail);
            }
            open
        }
        (opened, _) => opened,
    };
    match session {
        Ok(session) => Ok(Some(session)),
        Err(refused) if refused.error == tally::Error::Busy => Ok(None),
        Err(refused) => Err((status(refused.error.exit_status()), refused.detail)),
    }
}
