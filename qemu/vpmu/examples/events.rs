//! Prints the events that a profile counts: name, encoding, counters, and what each counts.
//!
//! `cargo run -p tally-vpmu --example events -- zen4`

use std::process::ExitCode;

use tally_model::{Mode, Pipeline};
use tally_vpmu::Profile;

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some(mut profile) = Profile::find(&name) else {
        let names: Vec<_> = Profile::ALL.iter().map(|profile| profile.name).collect();
        eprintln!("name a profile: {}", names.join(", "));
        return ExitCode::FAILURE;
    };
    // Some only the out-of-order pipeline has.
    profile.geometry.pipeline = Pipeline::OutOfOrder(Mode::Real);
    for event in profile.fixed_events() {
        println!("{:<62} fixed                {}", event.name, event.about);
    }
    for event in profile.events() {
        let mut filter = String::new();
        if event.cmask != 0 {
            filter += &format!(" cmask={}", event.cmask);
        }
        if event.inv {
            filter += " inv";
        }
        if event.edge {
            filter += " edge";
        }
        if event.needs_out_of_order {
            filter += " ooo";
        }
        let code = format!("{:#05x}:{:02x}{filter}", event.code, event.umask);
        println!("{:<62} {code:<20} {}", event.name, event.about);
    }
    ExitCode::SUCCESS
}
