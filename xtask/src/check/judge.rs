//! Judgement of a report: what is wrong, and what is worth knowing.

use tally_abi::check::{Cost, Counter, Event, Span};

use super::report::{CheckReport, Findings};

/// Unexplained overflow interrupts of a counter that are tolerated. More are a sign of an overflow
/// that is not cleared.
const STRAY_INTERRUPTS: u64 = 2;
/// Events between an overflow and its interrupt from which on the skid is reported: no processor's
/// own latency is that long.
const LONG_SKID: u64 = 5_000;
/// Counts of CPUs or counters differ if both this factor and this difference are exceeded.
const FACTOR: u64 = 2;
const DIFFERENCE: u64 = 1_000;

/// Judges a report.
pub fn findings(report: &CheckReport) -> Findings {
    let mut found = Findings::default();
    for cpu in &report.offline {
        found.wrong.push(format!("the CPU with APIC ID {} is offline: {}", cpu.apic_id, cpu.why));
    }
    for cpu in &report.at_boot {
        found.wrong.extend(cpu.failure.iter().map(|why| format!("CPU {}: {why}", cpu.cpu)));
        if cpu.overcount > 0 {
            found.notes.push(format!(
                "CPU {}: an interrupt in ring 3 counts as up to {} instructions",
                cpu.cpu, cpu.overcount
            ));
        }
    }
    check_number(report, &mut found);
    report.counters.iter().for_each(|of| check_counter(of, report, &mut found));
    report.costs.iter().for_each(|of| check_cost(of, &mut found));
    report.events.iter().for_each(|of| check_event(of, report, &mut found));
    for refused in &report.refused {
        found.notes.push(format!("{} is refused: {}", refused.event, refused.why));
    }
    found
}

/// Checks that each CPU has the counters that the kernel found.
fn check_number(report: &CheckReport, found: &mut Findings) {
    let machine = &report.machine;
    let expected = usize::from(machine.general) + usize::from(machine.pinned);
    for cpu in report.costs.iter().map(|cost| cost.cpu) {
        let there = report.counters.iter().filter(|of| of.cpu == cpu).count();
        if there != expected {
            found.wrong.push(format!("CPU {cpu}: {there} counters can be had of {expected}"));
        }
    }
}

/// The error of a counter's count of a loop, if it is wrong.
pub(super) fn wrong_count(of: &Counter, how: &str, count: u64) -> Option<String> {
    let Counter { least, most, .. } = of;
    (!(least..=most).contains(&&count))
        .then(|| format!("{how} it counted {count}, where {least} to {most} happened"))
}

/// The errors of a counter.
pub(super) fn wrong_counter(of: &Counter, width_bits: u8) -> Vec<String> {
    let mut wrong = Vec::new();
    wrong.extend(wrong_count(of, "alone", of.alone));
    wrong.extend(wrong_count(of, "with all others", of.together));
    match of.session {
        Some(count) => wrong.extend(wrong_count(of, "in a session", count)),
        None => wrong.push("no session can count with it".to_owned()),
    }
    if let Some(counted @ 1..) = of.stopped {
        wrong.push(format!("it counted {counted} after it was stopped"));
    }
    if of.arrived < of.raised {
        wrong.push(format!("{} of {} overflow interrupts came", of.arrived, of.raised));
    }
    if of.interrupts > of.raised.saturating_add(STRAY_INTERRUPTS) {
        let (raised, interrupts) = (of.raised, of.interrupts);
        wrong.push(format!("{raised} overflows raised {interrupts} interrupts"));
    }
    if let Some(bits) = of.width_bits.filter(|bits| is_general(of) && *bits != width_bits) {
        wrong.push(format!("it has {bits} bits, where CPUID says {width_bits}"));
    }
    wrong
}

fn is_general(of: &Counter) -> bool {
    of.counter.starts_with("general")
}

fn check_counter(of: &Counter, report: &CheckReport, found: &mut Findings) {
    let name = format!("CPU {}, counter {}", of.cpu, of.counter);
    let wrong = wrong_counter(of, report.machine.width_bits);
    if !wrong.is_empty() {
        found.wrong.push(format!("{name}: {}", wrong.join("; ")));
    }
    if let Some(skid) = of.skid.last().filter(|skid| **skid > LONG_SKID) {
        found.notes.push(format!("{name}: an interrupt came {skid} events after its overflow"));
    }
}

fn check_cost(of: &Cost, found: &mut Findings) {
    let Cost { cpu, overcount, interrupts, lost, .. } = of;
    if *lost > 0 {
        found.wrong.push(format!("CPU {cpu}: {lost} slices ended without an overflow interrupt"));
    }
    if *overcount > 0 {
        found.notes.push(format!(
            "CPU {cpu}: {overcount} instructions were counted beyond those of a loop, in which \
             there were {interrupts} interrupts"
        ));
    }
}

/// The error of an event on a counter, if it is wrong.
pub(super) fn wrong_span(of: &Event, span: &Span) -> Option<String> {
    let Event { work, least, most, .. } = of;
    let (count, cpu) = match span {
        Span { least: count, least_cpu, .. } if count < least => (count, least_cpu),
        Span { most: count, most_cpu, .. } if count > most => (count, most_cpu),
        _ => return None,
    };
    let counter = span.counter;
    Some(format!(
        "general-{counter} of CPU {cpu} counted {count} of the loop `{work}`, which raises {least} \
         to {most}"
    ))
}

/// Returns whether a counter of a CPU miscounts whatever it counts, so that its events are not
/// judged.
fn is_bad(report: &CheckReport, cpu: u32, counter: u8) -> bool {
    let name = format!("general-{counter}");
    let mut all = report.counters.iter();
    all.any(|of| of.cpu == cpu && of.counter == name && wrong_count(of, "", of.alone).is_some())
}

fn check_event(of: &Event, report: &CheckReport, found: &mut Findings) {
    if of.on.is_empty() {
        found.wrong.push(format!("{}: no counter counted it", of.event));
    }
    let judged = of.on.iter().filter(|span| {
        let cpus = [span.least_cpu, span.most_cpu];
        !cpus.iter().any(|cpu| is_bad(report, *cpu, span.counter))
    });
    let wrong: Vec<String> = judged.filter_map(|span| wrong_span(of, span)).collect();
    let differs = |span: &&Span| {
        span.most > FACTOR * span.least && span.most > span.least + DIFFERENCE && wrong.is_empty()
    };
    for span in of.on.iter().filter(differs) {
        let Span { counter, least, least_cpu, most, most_cpu } = span;
        found.notes.push(format!(
            "{}: general-{counter} counted {least} on CPU {least_cpu} and {most} on CPU {most_cpu}",
            of.event
        ));
    }
    if !wrong.is_empty() {
        found.wrong.push(format!("{}: {}", of.event, wrong.join("; ")));
    }
}
