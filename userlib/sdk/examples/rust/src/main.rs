//! Counts a named region in four threads and prints each. On another kernel than Tally it says so,
//! works all the same, and counts nothing.

use std::{collections::HashMap, thread};

use tally::{Reading, Value, regions};

/// Without `regions::open` regions count a list of seven events.
const EVENTS: &str = "instructions,cycles,branches,branch-misses";

fn main() {
    if let Err(error) = regions::open(EVENTS) {
        println!("not counted: {error}");
    }
    let threads: Vec<_> = (1..=4).map(|index| thread::spawn(move || words(index))).collect();
    let words: usize = threads.into_iter().map(|thread| thread.join().expect("it counts")).sum();
    for region in regions::all() {
        println!("{}, thread {}", region.name, region.thread.unwrap_or_default());
        for (event, reading) in region.events {
            print(&event, reading);
        }
    }
    println!("words: {words}");
}

/// Counts different words.
fn words(index: usize) -> usize {
    let _region = regions::enter("count words");
    let mut words: HashMap<String, usize> = HashMap::new();
    for number in 0..1000 * index {
        *words.entry(format!("word {}", number * number % 1000)).or_default() += 1;
    }
    words.len()
}

fn print(event: &str, reading: Reading) {
    match reading.value {
        Value::Exact { count } => println!("  {event:<22} {count:>12}  exact"),
        Value::Estimated { estimate, half_width_95, .. } => {
            println!("  {event:<22} {estimate:>12}  ± {half_width_95:.0}");
        }
        Value::NotMeasured { reason } => println!("  {event:<22} {}", reason.message()),
    }
}
