//! `cargo xtask vpmu-events PROFILE`: the events of a virtual PMU profile, with the definition of
//! each.

use clap::Args;
use tally_model::{Pipeline, PipelineMode};
use tally_vpmu::Event;

use crate::{Result, machine::ProfileName, output};

/// Options of `cargo xtask vpmu-events`.
#[derive(Args, Clone, Debug)]
pub struct EventsArgs {
    /// Profile of the virtual PMU
    #[arg(value_enum)]
    profile: ProfileName,
}

/// Prints the table of events.
///
/// # Errors
/// Standard output cannot be written.
pub fn main(args: &EventsArgs) -> Result<u8> {
    output::text(&table(args.profile))?;
    Ok(0)
}

fn table(profile: ProfileName) -> String {
    let mut text = String::new();
    let Some(mut profile) = tally_vpmu::Profile::find(profile.name()) else { return text };
    // Some events exist only with the out-of-order pipeline.
    profile.geometry.pipeline = Pipeline::OutOfOrder(PipelineMode::Real);
    let mut line = |event: &Event, place: &str| {
        text += &format!("{:<62} {place:<22} {}\n", event.name, event.about);
    };
    for event in profile.fixed_events() {
        line(event, "fixed");
    }
    for event in profile.offcore_events() {
        line(event, "off-core");
    }
    for event in profile.events() {
        line(event, &encoding(event));
    }
    text
}

fn encoding(event: &Event) -> String {
    let mut text = format!("{:#05x}:{:02x}", event.code, event.umask);
    if event.cmask != 0 {
        text += &format!(" cmask={}", event.cmask);
    }
    for (is_set, word) in
        [(event.inv, " inv"), (event.edge, " edge"), (event.needs_out_of_order, " ooo")]
    {
        if is_set {
            text += word;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_a_line_with_its_definition() {
        for profile in ProfileName::ALL {
            let table = table(profile);
            assert!(table.lines().count() >= 45, "{}", profile.name());
            assert!(table.lines().all(|line| line.ends_with('.')), "{table}");
        }
        let table = table(ProfileName::ALL[0]);
        assert!(table.contains("0x0a3:04 cmask=4 "), "{table}");
        assert!(table.contains("OCR.DEMAND_DATA_RD.L3_HIT"), "{table}");
    }
}
