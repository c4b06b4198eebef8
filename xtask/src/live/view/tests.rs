//! Tests of pictures of made-up states.

use std::time::Duration;

use expect_test::{Expect, expect};
use ratatui::{Terminal, backend::TestBackend, style::Color};
use tally_abi::{
    SessionConfig,
    trace::{End, LostRecord, PhaseRecord},
};

use super::*;
use crate::{
    explain::{self, Asked},
    live::state::{Known, Planned, WINDOW},
    machine::{self, Pmu},
    report::{
        Rings,
        made_up::{GROUPS, four_groups, record},
    },
    trace_file::Records,
};

/// Slices of 1,000 cycles and 500 instructions, each with 40 to 42 events.
fn records(slices: u64) -> Records {
    let slice = |at: u64| {
        let mut slice = record(
            (at % u64::from(GROUPS)) as u16,
            End::Overflow,
            [1_000, 500, 40 + at / u64::from(GROUPS) % 3],
        );
        (slice.sequence, slice.start_tsc, slice.end_tsc) = (at, 2_000 * at, 2_000 * at + 1_980);
        slice
    };
    Records { slices: (0..slices).map(slice).collect(), ..Records::default() }
}

fn state() -> State {
    let names = ["A", "B", "C", "D", "INSTRUCTIONS", "CYCLES"].map(str::to_owned).into();
    let known = Known {
        programs: "deflate".into(),
        budget_ppm: 20_000,
        planned: Some(Planned { names, plan: four_groups() }),
        stack: None,
        rings: Rings::User,
        has_phases: false,
        is_modelled: false,
    };
    let (pmu, seed, tsc_hz) = (Some("P".into()), Some(7), Some(1_000_000_000));
    let running = Duration::from_millis(5_900);
    State { pmu, seed, tsc_hz, running, ..State::new(known) }
}

fn drawn(state: &State, columns: u16, rows: u16, has_color: bool) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(frame, state, has_color)).unwrap();
    terminal
}

/// The lines on the terminal.
fn text(state: &State, columns: u16, rows: u16) -> String {
    let terminal = drawn(state, columns, rows, true);
    let cells = terminal.backend().buffer().content().chunks(columns.into());
    let line = |cells: &[ratatui::buffer::Cell]| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned() + "\n"
    };
    cells.map(line).collect()
}

fn assert(state: &State, (columns, rows): (u16, u16), expected: Expect) {
    expected.assert_eq(&text(state, columns, rows));
}

#[test]
fn before_the_first_slice_there_is_what_was_asked_for() {
    let expected = expect![[r#"
        deflate  running 5 s  waiting for the kernel to boot
        budget 2.00%  lost records 0







        q stop   ↑↓ scroll   Tab next session
    "#]];
    assert(&State { pmu: None, seed: None, ..state() }, (60, 10), expected);
    let shown = |is_ready| text(&State { is_ready, ..state() }, 80, 10);
    assert!(shown(false).contains("waiting for the kernel to start the program"));
    assert!(shown(true).contains("waiting for the first slice of the program"));
}

#[test]
fn rates_per_second_need_a_clock() {
    let mut modelled = State { tsc_hz: None, ..state() };
    modelled.add(&records(400));
    let text = text(&modelled, 80, 16);
    assert!(text.contains("in 1,000 i.") && !text.contains("per second"), "{text}");
}

#[test]
fn rates_of_the_window_have_error_bars() {
    let mut state = state();
    state.add(&records(400));
    state.write(b"\x1b[31mone\x1b[0m\nan unfinished li");
    assert(
        &state,
        (80, 16),
        expect![[r#"
            deflate  running 5 s  slices 400  cycles 400.00 k  instructions 200.00 k
            cycles per slice 1,000  budget 2.00%  switching 1.00%  lost records 0  P  seed 7
            event, last 400 slices                          in 1,000 i.   ± 95 %  per second
            A                                                    81.980    0.35%     20.70 M
            B                                                    81.980    0.35%     20.70 M
            C                                                    81.980    0.35%     20.70 M
            D                                                    81.980    0.35%     20.70 M
            INSTRUCTIONS                                         1000.0    exact    252.53 M
            CYCLES                                               2000.0    exact    505.05 M



            output of the programs, all of it at the end
            one
            an unfinished li
            q stop   ↑↓ scroll   Tab next session
        "#]],
    );
    // Lines that do not fit are cut, and can be scrolled to.
    state.scrolled = 99;
    assert(
        &state,
        (40, 10),
        expect![[r#"
        deflate  running 5 s  slices 400
        cycles 400.00 k  instructions 200.00 k
        cycles per slice 1,000  budget 2.00%
        event, last 400 s…  in 1,000 i.   ± 95 %
        INSTRUCTIONS             1000.0    exact
        CYCLES                   2000.0    exact
        output of the programs, all of it at the
        one
        an unfinished li
        q stop   ↑↓ scroll   Tab next session
    "#]],
    );
}

/// A run with the events of a breakdown, and its slices.
fn with_breakdown() -> (State, Records) {
    let stack = crate::report::stack_of(Pmu::Intel.signature()).unwrap();
    let pmu = machine::virtual_pmu_of(Pmu::Intel, &[]).unwrap();
    let events = stack.events().join(",");
    let asked = Asked { events, config: SessionConfig::default(), paranoid: Some(2) };
    let (resolved, plan) = explain::plan_of(&pmu, &asked).unwrap();
    let names = resolved.into_iter().map(|event| event.name).collect();
    let mut records = records(400);
    for slice in &mut records.slices {
        slice.group = (slice.sequence % plan.groups.len() as u64) as u16;
        slice.events = plan.groups[usize::from(slice.group)].used.count_ones() as u8;
        slice.counts = std::array::from_fn(|place| 90 - 10 * place as u64 + slice.sequence % 3);
    }
    let mut state = state();
    state.known.planned = Some(Planned { names, plan });
    (state.known.stack, state.known.has_phases) = (Some(stack), true);
    (state, records)
}

#[test]
fn where_cycles_go_and_phases_are_shown_if_asked_for() {
    let (mut state, records) = with_breakdown();
    let phase = |number: u32| PhaseRecord {
        session: 1,
        phase: (number / 3) as u8,
        sure: !number.is_multiple_of(4),
        changed: number == 3,
        number,
        best: 1,
        ..PhaseRecord::default()
    };
    state.add(&Records { phases: (0..7).map(phase).collect(), ..records });
    assert(
        &state,
        (60, 14),
        expect![[r#"
            deflate  running 5 s  slices 400  cycles 400.00 k
            instructions 200.00 k  cycles per slice 1,000  budget 2.00%
            switching 1.00%  lost records 0  P  seed 7
            phase 2  largest cost itlb-misses  next 1  intervals 7
            changes 1
            0001112
            cycles in                             share   ± 95 %
            mispredicted branches                 46.3%    0.02% ███
            machine clears                        39.5%    0.02% ███
            fetch latency                         6.64%    0.01%
            event, last 400 slices                  in 1,000 i.   ± 95 %
            CPU_CLK_UNHALTED.THREAD                      2000.0    exact
            INST_RETIRED.ANY                             1000.0    exact
            q stop   ↑↓ scroll   Tab next session
        "#]],
    );
}

#[test]
fn lost_records_and_a_program_with_other_events_are_named() {
    let mut state = state();
    let mut records = records(9);
    records.slices[3].events = 4;
    records.losses.push(LostRecord { records: 12_345, cpu: 0, tsc: 0 });
    state.add(&records);
    let text = text(&state, 80, 12);
    assert!(text.contains("lost records 12,345") && text.contains("give --events"), "{text}");
}

#[test]
fn a_terminal_that_is_too_small_says_so_and_every_other_is_filled() {
    let mut state = state();
    state.known.has_phases = true;
    state.add(&records(400));
    state.write(&b"line\n".repeat(100));
    assert!(text(&state, 39, 10).starts_with("too small: 39 × 10 of 40 × 10"));
    assert!(text(&state, 40, 9).starts_with("too small"));
    for (columns, rows) in [(40, 10), (41, 11), (63, 24), (64, 24), (80, 24), (300, 100)] {
        let text = text(&state, columns, rows);
        assert!(text.starts_with("deflate") && text.contains("q stop"), "{text}");
        assert!(text.contains("in 1,000 i."), "{text}");
    }
}

#[test]
fn without_color_there_is_none() {
    let mut state = state();
    state.add(&records(40));
    state.lost = 1;
    let has_color = |has_color| {
        let terminal = drawn(&state, 80, 24, has_color);
        terminal.backend().buffer().content().iter().any(|cell| cell.fg != Color::Reset)
    };
    assert_eq!((has_color(true), has_color(false)), (true, false));
}

#[test]
fn the_window_moves_and_sums_do_not() {
    let mut state = state();
    let number = WINDOW as u64 + 500;
    state.add(&records(number));
    let (_, session) = state.session().unwrap();
    assert_eq!(
        (session.slices, session.cycles, session.window.len()),
        (number, 1_000 * number, WINDOW)
    );
    assert_eq!(session.window[0].sequence, 500);
    // 20 ticks of each 2,000.
    assert!((session.switching().unwrap() - 0.01).abs() < 1e-9);
    let interval = state.interval().unwrap();
    assert_eq!((interval.cycles, interval.instructions), (1_000_000, 500_000));
    let session = crate::report::intervals(
        &records(number).slices[500..],
        &four_groups(),
        &["A", "B", "C", "D", "INSTRUCTIONS", "CYCLES"],
        None,
        1,
    );
    let of = |interval: &Interval| serde_json::to_value(interval).unwrap();
    assert_eq!(of(&interval), of(&session[0]));
}
