//! Time of the planner for the maximum number of events, in mixes that are hard for it: one JSON
//! object with, for each mix, the groups, their lower bound, and the minimum and median time of a
//! plan in microseconds. `cargo run --release -p tally-engine --example planner [MIX [TIMES]]`

use std::{hint::black_box, time::Instant};

use tally_abi::session::MAX_EVENTS;
use tally_engine::{Demand, Extra, Layout, Selector, Widths, plan};

/// Counters of Intel's processors with eight general counters.
const LAYOUT: Layout = Layout { general: 0xff, reference: true, extra: 7, widths: Widths::of(48) };

fn offcore(id: u64, counters: u16, value: u64) -> Demand {
    let second = Selector(id * 2 + 1);
    let extra = Some(Extra { value, registers: 3, second });
    Demand { extra, ..Demand::general(Selector(id * 2), counters) }
}

/// Returns event number `id` of a mix.
type Event = fn(u64) -> Demand;

const MIXES: [(&str, Event); 7] = [
    ("any counter", |id| Demand::general(Selector(id * 2), 0xff)),
    ("every mask", |id| Demand::general(Selector(id * 2), (id % 255 + 1) as u16)),
    ("off-core, a value each", |id| offcore(id, 0xf, id)),
    ("off-core, two to a value", |id| offcore(id, 0xf, id / 2)),
    ("off-core, three to a value, three counters", |id| offcore(id, 0x7, id / 3)),
    ("off-core, two to a value, among others on odd counters", |id| match id % 3 {
        0 => Demand::general(Selector(id * 2), 0xfe << (id % 7)),
        _ => offcore(id, if id % 5 == 0 { 0x81 } else { 0x2f }, id / 3),
    }),
    ("off-core, half with one value, and alone", |id| Demand {
        alone: id % 5 == 4,
        ..offcore(id, (id % 15 + 1) as u16, if id % 2 == 0 { 0 } else { id / 6 })
    }),
];

fn main() {
    let mut words = std::env::args().skip(1);
    let only = words.next().and_then(|word| word.parse::<usize>().ok());
    let times = words.next().and_then(|word| word.parse().ok()).unwrap_or(50_usize).max(1);
    let mixes = MIXES.iter().enumerate().filter(|(mix, _)| only.is_none_or(|only| only == *mix));
    let lines: Vec<String> = mixes.map(|(_, (name, event))| line(name, *event, times)).collect();
    println!("{{\"events\":{MAX_EVENTS},\"mixes\":[{}]}}", lines.join(","));
}

fn line(name: &str, event: Event, times: usize) -> String {
    let demands: Vec<Demand> = (0..MAX_EVENTS as u64).map(event).collect();
    let mut micros: Vec<f64> = (0..times)
        .map(|_| {
            let start = Instant::now();
            black_box(plan(black_box(&demands), &LAYOUT)).expect("every mix can be planned");
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    micros.sort_by(f64::total_cmp);
    let plan = plan(&demands, &LAYOUT).expect("every mix can be planned");
    format!(
        "{{\"mix\":\"{name}\",\"groups\":{},\"least\":{},\"best_us\":{:.0},\"median_us\":{:.0}}}",
        plan.groups.len(),
        plan.least,
        micros[0],
        micros[times / 2]
    )
}
