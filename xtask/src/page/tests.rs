//! Tests of a run's page, read by an HTML parser that follows the rules of browsers.

use scraper::{ElementRef, Html, Selector};
use serde_json::Value;

use tally_abi::{
    Mode, PhaseConfig, Reading, Value as Count,
    trace::{BRANCH_RECORD_WORDS, BranchesRecord, SampleRecord, SlicePlace},
};

use super::{Samples, by_code::Functions};
use crate::{
    recording::{Recording, SampledBranches, Symbolizer},
    report::{Estimate, EventReport, PhaseReport, Report, made_up_phases},
    samples::breakdown::tests::{recording as breakdown_recording, two_functions},
    trace::run::{Program, Run, TracedEvent, TracedSession},
    trace_file::Records,
};

/// A report, as printed by `cargo xtask run --breakdown --intervals 8 --json`.
const SAMPLE: &str = include_str!("sample.json");

/// Text that would do harm if it were not escaped.
pub(crate) const HOSTILE: &str = r#"</script><script>alert(1)</script><!-- "'&amp; {{ view }} -->"#;

pub(crate) fn sample() -> Report {
    serde_json::from_str(SAMPLE).expect("it is a report")
}

/// The report with phases in place of parts of the cycles.
pub(super) fn with_phases() -> Report {
    let mut report = sample();
    let session = report.first.as_mut().unwrap();
    session.intervals.iter_mut().for_each(|interval| interval.parts.clear());
    let mut records = made_up_phases();
    let all: u64 = session.intervals.iter().map(|interval| interval.cycles).sum();
    let number = records.len() as u64;
    records.iter_mut().for_each(|record| record.cycles = all / number);
    session.phases = Some(PhaseReport::of(&records, PhaseConfig::default(), Vec::new()));
    report
}

/// Three samples of a program, two at one address.
pub(super) fn recording(program: &str) -> Recording {
    let sample = |(number, address): (u64, u64)| SampleRecord {
        session: 1,
        cpu: 0,
        event: 0,
        address,
        address_space: 0,
        count: 1_000 * (number + 1),
        late: 0,
        cycles: 0,
        instructions: 0,
        group: 0,
        period_multiplier: 1,
        thread: 2,
        user: true,
        precise: false,
        events: 0,
        counts: [0; tally_abi::trace::MAX_COUNTS],
        tsc: 100 + number,
    };
    let value = Count::Exact { count: 3_000 };
    let reading = Reading { value, counted: 0, counted_cycles: 1, total_cycles: 1, slices: 1 };
    let event = TracedEvent {
        native: None,
        mode: Mode::User,
        place: SlicePlace::None,
        report: EventReport::of("cycles", &reading, None),
    };
    let (name, events) = (program.to_owned(), vec![event]);
    let session = TracedSession { session: 1, program: 1, name, address_space: 0, events };
    let programs = vec![Program { program: 1, name: program.to_owned() }];
    let run = Run { programs, sessions: vec![session], ..Run::default() };
    let samples = (0..).zip([0x1000, 0x2000, 0x2000]).map(sample).collect();
    let records = Records { samples, ..Records::default() };
    Recording::made(run, records, (100, 1_000_000_000))
}

/// Parses the page of a report as a browser does; the page must have no syntax errors.
fn read(report: &Report) -> Html {
    parsed(&super::render(report, &Samples::default()).unwrap())
}

fn parsed(page: &str) -> Html {
    let page = Html::parse_document(page);
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    page
}

pub(crate) fn all<'a>(page: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    page.select(&Selector::parse(selector).unwrap()).collect()
}

fn text(element: ElementRef<'_>) -> String {
    element.text().collect::<String>().trim().to_owned()
}

pub(crate) fn object(page: &Html) -> Value {
    let [data] = all(page, "script[type='application/json']")[..] else { panic!("no object") };
    serde_json::from_str(&text(data)).unwrap()
}

#[test]
fn a_report_is_what_was_printed() {
    let printed: Value = serde_json::from_str(SAMPLE).unwrap();
    assert_eq!(serde_json::to_value(sample()).unwrap(), printed);
}

#[test]
fn a_page_has_the_object_and_each_of_its_values() {
    let report = sample();
    let page = read(&report);
    let object = object(&page);
    assert_eq!(object, serde_json::to_value(&report).unwrap());
    let rows = all(&page, "tr[data-event]");
    let events = object["events"].as_array().unwrap();
    assert_eq!((rows.len(), rows.is_empty()), (events.len(), false));
    let data = Selector::parse("data").unwrap();
    for (row, event) in rows.into_iter().zip(events) {
        assert_eq!(row.attr("data-event"), event["name"].as_str());
        let values: Vec<f64> = row.select(&data).map(|it| number(it.attr("value"))).collect();
        for field in ["estimate", "coverage", "truth"] {
            let value = event[field].as_f64().unwrap();
            assert!(values.contains(&value), "{field} of {event}: {values:?}");
        }
        let [estimate, half_width] = [&event["estimate"], &event["half_width_95"]];
        let [estimate, half_width] = [estimate, half_width].map(|it| it.as_f64().unwrap());
        // The half width of an estimate of 0 is in events, as text.
        let of_page = if estimate > 0.0 { values[1] * estimate } else { half_width };
        assert!((of_page - half_width).abs() <= 1e-9 * half_width, "{event}: {values:?}");
    }
    for part in report.first.unwrap().breakdown.unwrap().parts {
        let of_part = |row: &ElementRef<'_>| text(*row).starts_with(&*part.name);
        let row = all(&page, "tr").into_iter().find(of_part).unwrap();
        let values: Vec<f64> = row.select(&data).map(|it| number(it.attr("value"))).collect();
        assert!(values.contains(&part.share) && values.contains(&part.cpi), "{part:?}: {values:?}");
    }
}

#[test]
fn each_ring_that_is_broken_down_has_its_tables() {
    let mut report = sample();
    let one = all(&read(&report), "section[aria-labelledby^=breakdown-]").len();
    let session = report.first.as_mut().unwrap();
    let mut kernel = session.breakdown.clone().unwrap();
    kernel.cycles = 7_654_321;
    kernel.parts[0].share = 0.1234;
    session.kernel_breakdown = Some(kernel);
    let page = read(&report);
    let sections = all(&page, "section[aria-labelledby^=breakdown-]");
    assert_eq!((one, sections.len()), (1, 2));
    let of_kernel = text(sections[1]);
    let heading = "Where the cycles in ring 0, without the engine's interrupts, go";
    assert!(of_kernel.starts_with(heading), "{of_kernel}");
    assert!(of_kernel.contains("7,654,321") && of_kernel.contains("12.3%"), "{of_kernel}");
    assert!(!text(sections[0]).contains("7,654,321"));
    assert_eq!(all(&page, "nav a[href='#breakdown-0-ring-0']").len(), 1);
    assert_eq!(all(&page, "#breakdown-0-ring-0").len(), 1);
}

/// The report has only first-level parts, as that of a default run.
#[test]
fn a_first_level_has_a_table_of_cycles_alone() {
    let mut report = sample();
    let breakdown = report.first.as_mut().unwrap().breakdown.as_mut().unwrap();
    breakdown.parts.retain(|part| part.level == 1);
    breakdown.parts.iter_mut().for_each(|part| part.metric = "".into());
    let page = text(all(&read(&report), "main")[0]);
    assert!(page.contains("Cycles by what") && !page.contains("tma_"), "{page}");
}

pub(crate) fn number(text: Option<&str>) -> f64 {
    text.unwrap().parse().unwrap()
}

#[test]
fn estimates_made_after_the_run_have_columns_of_their_own() {
    let mut report = sample();
    let heads = |page: &Html| all(page, "thead th").into_iter().map(text).collect::<Vec<_>>();
    assert!(!heads(&read(&report)).contains(&"refined".to_owned()));
    let event = &mut report.first.as_mut().unwrap().events[2];
    let later = |estimate| {
        let half_width_95 = estimate / 8.0;
        let (low_95, high_95) = (estimate - half_width_95, estimate + half_width_95);
        Some(Estimate { estimate, half_width_95, low_95, high_95 })
    };
    (event.refined, event.unobserved) = (later(1_234_567.5), later(7_654_321.25));
    let page = read(&report);
    assert!(
        ["refined", "without interrupts"].iter().all(|of| heads(&page).contains(&(*of).into()))
    );
    let row = text(all(&page, "tr[data-event]")[2]);
    for value in ["1,234,568", "7,654,321", "12.5%"] {
        assert!(row.contains(value), "{value}: {row}");
    }
}

#[test]
fn what_interrupts_are_likely_to_have_added_is_below_the_table_s_head() {
    let mut report = sample();
    let event = &mut report.first.as_mut().unwrap().events[3];
    event.likely_added = event.estimate.map(|estimate| estimate as f64 / 8.0);
    let told = format!("likely to have added up to: {} 12.5%", event.name);
    let page = read(&report);
    let all_of_it: String = all(&page, "section p").into_iter().map(text).collect();
    assert!(all_of_it.contains(&told), "{told}: {all_of_it}");
}

#[test]
fn hostile_names_are_text() {
    let mut report = sample();
    report.pmu = Some(HOSTILE.into());
    report.failures = vec![HOSTILE.into()];
    report.made.as_mut().unwrap().command = vec!["run".into(), HOSTILE.into()];
    let session = report.first.as_mut().unwrap();
    session.program = HOSTILE.into();
    session.events[0].name = HOSTILE.into();
    session.breakdown.as_mut().unwrap().parts[0].name = HOSTILE.into();
    for interval in &mut session.intervals {
        interval.parts[0].name = HOSTILE.into();
        interval.events[1].name = HOSTILE.into();
    }
    session.groups[0].events[0] = HOSTILE.into();
    let page = read(&report);
    assert_eq!(object(&page), serde_json::to_value(&report).unwrap());
    assert_eq!(all(&page, "script").len(), 2, "the object and the page's own");
    assert_eq!(all(&page, "tr[data-event]")[0].attr("data-event"), Some(HOSTILE));
    assert_eq!(text(all(&page, "h1")[0]), HOSTILE);
    assert!(all(&page, ".legend li").into_iter().any(|it| text(it) == HOSTILE));
}

#[test]
fn a_page_can_be_read_aloud_and_needs_no_network() {
    let page = read(&sample());
    assert!(all(&page, "thead th").iter().all(|head| head.attr("scope") == Some("col")));
    assert!(all(&page, "tbody th").iter().all(|head| head.attr("scope") == Some("row")));
    for svg in all(&page, "svg") {
        let has = |name: &str| svg.select(&Selector::parse(name).unwrap()).next().is_some();
        let is_described = has("title") && has("desc") && svg.attr("role") == Some("img");
        assert!(svg.attr("aria-hidden") == Some("true") || is_described);
    }
    // One picture for the stack, and one for each event except the instructions.
    let session = sample().first.unwrap();
    assert_eq!(all(&page, "svg.chart").len(), session.events.len());
    for (selector, attribute) in [("[src]", "src"), ("[href]", "href")] {
        for element in all(&page, selector) {
            let target = element.attr(attribute).unwrap();
            assert!(target.starts_with('#') || target == "data:,", "{target}");
        }
    }
    for link in all(&page, "nav a, a.skip") {
        let target = link.attr("href").unwrap();
        assert_eq!(all(&page, target).len(), 1, "{target}");
    }
    for label in all(&page, "[aria-labelledby]") {
        for id in label.attr("aria-labelledby").unwrap().split(' ') {
            assert_eq!(all(&page, &format!("#{id}")).len(), 1, "{id}");
        }
    }
}

#[test]
fn a_run_without_a_session_has_a_page() {
    let failures = vec!["the kernel panicked".to_owned()];
    let report = Report { status: 74, failures, ..Report::default() };
    let page = read(&report);
    assert_eq!(text(all(&page, ".failures li")[0]), "the kernel panicked");
    assert!(all(&page, "tr[data-event]").is_empty());
    assert!(serde_json::from_value::<Report>(object(&page)).unwrap().first.is_none());
}

#[test]
fn phases_are_in_a_table_and_shade_the_time() {
    let report = with_phases();
    let phases = report.first.as_ref().unwrap().phases.clone().unwrap();
    let page = read(&report);
    let data = Selector::parse("data").unwrap();
    let rows = all(&page, "tr[data-phase]");
    assert_eq!((rows.len(), rows.is_empty()), (phases.phases.len(), false));
    for (row, phase) in rows.into_iter().zip(&phases.phases) {
        let values: Vec<f64> = row.select(&data).map(|it| number(it.attr("value"))).collect();
        let expected =
            [phase.intervals as f64, phase.share, phase.cpi, phase.bottleneck_share].to_vec();
        assert_eq!(values, expected);
        assert!(text(row).contains(phase.bottleneck.word()));
    }
    // Phases come in turns of three: a shade for each turn, in the phases and in each rate.
    let turns = phases.intervals.len() / 3;
    let shades = |plot: &ElementRef<'_>| {
        let shade = Selector::parse("rect[opacity='0.25']").unwrap();
        plot.select(&shade).count()
    };
    let plots = all(&page, "svg.plot");
    assert!(plots.len() > 2 && plots.iter().all(|plot| shades(plot) == turns), "{turns}");
    assert!(all(&read(&sample()), "tr[data-phase]").is_empty());
}

#[test]
fn cycles_of_functions_are_in_a_table_with_their_causes() {
    let of = two_functions(HOSTILE);
    let (events, functions) = (Vec::new(), Some(Functions::of(&of)));
    let page = parsed(
        &super::render(&sample(), &Samples { events, functions, ..Samples::default() }).unwrap(),
    );
    assert_eq!(all(&page, "#functions").len(), 1);
    let rows = all(&page, "section[aria-labelledby=functions] tbody tr");
    let named: Vec<_> = rows.iter().filter_map(|row| row.attr("data-code")).collect();
    assert_eq!(named, [HOSTILE, "fetches"]);
    let data = Selector::parse("data").unwrap();
    let mut shares = [0.0; 2];
    for row in &rows {
        let values: Vec<f64> = row.select(&data).map(|it| number(it.attr("value"))).collect();
        // A function's first value is cycles per instruction; in other rows it is the share of all
        // cycles.
        let is_part = row.attr("data-code").is_none();
        shares[usize::from(is_part)] += values[usize::from(!is_part)];
    }
    let [whole, parts] = shares;
    assert!((whole - 1.0).abs() < 1e-9 && (parts - 1.0).abs() < 1e-9, "{shares:?}");
    assert!(rows.iter().any(|row| text(*row).starts_with("* memory")));
    assert_eq!(all(&page, "script").len(), 2, "the object and the page's own");
    // Pages are made from a recording: code without symbols is one piece.
    let sampled = super::sampled(&breakdown_recording(700), &Symbolizer::default(), None).unwrap();
    let page = parsed(&super::render(&sample(), &sampled).unwrap());
    assert_eq!(all(&page, "tr[data-code='code without symbols']").len(), 1);
    assert!(all(&read(&sample()), "#functions").is_empty());
}

#[test]
fn samples_are_in_a_flame_graph_and_in_a_table() {
    let sampled = super::sampled(&recording(HOSTILE), &Symbolizer::default(), None).unwrap();
    let page = parsed(&super::render(&sample(), &sampled).unwrap());
    let [frame] = all(&page, "iframe")[..] else { panic!("one picture") };
    assert!(frame.attr("title").unwrap().starts_with("Flame graph of cycles"));
    let inner = Html::parse_document(frame.attr("srcdoc").unwrap());
    let frames = all(&inner, "#frames > g > title");
    let titles: Vec<String> = frames.into_iter().map(text).collect();
    assert!(titles.iter().any(|it| it.starts_with("0x2000 (2,000 cycles")), "{titles:?}");
    assert!(all(&inner, "script").iter().all(|script| !text(*script).starts_with("alert")));
    let data = Selector::parse("data").unwrap();
    let rows = all(&page, "tr[data-function]");
    let values = |row: &ElementRef<'_>| {
        row.select(&data).map(|it| number(it.attr("value"))).collect::<Vec<_>>()
    };
    let rows: Vec<_> =
        rows.iter().map(|row| (row.attr("data-function").unwrap(), values(row))).collect();
    let third = 1.0 / 3.0;
    assert_eq!(
        rows,
        [("0x2000", vec![2.0 * third, 2.0, 2_000.0]), ("0x1000", vec![third, 1.0, 1_000.0])]
    );
}

#[test]
fn what_a_sample_s_address_is_of_is_said() {
    for (are_precise, said) in [(true, "an instruction that had the event"), (false, "late")] {
        let mut recording = recording("precise");
        recording.records.samples.iter_mut().for_each(|sample| sample.precise = are_precise);
        let sampled = super::sampled(&recording, &Symbolizer::default(), None).unwrap();
        let page = super::render(&sample(), &sampled).unwrap();
        let (_, behind) = page.split_once("A sample has the address of ").unwrap();
        assert!(behind.split('.').next().unwrap().contains(said), "{behind}");
    }
}

#[test]
fn branches_before_samples_are_in_a_table() {
    let mut of = recording(HOSTILE);
    let page = |of: &Recording| {
        let sampled = super::sampled(of, &Symbolizer::default(), None).unwrap();
        parsed(&super::render(&sample(), &sampled).unwrap())
    };
    assert!(all(&page(&of), "#branches").is_empty());
    let mut words = [0; BRANCH_RECORD_WORDS];
    words[..3].copy_from_slice(&[0x2008, 0x2000, 2]);
    let SampleRecord { cpu, tsc, session, .. } = of.records.samples[0];
    let part = BranchesRecord { tsc, session, cpu, first: 0, sample_tsc: tsc, valid: 3, words };
    of.branches = SampledBranches::of(&Records { branches: vec![part], ..Records::default() });
    let page = page(&of);
    assert_eq!(all(&page, "#branches").len(), 1);
    let [row] = all(&page, "section[aria-labelledby=branches] tbody tr")[..] else {
        panic!("one branch")
    };
    assert!(text(row).contains("0x2008") && text(row).contains("0x2000"), "{}", text(row));
}
