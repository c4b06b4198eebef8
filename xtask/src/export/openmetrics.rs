//! The totals of sessions with their errors, as OpenMetrics text.
//!
//! Source: OpenMetrics 1.0, github.com/prometheus/OpenMetrics. An unknown value has no sample, as 0
//! would be a value. Estimates and their bounds are gauges: a counter never falls.

use std::fmt::Write as _;

use crate::trace::run::{Run, TracedEvent};

/// A metric of events.
struct Metric {
    name: &'static str,
    /// The unit at the end of the name, if the metric has one that OpenMetrics names.
    unit: Option<&'static str>,
    help: &'static str,
    /// An event's value; `None` if it is not known.
    value: fn(&TracedEvent) -> Option<String>,
}

fn text(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}

const METRICS: [Metric; 6] = [
    Metric {
        name: "tally_event_count",
        unit: None,
        help: "How often the event happened, as counted or estimated.",
        value: |event| text(event.report.estimate),
    },
    Metric {
        name: "tally_event_count_standard_error",
        unit: None,
        help: "Standard error of the count, in events; 0 if the count is exact.",
        value: |event| text(event.report.stderr),
    },
    Metric {
        name: "tally_event_count_low_95",
        unit: None,
        help: "Lower end of the 95 % interval, in events.",
        value: |event| text(event.report.low_95),
    },
    Metric {
        name: "tally_event_count_high_95",
        unit: None,
        help: "Upper end of the 95 % interval, in events.",
        value: |event| text(event.report.high_95),
    },
    Metric {
        name: "tally_event_coverage_ratio",
        unit: Some("ratio"),
        help: "Share of the session's time in which the event was counted.",
        value: |event| text(event.report.coverage),
    },
    Metric {
        name: "tally_event_true_count",
        unit: None,
        help: "The virtual PMU's count of the event.",
        value: |event| text(event.report.truth),
    },
];

/// The file's text.
pub(super) fn write(run: &Run) -> String {
    let mut all = String::new();
    describe_run(run, &mut all);
    for metric in &METRICS {
        family(&mut all, metric.name, "gauge", metric.unit, metric.help);
        for (labels, event) in events(run) {
            if let Some(value) = (metric.value)(event) {
                sample(&mut all, metric.name, &labels, &value);
            }
        }
    }
    let name = "tally_event_not_measured";
    family(&mut all, name, "info", None, "Events without a count, and why.");
    for (mut labels, event) in events(run) {
        if let Some(reason) = &event.report.reason {
            labels.push(("reason", reason.to_string()));
            sample(&mut all, &format!("{name}_info"), &labels, "1");
        }
    }
    all + "# EOF\n"
}

/// Labels with their values.
type Labels = Vec<(&'static str, String)>;

fn describe_run(run: &Run, all: &mut String) {
    let mut labels: Labels = vec![("command_line", run.command_line.clone())];
    labels.extend(run.seed.map(|seed| ("seed", seed.to_string())));
    if let Some(of) = &run.processor {
        labels.push(("vendor", of.vendor.clone()));
        labels.push(("family", of.family.to_string()));
        labels.push(("model", of.model.to_string()));
        labels.push(("pmu", of.pmu.clone()));
    }
    family(all, "tally_run", "info", None, "The run that the counts are of.");
    sample(all, "tally_run_info", &labels, "1");
}

/// Every event of every session, with the labels that distinguish it from all others.
fn events(run: &Run) -> impl Iterator<Item = (Labels, &TracedEvent)> {
    run.sessions.iter().flat_map(|session| {
        session.events.iter().enumerate().map(|(index, event)| {
            let labels = vec![
                ("session", session.session.to_string()),
                ("program", session.name.clone()),
                ("index", index.to_string()),
                ("event", event.report.name.clone()),
                ("mode", event.mode.word().to_owned()),
                ("kind", event.report.kind.word().to_owned()),
            ];
            (labels, event)
        })
    })
}

fn family(all: &mut String, name: &str, kind: &str, unit: Option<&str>, help: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(all, "# TYPE {name} {kind}");
    if let Some(unit) = unit {
        let _ = writeln!(all, "# UNIT {name} {unit}");
    }
    let _ = writeln!(all, "# HELP {name} {}", escape(help));
}

fn sample(all: &mut String, name: &str, labels: &Labels, value: &str) {
    let label = |(name, value): &(&str, String)| format!("{name}=\"{}\"", escape(value));
    let labels: Vec<String> = labels.iter().map(label).collect();
    let _ = writeln!(all, "{name}{{{}}} {value}", labels.join(","));
}

/// Escapes characters that labels and help texts must not contain.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
