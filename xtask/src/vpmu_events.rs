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
    use expect_test::expect;

    #[test]
    fn every_event_has_a_line_with_its_definition() {
        for profile in ProfileName::ALL {
            let table = table(profile);
            assert!(table.lines().count() >= 45, "{}", profile.name());
            assert!(table.lines().all(|line| line.ends_with('.')), "{table}");
        }
    }

    #[test]
    fn a_line_has_name_encoding_and_definition() {
        let table = table(ProfileName::ALL[0]);
        let shown =
            ["INST_RETIRED.ANY ", "OCR.DEMAND_DATA_RD.L3_HIT ", "UOPS_RETIRED.STALL", "SB "];
        let lines = table.lines().filter(|line| shown.iter().any(|name| line.contains(name)));
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        expect![[r#"
            INST_RETIRED.ANY                                               fixed                  Instructions retired, on a fixed counter.
            OCR.DEMAND_DATA_RD.L3_HIT                                      off-core               Lines for loads from the last-level cache.
            UOPS_RETIRED.STALL_CYCLES                                      0x0c2:02 cmask=1 inv   Cycles in which a stall kept every micro-operation from retiring.
            MEM_INST_RETIRED.ANY                                           0x0d0:83               Loads and stores retired.
            RESOURCE_STALLS.SB                                             0x0a2:08 ooo           Cycles for which a full store queue kept an instruction from issuing.
        "#]].assert_eq(&text);
    }
}
