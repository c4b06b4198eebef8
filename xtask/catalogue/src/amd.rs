//! AMD's tables: tab-separated text with the facts of libpfm4's tables (perfmon2.sourceforge.net,
//! MIT).

use crate::line::Event;

/// Mask of AMD's core counters, all of which count every core event.
const COUNTERS: &str = "3f";

/// Events whose only unit mask the files lack, with which they count nothing, or which lack a unit
/// mask of libpfm4 4.13: event, unit mask's name, code, value (AMD's processor programming
/// references, PMCx120 and PMCx1A0).
const COMPLETED: [(&str, &str, u16, u16); 2] = [
    ("P0_FREQ_CYCLES_NOT_IN_HALT", "P0_FREQ_CYCLES", 0x120, 0x01),
    ("DISPATCH_STALLS_1", "SMT_CONTENTION", 0x1a0, 0x60),
];

/// Events of a file: name, code, unit mask's name, its value. The unit mask's name is joined to the
/// event's by a dot.
pub(crate) fn events(text: &str) -> Result<Vec<Event>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let read = |line: &str| event(line).ok_or_else(|| format!("cannot read {line}"));
    let mut events = lines.map(read).collect::<Result<Vec<Event>, String>>()?;
    for (name, mask, code, value) in COMPLETED {
        let of_code = |event: &Event| event.codes == [code];
        let has_it = events.iter().any(|event| of_code(event) && event.umasks == [value]);
        let Some(like) = events.iter().find(|event| of_code(event)).cloned() else { continue };
        if !has_it {
            events.retain(|event| event.name != name);
            events.push(Event { name: format!("{name}.{mask}"), umasks: vec![value], ..like });
        }
    }
    Ok(events)
}

fn event(line: &str) -> Option<Event> {
    let [name, code, mask, value, group, flags, _what]: [&str; 7] =
        line.split('\t').collect::<Vec<_>>().try_into().ok()?;
    let is_known = |flag: &str| matches!(flag, "" | "AMD64_FL_DFL" | "AMD64_FL_NCOMBO");
    if !flags.split(" | ").all(is_known) || !matches!(group, "" | "0" | "1") {
        return None;
    }
    let name = if mask.is_empty() { name.to_owned() } else { format!("{name}.{mask}") };
    let hex = |text: &str| match text {
        "" => Some(0),
        text => u16::from_str_radix(text, 16).ok(),
    };
    Some(Event {
        name: name.to_uppercase(),
        codes: vec![hex(code).filter(|code| *code < 0x1000)?],
        umasks: vec![hex(value).filter(|umask| *umask < 0x100)?],
        cmask: 0,
        counters: COUNTERS.into(),
        flags: String::new(),
        registers: Vec::new(),
        value: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_without_unit_masks_and_one_with_them() {
        let all =
            events("# x\nA\t1cf\t\t0\t\t\twhat\nB\t3\tadd\tf\t0\tAMD64_FL_DFL\twhat").unwrap();
        let lines: Vec<String> = all.iter().map(Event::to_string).collect();
        assert_eq!(lines, ["A\t1cf\t0\t0\t3f\t-\t-\t0", "B.ADD\t3\tf\t0\t3f\t-\t-\t0"]);
        let completed = events("P0_FREQ_CYCLES_NOT_IN_HALT\t120\t\t0\t\t\twhat").unwrap();
        let line = completed[0].to_string();
        assert_eq!(line, "P0_FREQ_CYCLES_NOT_IN_HALT.P0_FREQ_CYCLES\t120\t1\t0\t3f\t-\t-\t0");
        assert!(events("A\t1\tB\t1\t2\t\twhat").is_err());
        assert!(events("A\t1\tB\t1\t0\tAMD64_FL_NEW\twhat").is_err());
        assert!(events("A\t1").is_err());
    }
}
