//! Tables of distances: a row for each event or cause, a column for each program.

use serde::Serialize;

/// Largest acceptable distance (paper 000, section 6.2), in bits.
pub(super) const ACCEPTABLE: f64 = 0.20;
/// Target distance of frequent events, in bits.
pub(super) const ACCEPTABLE_OF_FREQUENT: f64 = 0.05;
/// Number of programs in 80 columns.
const COLUMNS: usize = 8;
/// Width of a row's name, in columns.
const NAME: usize = 16;
/// Width of a program's cell, in columns.
const CELL: usize = 8;

/// A distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Cell {
    /// Distance in bits, the mean over the seeds; `None` if the event is not significant.
    pub(super) distance: Option<f64>,
    /// Whether the event happens once in 100 cycles or more.
    pub(super) is_frequent: bool,
}

/// A row.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// Event or cause of the row.
    pub(super) name: String,
    /// Cells by program.
    pub(super) cells: Vec<Cell>,
}

/// Number of acceptable cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Within {
    /// Number of cells at or below the limit.
    pub(super) within: usize,
    /// Number of cells with a distance.
    pub(super) of: usize,
}

/// A table.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Grid {
    /// The programs.
    pub(super) programs: Vec<String>,
    /// The rows.
    pub(super) rows: Vec<Row>,
}

/// The number of distances at or below the limit, and of all distances.
pub(super) fn share_within(cells: impl Iterator<Item = Option<f64>>, limit: f64) -> (usize, usize) {
    let known: Vec<f64> = cells.flatten().collect();
    (known.iter().filter(|distance| **distance <= limit).count(), known.len())
}

impl Within {
    /// The share in percent; 0 without cells.
    pub(super) fn percent(self) -> f64 {
        100.0 * self.within as f64 / self.of.max(1) as f64
    }
}

impl Grid {
    /// Makes a table of the paper.
    pub(super) fn of_paper<'a>(
        programs: &[&str],
        rows: impl Iterator<Item = (&'a str, [Option<f64>; 8])>,
    ) -> Grid {
        let cell = |distance| Cell { distance, is_frequent: false };
        let row = |(name, cells): (&str, [Option<f64>; 8])| Row {
            name: name.to_owned(),
            cells: cells.map(cell).to_vec(),
        };
        let programs = programs.iter().map(|name| (*name).to_owned()).collect();
        Grid { programs, rows: rows.map(row).collect() }
    }

    /// The number of acceptable cells.
    pub(super) fn acceptable(&self) -> Within {
        let cells = self.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.distance);
        let (within, of) = share_within(cells, ACCEPTABLE);
        Within { within, of }
    }

    /// The number of cells of frequent events that meet the target.
    pub(super) fn frequent(&self) -> Within {
        let cells = self.rows.iter().flat_map(|row| &row.cells).filter(|cell| cell.is_frequent);
        let (within, of) = share_within(cells.map(|cell| cell.distance), ACCEPTABLE_OF_FREQUENT);
        Within { within, of }
    }

    /// The table in 80 columns, eight programs side by side.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for first in (0..self.programs.len()).step_by(COLUMNS) {
            let part = first..self.programs.len().min(first + COLUMNS);
            text += &" ".repeat(NAME);
            self.programs[part.clone()].iter().for_each(|name| text += &format!("{name:>CELL$}"));
            for Row { name, cells } in &self.rows {
                text += &format!("\n{name:<NAME$}");
                cells[part.clone()]
                    .iter()
                    .for_each(|cell| text += &format!("{:>CELL$}", shown(*cell)));
            }
            text.push('\n');
        }
        text
    }
}

/// A distance with two decimals, as in the paper: 0 stands for one that rounds to 0.00. A star
/// marks a distance that is not acceptable.
fn shown(cell: Cell) -> String {
    match cell.distance {
        None => "N/A ".into(),
        Some(distance) if distance < 0.005 => "0 ".into(),
        Some(distance) => {
            format!("{distance:.2}{}", if distance > ACCEPTABLE { '*' } else { ' ' })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_counted_and_marked_and_fit_80_columns() {
        let cell = |distance, is_frequent| Cell { distance, is_frequent };
        let cells = [
            cell(None, false),
            cell(Some(0.001), true),
            cell(Some(0.2), true),
            cell(Some(0.21), false),
        ];
        let row = Row { name: "L1D misses".into(), cells: cells.repeat(3) };
        let programs = (0..12).map(|n| format!("p{n}")).collect();
        let grid = Grid { programs, rows: vec![row] };
        assert_eq!(grid.acceptable(), Within { within: 6, of: 9 });
        assert_eq!(grid.frequent(), Within { within: 3, of: 6 });
        let text = grid.text();
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let first: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(first[..6], ["L1D", "misses", "N/A", "0", "0.20", "0.21*"]);
        assert_eq!(text.lines().count(), 4);
    }
}
