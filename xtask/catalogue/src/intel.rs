//! Intel's tables: the JSON files of github.com/intel/perfmon.

use serde::Deserialize;

use crate::line::Event;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct File {
    header: Header,
    events: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Header {
    info: String,
}

/// Event of a file. A field that is not named here ends the conversion: what it means has to be
/// known first.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Row {
    event_name: String,
    event_code: String,
    #[serde(rename = "UMask")]
    umask: String,
    /// Bits 40 to 47 of the event select.
    #[serde(rename = "UMaskExt")]
    umask_ext: Option<String>,
    counter: String,
    counter_mask: String,
    invert: String,
    edge_detect: String,
    /// Bit 36 of the event select.
    equal: Option<String>,
    /// Counters without hyper-threading. The table lists all of them: with hyper-threading CPUID
    /// reports fewer counters.
    #[serde(rename = "CounterHTOff")]
    counter_without_threads: Option<String>,
    #[serde(rename = "MSRIndex")]
    msr_index: String,
    #[serde(rename = "MSRValue")]
    msr_value: String,
    taken_alone: Option<String>,
    any_thread: Option<String>,
    /// Text, and what concerns sampling or can be told from other fields.
    #[serde(rename = "BriefDescription")]
    _brief_description: String,
    #[serde(rename = "PublicDescription")]
    _public_description: String,
    #[serde(rename = "SampleAfterValue")]
    _sample_after_value: String,
    #[serde(rename = "Deprecated")]
    _deprecated: Option<String>,
    #[serde(rename = "PEBScounters")]
    _pebs_counters: Option<String>,
    #[serde(rename = "Precise")]
    _precise: Option<String>,
    #[serde(rename = "CollectPEBSRecord")]
    _collect_pebs_record: Option<String>,
    #[serde(rename = "PEBS")]
    _pebs: Option<String>,
    #[serde(rename = "PDIR_COUNTER")]
    _pdir_counter: Option<String>,
    #[serde(rename = "PDISTCounter")]
    _pdist_counter: Option<String>,
    #[serde(rename = "Data_LA")]
    _data_la: Option<String>,
    #[serde(rename = "L1_Hit_Indication")]
    _l1_hit_indication: Option<String>,
    #[serde(rename = "Errata")]
    _errata: Option<String>,
    #[serde(rename = "Offcore")]
    _offcore: Option<String>,
    #[serde(rename = "Offmodule")]
    _offmodule: Option<String>,
    #[serde(rename = "Speculative")]
    _speculative: Option<String>,
    #[serde(rename = "ELLC")]
    _ellc: Option<String>,
    #[serde(rename = "CounterType")]
    _counter_type: Option<String>,
    #[serde(rename = "ProgrammingRestriction")]
    _programming_restriction: Option<String>,
}

/// Title of one of Intel's files, and its events.
pub(crate) fn events(json: &str) -> Result<(String, Vec<Event>), String> {
    let file: File = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let read = |row: &Row| event(row).ok_or_else(|| format!("cannot read {}", row.event_name));
    let events: Result<Vec<Event>, String> = file.events.iter().map(read).collect();
    Ok((file.header.info, events?))
}

fn event(row: &Row) -> Option<Event> {
    let is_set = |field: &Option<String>| match field.as_deref() {
        None | Some("0") => Some(false),
        Some("1") => Some(true),
        _ => None,
    };
    let one = |text: &str| number(text)?.try_into().ok();
    let second = row.umask_ext.as_deref().map_or(Some(0), number)?;
    let umask = |umask: u64| u16::try_from(umask | second << 8).ok();
    let flags = [
        ('i', is_set(&Some(row.invert.clone()))?),
        ('e', is_set(&Some(row.edge_detect.clone()))?),
        ('q', is_set(&row.equal)?),
        ('a', is_set(&row.taken_alone)?),
        ('t', is_set(&row.any_thread)?),
    ];
    let registers = shorts(&row.msr_index)?;
    let registers = if registers == [0] { Vec::new() } else { registers };
    let value = number(&row.msr_value)?;
    let mut event = Event {
        name: row.event_name.clone(),
        codes: shorts(&row.event_code)?,
        umasks: list(&row.umask)?.into_iter().map(umask).collect::<Option<_>>()?,
        cmask: one(&row.counter_mask)?,
        counters: counters(row.counter_without_threads.as_ref().unwrap_or(&row.counter))?,
        flags: flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag).collect(),
        value: if registers.is_empty() { 0 } else { value },
        registers,
    };
    event.codes = of_registers(&event.codes, &event.registers)?;
    event.umasks = of_registers(&event.umasks, &event.registers)?;
    Some(event)
}

/// Codes or unit masks that belong to an event's extra registers. A list has one for each register
/// that such an event may use, MSR_OFFCORE_RSP_0 (1A6H) first, also where the event is bound to one
/// of them, or where the spelling gives the register's value (OFFCORE_RESPONSE).
fn of_registers(numbers: &[u16], registers: &[u16]) -> Option<Vec<u16>> {
    match (numbers, registers) {
        ([_], _) => Some(numbers.into()),
        ([first, ..], []) => Some(vec![*first]),
        (_, [register]) => {
            let index = register.checked_sub(0x1a6)?;
            Some(vec![*numbers.get(usize::from(index))?])
        }
        _ => (numbers.len() == registers.len()).then(|| numbers.into()),
    }
}

fn shorts(text: &str) -> Option<Vec<u16>> {
    list(text)?.into_iter().map(|number| number.try_into().ok()).collect()
}

fn list(text: &str) -> Option<Vec<u64>> {
    text.split(',').map(number).collect()
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
    let bit = |index| 1_u16.checked_shl(u32::try_from(number(index)?).ok()?);
    let mask = text.split(',').map(bit).try_fold(0, |mask, bit| Some(mask | bit?))?;
    Some(format!("{mask:x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// File with one event; `more` are further fields.
    fn file(more: &str) -> String {
        format!(
            r#"{{ "Header": {{ "Info": "I" }}, "Events": [ {{ "EventName": "OCR.X",
            "EventCode": "0xB7, 0xBB", "UMask": "0x01", "Counter": "0,1,9", "CounterMask": "16",
            "Invert": "1", "EdgeDetect": "0", "MSRIndex": "0x1a6,0x1a7",
            "MSRValue": "0x3F803C0001", "BriefDescription": "", "PublicDescription": "",
            "SampleAfterValue": "1" {more} }} ] }}"#
        )
    }

    #[test]
    fn the_used_fields_are_read() {
        let (title, all) =
            events(&file(r#", "TakenAlone": "1", "Equal": "1", "UMaskExt": "0x80""#)).unwrap();
        assert_eq!(title, "I");
        let lines: Vec<String> = all.iter().map(Event::to_string).collect();
        assert_eq!(lines, ["OCR.X\tb7,bb\t8001\t10\t203\tiqa\t1a6,1a7\t3f803c0001"]);
        assert_eq!(counters("Fixed counter 1").unwrap(), "fixed1");
        let (_, of_one) = events(&file("").replace("0x1a6,0x1a7", "0x1a7")).unwrap();
        assert_eq!((&of_one[0].codes[..], &of_one[0].registers[..]), (&[0xbb][..], &[0x1a7][..]));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert!(events("{}").is_err());
        for more in [r#", "Equal": "2""#, r#", "UMaskExt": "0x100""#, r#", "New": "0""#] {
            assert!(events(&file(more)).is_err(), "{more}");
        }
        assert!(events(&file("").replace("0x1a6,0x1a7", "0x1a6,0x1a7,0x3e0")).is_err());
        assert_eq!(counters("0,16"), None);
        assert_eq!(number("0xzz"), None);
    }
}
