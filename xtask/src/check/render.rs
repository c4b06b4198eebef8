//! A report as text of 80 columns.

use std::fmt::{self, Write};

use tally_abi::{
    check::{Cost, Counter, Event},
    text::Grouped,
};

use super::{
    judge::{wrong_counter, wrong_span},
    report::CheckReport,
};

/// Columns of the text.
const WIDTH: usize = 80;
/// Columns of an event's name; a longer one has its own line.
const NAME: usize = 30;

/// The report as text.
pub fn render(report: &CheckReport) -> String {
    let mut text = String::new();
    write_all(&mut text, report).expect("writing to a string does not fail");
    text
}

fn write_all(text: &mut String, report: &CheckReport) -> fmt::Result {
    write_machine(text, report)?;
    write_counters(text, report)?;
    write_costs(text, report)?;
    write_events(text, &report.events)?;
    let not_checked = &report.not_checked;
    writeln!(text, "\nnot checked, as no loop raises them for certain: {}", not_checked.len())?;
    wrap(text, "  ", &not_checked.join(" "))?;
    writeln!(text)?;
    for note in &report.findings.notes {
        wrap(text, "note: ", note)?;
    }
    for wrong in &report.findings.wrong {
        wrap(text, "wrong: ", wrong)?;
    }
    match report.findings.wrong.len() {
        0 => writeln!(text, "everything that was checked is right"),
        wrong => writeln!(text, "{wrong} wrong"),
    }
}

/// Writes text after a prefix, in lines that are not too long.
fn wrap(text: &mut String, begin: &str, words: &str) -> fmt::Result {
    let mut line = begin.to_owned();
    for word in words.split(' ') {
        let is_first = line.trim_end() == begin.trim_end();
        if !is_first && line.len() + 1 + word.len() > WIDTH {
            writeln!(text, "{line}")?;
            line = format!("  {word}");
        } else {
            line += if is_first { "" } else { " " };
            line += word;
        }
    }
    writeln!(text, "{}", line.trim_end())
}

fn write_machine(text: &mut String, report: &CheckReport) -> fmt::Result {
    let of = &report.machine;
    let where_ = if of.hypervisor { "under a hypervisor" } else { "without a hypervisor" };
    writeln!(
        text,
        "processor  {}, family {}, model {}, stepping {}, {where_}",
        of.vendor, of.family, of.model, of.stepping
    )?;
    writeln!(text, "PMU        {}", of.pmu)?;
    writeln!(text, "events     {}", of.catalogue)?;
    let (general, pinned, bits) = (of.general, of.pinned, of.width_bits);
    writeln!(text, "counters   {general} general of {bits} bits, {pinned} pinned")?;
    writeln!(text, "CPUs       {}, time-stamp counter {} Hz", of.cpus, Grouped(of.tsc_hz))
}

fn write_counters(text: &mut String, report: &CheckReport) -> fmt::Result {
    writeln!(
        text,
        "\n{:<12} {:>3} {:>9} {:>9} {:>9} {:>7} {:>7} {:>4}  skid",
        "counter", "CPU", "alone", "together", "session", "stopped", "arrived", "bits"
    )?;
    for of in &report.counters {
        let Counter { cpu, counter, arrived, raised, .. } = of;
        let known = |number: Option<u64>| number.map_or("-".to_owned(), number_text);
        let arrived = format!("{arrived}/{raised}");
        let skid: Vec<String> = of.skid.iter().map(|skid| number_text(*skid)).collect();
        let mark = if wrong_counter(of, report.machine.width_bits).is_empty() { "" } else { " *" };
        writeln!(
            text,
            "{counter:<12} {cpu:>3} {:>9} {:>9} {:>9} {:>7} {arrived:>7} {:>4}  {}{mark}",
            number_text(of.alone),
            number_text(of.together),
            known(of.session),
            known(of.stopped),
            known(of.width_bits.map(u64::from)),
            skid.join(" ")
        )?;
    }
    Ok(())
}

fn write_costs(text: &mut String, report: &CheckReport) -> fmt::Result {
    writeln!(
        text,
        "\n{:<14} {:>3} {:>9} {:>9} {:>9} {:>10} {:>9} {:>9}",
        "cost in cycles", "CPU", "RDMSR", "WRMSR", "RDPMC", "interrupt", "switch", "overcount"
    )?;
    for of in &report.costs {
        let Cost { cpu, overcount, interrupts, .. } = of;
        let boot = report.at_boot.iter().find(|it| it.cpu == *cpu);
        let hundredths = |cost: Option<u64>| {
            cost.map_or("-".to_owned(), |it| format!("{:.1}", it as f64 / 100.0))
        };
        let known = |cost: Option<u64>| cost.map_or("-".to_owned(), number_text);
        writeln!(
            text,
            "{:<14} {cpu:>3} {:>9} {:>9} {:>9} {:>10} {:>9} {:>9.3}",
            "",
            hundredths(boot.and_then(|it| it.rdmsr_centicycles)),
            hundredths(boot.and_then(|it| it.wrmsr_centicycles)),
            hundredths(of.rdpmc_centicycles),
            known(of.interrupt_cycles),
            known(of.switch_cycles),
            *overcount as f64 / (*interrupts).max(1) as f64
        )?;
    }
    Ok(())
}

fn write_events(text: &mut String, events: &[Event]) -> fmt::Result {
    writeln!(text, "\n{:<NAME$} {:>11} {:>23} {:>11}", "event", "at least", "counted", "at most")?;
    for of in events {
        if of.event.len() > NAME {
            writeln!(text, "{}", of.event)?;
            write!(text, "{:NAME$} ", "")?;
        } else {
            write!(text, "{:<NAME$} ", of.event)?;
        }
        let (low, high) = (of.on.iter().map(|it| it.least), of.on.iter().map(|it| it.most));
        let counted = match low.min().zip(high.max()) {
            None => "-".to_owned(),
            Some((low, high)) if low == high => number_text(low),
            Some((low, high)) => format!("{}..{}", number_text(low), number_text(high)),
        };
        let is_wrong = of.on.is_empty() || of.on.iter().any(|it| wrong_span(of, it).is_some());
        let mark = if is_wrong { " *" } else { "" };
        let (least, most) = (number_text(of.least), number_text(of.most));
        writeln!(text, "{least:>11} {counted:>23} {most:>11}{mark}")?;
    }
    Ok(())
}

fn number_text(number: u64) -> String {
    Grouped(number).to_string()
}
