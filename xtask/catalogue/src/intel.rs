//! Intel's tables: the JSON files of github.com/intel/perfmon.

use serde::Deserialize;

use crate::line::{COLUMNS, Line};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct File {
    header: Header,
    events: Vec<Event>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Header {
    copyright: String,
    info: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    event_name: String,
    event_code: String,
    #[serde(rename = "UMask")]
    umask: String,
    counter: String,
    counter_mask: String,
    invert: String,
    edge_detect: String,
    /// Counters without hyper-threading. The table lists all of them: with hyper-threading CPUID
    /// reports fewer counters.
    #[serde(rename = "CounterHTOff")]
    counter_without_threads: Option<String>,
    #[serde(rename = "MSRIndex")]
    msr_index: String,
    #[serde(rename = "MSRValue")]
    msr_value: String,
    taken_alone: String,
    any_thread: Option<String>,
}

/// Table of one of Intel's files.
pub(crate) fn table(json: &str) -> Result<String, String> {
    let file: File = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let mut table = format!(
        "# {}\n# Facts from github.com/intel/perfmon, made by tally-catalogue. {}\n\
         # Licence of the source: BSD-3-Clause, text in kernel/pmu/LICENSES/BSD-3-Clause-Intel.txt.\n{COLUMNS}",
        file.header.info, file.header.copyright
    );
    for event in file.events {
        table +=
            &line(&event).ok_or_else(|| format!("cannot read {}", event.event_name))?.to_string();
    }
    Ok(table)
}

fn line(event: &Event) -> Option<Line> {
    Some(Line {
        name: event.event_name.clone(),
        code: list(&event.event_code)?,
        umask: number(&event.umask)?.try_into().ok()?,
        cmask: number(&event.counter_mask)?.try_into().ok()?,
        inv: number(&event.invert)? != 0,
        edge: number(&event.edge_detect)? != 0,
        counters: counters(event.counter_without_threads.as_ref().unwrap_or(&event.counter))?,
        flag: match (event.taken_alone.as_str(), event.any_thread.as_deref()) {
            ("1", _) => 'a',
            (_, Some("1")) => 't',
            _ => '-',
        },
        msr: list(&event.msr_index)?,
        value: number(&event.msr_value)?,
    })
}

/// List of numbers, in hexadecimal.
fn list(text: &str) -> Option<String> {
    let numbers: Option<Vec<String>> =
        text.split(',').map(|item| Some(format!("{:x}", number(item)?))).collect();
    Some(numbers?.join(","))
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Counters, from `Fixed counter 1` or `0,1,2,3`.
fn counters(text: &str) -> Option<String> {
    if let Some(index) = text.strip_prefix("Fixed counter ") {
        return Some(format!("fixed{}", number(index)?));
    }
    let mut mask = 0_u8;
    for index in text.split(',') {
        mask |= 1_u8.checked_shl(number(index)?.try_into().ok()?)?;
    }
    Some(format!("{mask:x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_used_fields_are_read() {
        let json = r#"{ "Header": { "Copyright": "C", "Info": "I" }, "Events": [ {
            "EventName": "OCR.X", "EventCode": "0xB7, 0xBB", "UMask": "0x01",
            "Counter": "0,1,2,3", "CounterMask": "16", "Invert": "1", "EdgeDetect": "0",
            "MSRIndex": "0x1a6,0x1a7", "MSRValue": "0x3F803C0001", "TakenAlone": "0" }, {
            "EventName": "F", "EventCode": "0x00", "UMask": "0x02",
            "Counter": "Fixed counter 1", "CounterMask": "0", "Invert": "0", "EdgeDetect": "0",
            "MSRIndex": "0", "MSRValue": "0x00", "TakenAlone": "1", "CounterHTOff": "Fixed counter 1",
            "AnyThread": "0" } ] }"#;
        let table = table(json).unwrap();
        let lines: Vec<&str> = table.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            lines,
            [
                "OCR.X\tb7,bb\t1\t10\t1\t0\tf\t-\t1a6,1a7\t3f803c0001",
                "F\t0\t2\t0\t0\t0\tfixed1\ta\t0\t0"
            ]
        );
    }

    #[test]
    fn unknown_forms_are_refused() {
        assert!(table("{}").is_err());
        assert_eq!(counters("0,9"), None);
        assert_eq!(number("0xzz"), None);
    }
}
