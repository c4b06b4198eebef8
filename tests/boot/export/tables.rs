//! Totals as OpenMetrics text, and the tables of Parquet, read back and compared with the trace.

use std::{collections::BTreeMap, fs};

use openmetrics_parser::{MetricNumber, OpenMetricsValue, openmetrics::parse_openmetrics};
use parquet::{
    file::reader::{FileReader, SerializedFileReader},
    record::Field,
};
use serde_json::Value;

use super::{assert_near, counted, export, exported, ns, trace};

#[test]
fn openmetrics_has_every_total_and_its_error() {
    let (_, run, _) = trace();
    let text = String::from_utf8(exported(&["--to", "openmetrics"])).unwrap();
    let parsed = parse_openmetrics(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let number = |name: &str, session: u32, event: &str| -> Option<f64> {
        let family = parsed.families.get(name).unwrap_or_else(|| panic!("no {name}: {text}"));
        let session = session.to_string();
        family.iter_samples().find_map(|sample| {
            let labels = sample.get_labelset().unwrap();
            let is_it = labels.get_label_value("session") == Some(&session)
                && labels.get_label_value("event") == Some(event);
            is_it.then_some(match &sample.value {
                OpenMetricsValue::Gauge(of) => match of {
                    MetricNumber::Float(number) => *number,
                    MetricNumber::Int(number) => *number as f64,
                },
                other => panic!("{other:?}"),
            })
        })
    };
    let mut known = 0;
    for session in &run.sessions {
        for event in &session.events {
            let of = |name: &str| number(name, session.session, &event.report.name);
            assert_eq!(of("tally_event_count"), event.report.estimate.map(|count| count as f64));
            assert_eq!(of("tally_event_true_count"), event.report.truth.map(|count| count as f64));
            assert_eq!(of("tally_event_count_standard_error"), event.report.stderr);
            assert_eq!(of("tally_event_count_low_95"), event.report.low_95);
            assert_eq!(of("tally_event_count_high_95"), event.report.high_95);
            assert_eq!(of("tally_event_coverage_ratio"), event.report.coverage);
            known += usize::from(event.report.estimate.is_some());
        }
    }
    assert!(known >= 8, "{text}");
}

/// Rows of a Parquet table, and its metadata.
fn table(name: &str) -> (Vec<BTreeMap<String, Field>>, BTreeMap<String, String>) {
    let (boot, _, trace) = trace();
    let path = boot.folder.file(&format!("{name}.parquet"));
    let words = ["--to", "parquet", "--table", name, "--out", path.to_str().unwrap()];
    let output = export(trace, &words);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    let fields = |row: parquet::record::Row| {
        row.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect()
    };
    let rows = reader.get_row_iter(None).unwrap().map(|row| fields(row.unwrap())).collect();
    let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let metadata = metadata.iter().map(|pair| (pair.key.clone(), pair.value.clone().unwrap()));
    (rows, metadata.collect())
}

/// Panics unless the metadata describes the run and gives a unit for each column.
fn assert_described(metadata: &BTreeMap<String, String>, row: &BTreeMap<String, Field>) {
    let json = |key: &str| serde_json::from_str::<Value>(&metadata[key]).unwrap();
    assert_eq!(json("tally.run"), trace().1.json());
    let columns = json("tally.columns");
    for name in row.keys() {
        assert!(columns[name]["unit"].is_string() && columns[name]["about"].is_string(), "{name}");
    }
    assert_eq!(columns.as_object().unwrap().len(), row.len());
}

#[test]
fn a_parquet_table_has_every_slice_and_event() {
    let (boot, run, _) = trace();
    let (rows, metadata) = table("slices");
    assert_described(&metadata, &rows[0]);
    let expected = counted(&run, &boot.transcript.slices);
    assert_eq!(rows.len(), expected.len());
    for (row, (slice, event, count)) in rows.iter().zip(expected) {
        let session = run.sessions.iter().find(|of| of.session == slice.session).unwrap();
        let expected = [
            ("session", Field::UInt(slice.session)),
            ("program", Field::UInt(session.program)),
            ("program_name", Field::Str(session.name.clone())),
            ("event", Field::Str(event)),
            ("count", Field::ULong(count)),
            ("cycles", Field::ULong(slice.cycles)),
            ("instructions", Field::ULong(slice.instructions)),
            ("start_tsc", Field::ULong(slice.start_tsc)),
            ("end_tsc", Field::ULong(slice.end_tsc)),
            ("sequence", Field::ULong(slice.sequence)),
            ("group", Field::UInt(slice.group.into())),
            ("mode", Field::Str("user".into())),
            ("slice_multiplier", Field::UInt(slice.slice_multiplier)),
            ("cpu", Field::UInt(slice.cpu.into())),
            ("address_space", Field::ULong(slice.address_space)),
        ];
        for (name, field) in expected {
            assert_eq!(row[name], field, "{name} of {row:?}");
        }
        let Field::ULong(start) = row["start_ns"] else { panic!("{row:?}") };
        assert_near(start as f64, ns(boot, &run, slice.start_tsc), 1.0);
    }
}

#[test]
fn a_parquet_table_has_every_sample() {
    let (boot, run, _) = trace();
    let (rows, metadata) = table("samples");
    assert_described(&metadata, &rows[0]);
    assert_eq!(rows.len(), boot.transcript.samples.len());
    let mut last = 0;
    for (row, sample) in rows.iter().zip(&boot.transcript.samples) {
        let expected = [
            ("session", Field::UInt(sample.session)),
            ("event", Field::Str("branches".into())),
            ("events", Field::ULong(sample.count - last)),
            ("count", Field::ULong(sample.count)),
            ("cycles", Field::ULong(sample.cycles)),
            ("instructions", Field::ULong(sample.instructions)),
            ("tsc", Field::ULong(sample.tsc)),
            ("address", Field::ULong(sample.address)),
            ("user", Field::Bool(sample.user)),
            ("cpu", Field::UInt(sample.cpu.into())),
        ];
        for (name, field) in expected {
            assert_eq!(row[name], field, "{name} of {row:?}");
        }
        let Field::ULong(at) = row["ns"] else { panic!("{row:?}") };
        assert_near(at as f64, ns(boot, &run, sample.tsc), 1.0);
        last = sample.count;
    }
}
