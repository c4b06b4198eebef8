//! Parts of pieces of code, adjusted so that each cause has as many cycles in all pieces together
//! as in the session.
//!
//! The session's parts are known from its counts, much better than those of a piece from a few
//! samples, which are not below 0: their errors do not cancel in the sum. The pieces' cycles are
//! the other known sums. Source: iterative proportional fitting, Deming and Stephan, "On a least
//! squares adjustment of a sampled frequency table when the expected marginal totals are known",
//! Annals of Mathematical Statistics 11(4), 1940.

use tally_breakdown::CyclePart;

/// Weight of the session's mix of causes in each piece, so that a cause without any cycle in the
/// samples has a place.
const PRIOR: f64 = 0.01;
/// Rounds of the fitting. The sums differ by far less than the errors after some ten.
const ROUNDS: usize = 40;

/// Adjusts the parts of all pieces of code to the parts of their session.
pub(super) fn rake(code: &mut [&mut Vec<CyclePart>], session: &[CyclePart]) {
    let all: f64 = session.iter().map(|part| part.cycles).sum();
    let sums: Vec<f64> = code.iter().map(|of| of.iter().map(|it| it.cycles).sum()).collect();
    let total: f64 = sums.iter().sum();
    if all <= 0.0 || total <= 0.0 {
        return;
    }
    let before: Vec<Vec<f64>> =
        code.iter().map(|of| session.iter().map(|part| cycles_of(of, part)).collect()).collect();
    let mut table = before.clone();
    for (row, sum) in table.iter_mut().zip(&sums) {
        for (cell, part) in row.iter_mut().zip(session) {
            *cell = (1.0 - PRIOR) * *cell + PRIOR * sum * part.cycles / all;
        }
    }
    for _ in 0..ROUNDS {
        for (column, part) in session.iter().enumerate() {
            let sum: f64 = table.iter().map(|row| row[column]).sum();
            let factor = ratio(part.cycles / all * total, sum);
            table.iter_mut().for_each(|row| row[column] *= factor);
        }
        for (row, wanted) in table.iter_mut().zip(&sums) {
            let factor = ratio(*wanted, row.iter().sum());
            row.iter_mut().for_each(|cell| *cell *= factor);
        }
    }
    for (of, (new, old)) in code.iter_mut().zip(table.iter().zip(&before)) {
        for (part, (new, old)) in session.iter().zip(new.iter().zip(old)) {
            if let Some(own) = of.iter_mut().find(|own| own.name == part.name) {
                adjust(own, *new, *old, part.high_95);
            }
        }
        of.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    }
}

fn cycles_of(of: &[CyclePart], part: &CyclePart) -> f64 {
    of.iter().find(|own| own.name == part.name).map_or(0.0, |own| own.cycles)
}

fn ratio(wanted: f64, sum: f64) -> f64 {
    if sum > 0.0 { wanted / sum } else { 1.0 }
}

/// Sets the cycles of a part that had `old`. The half width keeps its relation to the cycles where
/// these are lowered, and is at least as far as they moved up; a piece has at most the `most`
/// cycles that the cause has in the whole session.
fn adjust(part: &mut CyclePart, new: f64, old: f64, most: f64) {
    let factor = if part.cycles > 0.0 { new / part.cycles } else { 0.0 };
    let half_width =
        if new < old { part.half_width_95 * new / old } else { part.half_width_95.max(new - old) };
    let half_width = half_width.min(most.max(new));
    part.share *= factor;
    part.cpi *= factor;
    part.cycles = new;
    part.half_width_95 = half_width;
    part.low_95 = (new - half_width).max(0.0);
    part.high_95 = new + half_width;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &'static str, cycles: f64) -> CyclePart {
        CyclePart {
            name: name.into(),
            metric: "".into(),
            level: 1,
            of_cycles: false,
            cycles,
            share: 0.0,
            formula: 0.0,
            cpi: 0.0,
            half_width_95: cycles,
            low_95: 0.0,
            high_95: 2.0 * cycles,
            truth: None,
        }
    }

    /// Two pieces of 600 and 400 cycles whose samples say far too many mispredictions.
    #[test]
    fn causes_and_pieces_have_their_known_sums() {
        let mut first = vec![part("memory", 300.0), part("mispredicted", 300.0)];
        let mut second = vec![part("memory", 100.0), part("mispredicted", 300.0)];
        let session = [part("memory", 900.0), part("mispredicted", 100.0)];
        rake(&mut [&mut first, &mut second], &session);
        let of = |code: &[CyclePart], name: &str| {
            code.iter().find(|part| part.name == name).unwrap().cycles
        };
        for (code, sum) in [(&first, 600.0), (&second, 400.0)] {
            let own: f64 = code.iter().map(|part| part.cycles).sum();
            assert!((own - sum).abs() < 0.01 * sum, "{own}");
        }
        let wrong = of(&first, "mispredicted") + of(&second, "mispredicted");
        assert!((wrong - 100.0).abs() < 1.0, "{wrong}");
        // The second piece keeps more of them for its cycles, as it had.
        assert!(of(&second, "mispredicted") / 400.0 > of(&first, "mispredicted") / 600.0);
        assert_eq!(first[0].name, "memory");
        let few = first.iter().find(|part| part.name == "mispredicted").unwrap();
        assert!(few.half_width_95 < 100.0 && few.high_95 >= few.cycles, "{few:?}");
    }
}
