//! Counts what this program and its threads do and prints a line for each event. On another kernel
//! than Tally it says so, works all the same, and counts nothing.

use std::{collections::HashMap, error::Error, thread};

use tally::{Reading, Session, SessionConfig, Value};

const EVENTS: &str =
    "instructions,cycles,branches,branch-misses,L1-dcache-load-misses,dTLB-load-misses";

fn main() {
    match counted() {
        Ok(readings) => {
            for (event, reading) in EVENTS.split(',').zip(readings) {
                print(event, reading);
            }
        }
        Err(error) => println!("not counted: {error}"),
    }
    println!("words: {}", work());
}

/// Works, and returns what was counted meanwhile.
fn counted() -> Result<Vec<Reading>, Box<dyn Error>> {
    let session = Session::open(EVENTS, SessionConfig::default())?;
    session.start()?;
    work();
    session.stop()?;
    Ok(session.read()?)
}

fn print(event: &str, reading: Reading) {
    match reading.value {
        Value::Exact { count } => println!("{event:<22} {count:>12}  exact"),
        Value::Estimated { estimate, half_width_95, .. } => {
            println!("{event:<22} {estimate:>12}  ± {half_width_95:.0}");
        }
        Value::NotMeasured { reason } => println!("{event:<22} {}", reason.message()),
    }
}

/// Counts words in four threads.
fn work() -> usize {
    let count = |thread: usize| {
        let mut words: HashMap<String, usize> = HashMap::new();
        for index in 0..2000 {
            *words.entry(format!("word {}", index * index % (1000 + thread))).or_default() += 1;
        }
        words.len()
    };
    let threads: Vec<_> = (0..4).map(|index| thread::spawn(move || count(index))).collect();
    threads.into_iter().map(|thread| thread.join().expect("it counts")).sum()
}
