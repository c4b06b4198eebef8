//! The study's text, in 80 columns.

use tally_abi::text::Grouped;
use xtask::report::{EventReport, Kind};

use super::{
    events::FIGURE_7,
    results::{Bar, Results, Row, Table},
};

/// Length of the longest bar in characters.
const LONGEST: f64 = 40.0;

pub(super) fn render(results: &Results) -> String {
    let mut text = String::new();
    for table in &results.table_1 {
        text += &table_1(table);
        text.push('\n');
    }
    text + &figure_7(&results.figure_7)
}

fn table_1(table: &Table) -> String {
    let Table { pmu, rows } = table;
    let mut text = format!(
        "Table 1: {} events of BT in one session on two CPUs ({pmu})\n\
         event                                    CPU           count   ± 95 %   error\n",
        rows.len()
    );
    for Row { name, cpus } in rows {
        for (cpu, event) in cpus.iter().enumerate() {
            // A long name has a separate line.
            let name = match (cpu, name.len() > 40) {
                (0, true) => format!("{name}\n{:<40}", ""),
                (0, false) => format!("{name:<40}"),
                _ => " ".repeat(40),
            };
            text += &format!("{name} {cpu:>3} {}\n", cells(event));
        }
    }
    let all = || rows.iter().flat_map(|row| &row.cpus);
    let of = |kind| all().filter(move |event| event.kind == kind);
    let exact = of(Kind::Exact).filter(|event| event.estimate == event.truth).count();
    let within = of(Kind::Estimated).filter(|event| event.is_within() == Some(true)).count();
    text + &format!(
        "exact and equal to the truth: {exact} of {}; within ± 95 %: {within} of {}\n",
        of(Kind::Exact).count(),
        of(Kind::Estimated).count()
    )
}

/// Count, half width and error of an event on a CPU.
fn cells(event: &EventReport) -> String {
    let Some((count, truth)) = event.estimate.zip(event.truth) else {
        return format!("{:>15} {:>8} {:>7}", "not measured", "-", "-");
    };
    let share = |part: f64| 100.0 * part / (truth.max(1) as f64);
    let width = match event.kind {
        Kind::Exact => "exact".to_owned(),
        _ => format!("{:.2}%", share(event.half_width_95.unwrap_or(f64::NAN))),
    };
    let error = share(count as f64 - truth as f64);
    format!("{:>15} {width:>8} {error:>+6.2}%", Grouped(count).to_string())
}

fn figure_7(bars: &[Bar]) -> String {
    let mut text = format!(
        "Figure 7: floating-point instructions of FT by options of the compiler\n\
         ({}; on one number, and on two at a time)\n",
        FIGURE_7.profile().name
    );
    let counts = bars.iter().flat_map(|bar| &bar.events[1..3]).filter_map(|it| it.estimate);
    let longest = counts.max().unwrap_or(0).max(1) as f64;
    for Bar { program, options, events } in bars {
        text += &format!("{program}: {options}\n");
        for (index, event) in events.iter().enumerate() {
            let short = event.name.rsplit('.').next().unwrap_or_default();
            let is_drawn = (1..3).contains(&index);
            let of = event.estimate.unwrap_or(0) as f64 / longest;
            let drawn = "#".repeat(if is_drawn { (of * LONGEST).round() as usize } else { 0 });
            let line = format!("  {short:<20} {} {drawn}", cells(event));
            text += &format!("{}\n", line.trim_end());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use tally_abi::{Reading, Value};

    use super::*;

    fn event(value: Value, truth: u64) -> EventReport {
        let (counted_cycles, total_cycles) = (100, 1_000);
        let reading = Reading { value, counted: 0, counted_cycles, total_cycles, slices: 4 };
        EventReport::of("EVENT", &reading, Some(truth))
    }

    #[test]
    fn a_table_counts_what_is_exact_and_what_is_within() {
        let estimated = |estimate| Value::Estimated { estimate, stderr: 5.0, half_width_95: 10.0 };
        let rows = vec![
            Row {
                name: "EXACT".to_owned(),
                cpus: [7, 8].map(|count| event(Value::Exact { count }, 7)),
            },
            Row {
                name: "A_NAME_THAT_IS_LONGER_THAN_FORTY_CHARACTERS".to_owned(),
                cpus: [95, 80].map(|estimate| event(estimated(estimate), 100)),
            },
        ];
        let text = table_1(&Table { pmu: "zen4", rows });
        assert!(
            text.contains("EXACT                                      0               7"),
            "{text}"
        );
        assert!(
            text.contains("CHARACTERS\n                                           0"),
            "{text}"
        );
        assert!(text.contains("95   10.00%  -5.00%\n"), "{text}");
        assert!(text.ends_with("truth: 1 of 2; within ± 95 %: 1 of 2\n"), "{text}");
    }
}
