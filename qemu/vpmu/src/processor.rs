//! Another processor over a profile's machine: its CPUID, and its encodings of the events that the
//! profile models. An event of the profile that the processor
//! does not have is gone. Off-core responses are gone too: the bits of their registers are not the
//! same on all processors.
//!
//! The option `processor=FILE` names a text with fields between tabs, numbers in hexadecimal:
//!
//! ```text
//! signature <CPUID leaf 1, EAX> <CPUID leaf 1AH, EAX; 0 without core types>
//! event <name> <profile's name> <code> <unit mask> <counter mask> <inverted> <edges> <counters>
//! ```

use std::{collections::BTreeMap, fs, path::PathBuf};

use crate::{
    event::{Event, TALLY_CODE},
    profile::Profile,
};

/// Returns `profile` as the processor of the file, if there is one.
pub(crate) fn shown(profile: Profile, path: Option<PathBuf>) -> Result<Profile, String> {
    let Some(path) = path else { return Ok(profile) };
    let why = |what: String| format!("processor={}: {what}", path.display());
    let text = fs::read_to_string(&path).map_err(|error| why(error.to_string()))?;
    parse(profile, &text).map_err(why)
}

fn parse(profile: Profile, text: &str) -> Result<Profile, String> {
    let mut profile = Profile { offcore: [0; 2], ..profile };
    let mut encodings = BTreeMap::new();
    for (line, number) in text.lines().zip(1..) {
        let fields: Vec<&str> = line.split('\t').collect();
        apply(&mut profile, &mut encodings, &fields)
            .ok_or_else(|| format!("line {number} is not understood: {line}"))?;
    }
    if encodings.is_empty() {
        return Err("it has no events".into());
    }
    let of_processor = |event: &Event| {
        if event.code == TALLY_CODE {
            return Some(*event);
        }
        let own = encodings.get(&event.name.to_ascii_uppercase())?;
        let Encoding { name, code, umask, cmask, inv, edge, counters } = *own;
        Some(Event { name, code, umask, cmask, inv, edge, counters, is_unlisted: false, ..*event })
    };
    let mut events: Vec<Event> = Vec::new();
    for event in profile.tables.iter().copied().flatten().filter_map(of_processor) {
        let encoding = |it: &Event| (it.code, it.umask, it.cmask, it.inv, it.edge);
        // Two names of one event: the first counts.
        if events.iter().all(|known| encoding(known) != encoding(&event)) {
            events.push(event);
        }
    }
    // A profile's tables live as long as the process, which has one profile or a few.
    let table: &'static [Event] = events.leak();
    profile.tables = vec![table].leak();
    Ok(profile)
}

/// Encoding of an event.
struct Encoding {
    name: &'static str,
    code: u16,
    umask: u16,
    cmask: u8,
    inv: bool,
    edge: bool,
    counters: u16,
}

/// Applies a line; `None` if it is wrong.
fn apply(
    profile: &mut Profile,
    encodings: &mut BTreeMap<String, Encoding>,
    fields: &[&str],
) -> Option<()> {
    let hex = |text: &str| u32::from_str_radix(text, 16).ok();
    match fields {
        ["signature", signature, kind] => {
            (profile.signature, profile.kind) = (hex(signature)?, hex(kind)?);
        }
        ["event", name, modelled, code, umask, cmask, inv, edge, counters] => {
            let byte = |text| u8::try_from(hex(text)?).ok();
            let encoding = Encoding {
                name: (*name).to_owned().leak(),
                code: hex(code)?.try_into().ok()?,
                umask: hex(umask)?.try_into().ok()?,
                cmask: byte(cmask)?,
                inv: hex(inv)? != 0,
                edge: hex(edge)? != 0,
                counters: hex(counters)?.try_into().ok()?,
            };
            encodings.entry(modelled.to_ascii_uppercase()).or_insert(encoding);
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "signature\tc06f2\t40000001\nevent\tBR_INST_RETIRED.COND_B\tBR_INST_RETIRED.COND\t77\t3\t1\t0\t1\tf";

    #[test]
    fn events_are_the_same_by_name_with_the_processor_s_encoding() {
        let profile = parse(Profile::ALL[0], TEXT).unwrap();
        assert_eq!((profile.signature, profile.kind), (0xc06f2, 0x4000_0001));
        assert_eq!(profile.offcore, [0; 2]);
        let (tallys, vendors): (Vec<&Event>, Vec<&Event>) =
            profile.events().partition(|event| event.is_tallys());
        assert!(!tallys.is_empty());
        assert_eq!(vendors.len(), 1);
        let found = profile.event(0x77, 3, 1, false, true).expect("it has this encoding");
        assert_eq!((found.name, found.counters), ("BR_INST_RETIRED.COND_B", 0xf));
        assert!(profile.event(0xc4, 0x11, 0, false, false).is_none());
    }

    #[test]
    fn a_wrong_line_is_named() {
        let wrong = |text: &str| parse(Profile::ALL[0], text).unwrap_err();
        assert!(wrong("signature\tx\t0").starts_with("line 1 is not understood"));
        assert!(wrong(&format!("{TEXT}\tf")).starts_with("line 2 is not understood"));
        assert_eq!(wrong("signature\t1\t0"), "it has no events");
        assert!(shown(Profile::ALL[0], Some("/no/such".into())).is_err());
    }
}
