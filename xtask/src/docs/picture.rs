//! Text pictures as SVG.
//!
//! A picture is a grid of characters. Box-drawing characters become lines (`─ │ ┌ ┐ └ ┘ ├ ┤ ┬ ┴ ┼`,
//! dashed `╌ ╎`), `▶ ◀ ▲ ▼` arrow heads, `█ ▓ ▒ ░` bars of four colours. Closed rectangles are
//! filled, and each line of text in them that begins just below a line is set in bold. All other
//! characters are text; two blanks end a piece of text.

use std::fmt::Write as _;

/// Size of a character's cell, in pixels.
const WIDTH: usize = 9;
const HEIGHT: usize = 20;
/// Blank pixels around the picture.
const MARGIN: usize = 14;

/// Colours and fonts, for light and for dark pages.
const STYLE: &str = "\
text{font:15px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1f2328;white-space:pre}
.page{fill:#fff;stroke:#d1d9e0}.box0{fill:#eef3f9}.box1{fill:#fff}
.line{stroke:#7d8792;stroke-width:1.5;fill:none}.dash{stroke-dasharray:4 4}.head{fill:#7d8792}
.title{font-weight:bold}.label{fill:#59636e}
.bar0{fill:#0969da}.bar1{fill:#cf5b21}.bar2{fill:#e6b450}.bar3{fill:#9cc6f2}
@media(prefers-color-scheme:dark){
text{fill:#f0f6fc}.page{fill:#0d1117;stroke:#3d444d}.box0{fill:#1a2230}.box1{fill:#0d1117}
.line{stroke:#8b949e}.head{fill:#8b949e}.label{fill:#9198a1}
.bar0{fill:#4493f8}.bar1{fill:#e0703a}.bar2{fill:#b98a2b}.bar3{fill:#2b4f7d}
}
";

/// The sides of its cell to which a line character extends.
#[derive(Clone, Copy, Default)]
struct Arms {
    up: bool,
    right: bool,
    down: bool,
    left: bool,
}

impl Arms {
    /// The arms of a character; `None` if it is not a line character.
    fn of(character: char) -> Option<Arms> {
        let sides = match character {
            '─' | '╌' => "rl",
            '│' | '╎' => "ud",
            '┌' => "rd",
            '┐' => "dl",
            '└' => "ur",
            '┘' => "ul",
            '├' => "urd",
            '┤' => "udl",
            '┬' => "rdl",
            '┴' => "url",
            '┼' => "urdl",
            '▶' => "l",
            '◀' => "r",
            '▲' => "d",
            '▼' => "u",
            _ => return None,
        };
        let has = |side| sides.contains(side);
        Some(Arms { up: has('u'), right: has('r'), down: has('d'), left: has('l') })
    }
}

/// Draws a picture: an SVG document.
pub fn draw(picture: &str) -> String {
    let grid = Grid::new(picture);
    let (width, height) =
        (grid.columns * WIDTH + 2 * MARGIN, grid.rows.len() * HEIGHT + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n<style>\n{STYLE}</style>\n\
         <rect class=\"page\" x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n\
         <g transform=\"translate({MARGIN},{MARGIN})\">\n",
        width - 1,
        height - 1
    );
    let boxes = grid.boxes();
    // Writing to a string does not fail.
    for Box { top, left, bottom, right } in &boxes {
        let depth = boxes.iter().filter(|outer| outer.contains(*top, *left)).count();
        let (x, y) = centre(*top, *left);
        let (end_x, end_y) = centre(*bottom, *right);
        let (width, height) = (end_x - x, end_y - y);
        let _ = writeln!(
            svg,
            "<rect class=\"box{}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>",
            depth % 2
        );
    }
    grid.write_lines(&mut svg);
    for row in 0..grid.rows.len() {
        for column in 0..grid.columns {
            grid.write_head(&mut svg, row, column);
            grid.write_bar(&mut svg, row, column);
            grid.write_text(&mut svg, row, column, &boxes);
        }
    }
    svg + "</g>\n</svg>\n"
}

/// The middle of a cell, in pixels.
fn centre(row: usize, column: usize) -> (f64, f64) {
    ((column * WIDTH) as f64 + WIDTH as f64 / 2.0, (row * HEIGHT) as f64 + HEIGHT as f64 / 2.0)
}

/// A rectangle of lines, by the cells of its corners.
struct Box {
    top: usize,
    left: usize,
    bottom: usize,
    right: usize,
}

impl Box {
    /// Returns whether a cell lies inside, not on the lines.
    fn contains(&self, row: usize, column: usize) -> bool {
        self.top < row && row < self.bottom && self.left < column && column < self.right
    }
}

struct Grid {
    rows: Vec<Vec<char>>,
    columns: usize,
}

impl Grid {
    fn new(picture: &str) -> Grid {
        let rows: Vec<Vec<char>> = picture.lines().map(|line| line.chars().collect()).collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        Grid { rows, columns }
    }

    /// The character of a cell; a blank outside the picture.
    fn at(&self, row: usize, column: usize) -> char {
        self.rows.get(row).and_then(|row| row.get(column)).copied().unwrap_or(' ')
    }

    fn arms(&self, row: usize, column: usize) -> Arms {
        Arms::of(self.at(row, column)).unwrap_or_default()
    }

    /// All closed rectangles, outer ones before those in them.
    fn boxes(&self) -> Vec<Box> {
        let mut boxes = Vec::new();
        for top in 0..self.rows.len() {
            for left in 0..self.columns {
                boxes.extend(self.box_at(top, left));
            }
        }
        boxes
    }

    /// The rectangle with this upper left corner: the smallest that has all four sides.
    fn box_at(&self, top: usize, left: usize) -> Option<Box> {
        if self.at(top, left) != '┌' {
            return None;
        }
        let right = (left + 1..self.columns).find(|column| self.at(top, *column) == '┐')?;
        let bottom = (top + 1..self.rows.len()).find(|row| self.at(*row, left) == '└')?;
        let across = |row| (left + 1..right).all(|column| self.arms(row, column).left);
        let along = |column| (top + 1..bottom).all(|row| self.arms(row, column).up);
        let is_closed = across(top) && across(bottom) && along(left) && along(right);
        (is_closed && self.at(bottom, right) == '┘').then_some(Box { top, left, bottom, right })
    }

    /// Writes all lines: full ones, then dashed ones.
    fn write_lines(&self, svg: &mut String) {
        for (class, is_dashed) in [("line", false), ("line dash", true)] {
            let wanted = |row, column| matches!(self.at(row, column), '╌' | '╎') == is_dashed;
            let mut path = String::new();
            for row in 0..self.rows.len() {
                let halves = (0..self.columns).flat_map(|column| {
                    let arms = self.arms(row, column);
                    [arms.left, arms.right].map(|half| half && wanted(row, column))
                });
                for (start, length) in runs(halves) {
                    let (x, y) = (start as f64 * WIDTH as f64 / 2.0, centre(row, 0).1);
                    let _ = write!(path, "M{x} {y}h{}", length as f64 * WIDTH as f64 / 2.0);
                }
            }
            for column in 0..self.columns {
                let halves = (0..self.rows.len()).flat_map(|row| {
                    let arms = self.arms(row, column);
                    [arms.up, arms.down].map(|half| half && wanted(row, column))
                });
                for (start, length) in runs(halves) {
                    let (x, y) = (centre(0, column).0, start as f64 * HEIGHT as f64 / 2.0);
                    let _ = write!(path, "M{x} {y}v{}", length as f64 * HEIGHT as f64 / 2.0);
                }
            }
            if !path.is_empty() {
                let _ = writeln!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
            }
        }
    }

    /// Writes the arrow head of a cell, up to the line in the next cell if there is one.
    fn write_head(&self, svg: &mut String, row: usize, column: usize) {
        let (across, down) = match self.at(row, column) {
            '▶' => (1.0, 0.0),
            '◀' => (-1.0, 0.0),
            '▼' => (0.0, 1.0),
            '▲' => (0.0, -1.0),
            _ => return,
        };
        let to = |at: usize, by: f64| at.checked_add_signed(by as isize);
        let next = to(row, down).zip(to(column, across));
        let meets = next.is_some_and(|(row, column)| Arms::of(self.at(row, column)).is_some());
        let half = (across.abs() * WIDTH as f64 + down.abs() * HEIGHT as f64) / 2.0;
        let reach = if meets { 2.0 * half } else { half };
        let (x, y) = centre(row, column);
        let (tip_x, tip_y) = (x + across * reach, y + down * reach);
        let (base_x, base_y) = (tip_x - across * 9.0, tip_y - down * 9.0);
        let (side_x, side_y) = (down * 4.5, across * 4.5);
        let _ = writeln!(
            svg,
            "<path class=\"line\" d=\"M{x} {y}L{base_x} {base_y}\"/>\
             <path class=\"head\" d=\"M{tip_x} {tip_y}L{} {}L{} {}z\"/>",
            base_x + side_x,
            base_y + side_y,
            base_x - side_x,
            base_y - side_y
        );
    }

    /// Writes the bar that begins in a cell.
    fn write_bar(&self, svg: &mut String, row: usize, column: usize) {
        let character = self.at(row, column);
        let Some(colour) = ['█', '▓', '▒', '░'].iter().position(|bar| *bar == character)
        else {
            return;
        };
        if column > 0 && self.at(row, column - 1) == character {
            return;
        }
        let cells = (column..self.columns).take_while(|c| self.at(row, *c) == character).count();
        let _ = writeln!(
            svg,
            "<rect class=\"bar{colour}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            column * WIDTH,
            row * HEIGHT + 3,
            cells * WIDTH,
            HEIGHT - 6
        );
    }

    /// Returns whether a cell contains a part of a text.
    fn is_text(&self, row: usize, column: usize) -> bool {
        let character = self.at(row, column);
        character != ' ' && !"█▓▒░".contains(character) && Arms::of(character).is_none()
    }

    /// Writes the text that begins in a cell.
    fn write_text(&self, svg: &mut String, row: usize, column: usize, boxes: &[Box]) {
        let goes_on = |c: usize| self.is_text(row, c) || self.is_text(row, c + 1);
        let follows = column > 0 && self.is_text(row, column - 1)
            || column > 1 && self.at(row, column - 1) == ' ' && self.is_text(row, column - 2);
        if !self.is_text(row, column) || follows {
            return;
        }
        let end = (column..self.columns).find(|c| !goes_on(*c)).unwrap_or(self.columns);
        let text: String = (column..end).map(|c| self.at(row, c)).collect();
        let text = text.trim_end();
        let before = (0..column).rev().find(|c| self.at(row, *c) != ' ');
        let is_first = before.is_some_and(|c| self.arms(row, c).up);
        let class = match boxes.iter().any(|outer| outer.contains(row, column)) {
            true if is_first && row > 0 && self.arms(row - 1, column).left => " class=\"title\"",
            true => "",
            false => " class=\"label\"",
        };
        let (x, y) = (column * WIDTH, row * HEIGHT + 15);
        let length = text.chars().count() * WIDTH;
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let _ = writeln!(
            svg,
            "<text{class} x=\"{x}\" y=\"{y}\" textLength=\"{length}\" \
             lengthAdjust=\"spacingAndGlyphs\">{text}</text>"
        );
    }
}

/// The start and the length of each run of `true`.
fn runs(halves: impl Iterator<Item = bool>) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, is_set) in halves.enumerate() {
        match runs.last_mut() {
            _ if !is_set => {}
            Some((start, length)) if *start + *length == at => *length += 1,
            _ => runs.push((at, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_neighbouring_cells_are_one() {
        assert_eq!(runs([true, true, false, true].into_iter()), [(0, 2), (3, 1)]);
        let svg = draw("┌──┐\n└──┘\n");
        assert!(svg.contains("d=\"M4.5 10h27M4.5 30h27M4.5 10v20M31.5 10v20\""), "{svg}");
    }

    #[test]
    fn closed_rectangles_are_filled_and_open_ones_are_not() {
        let nested = draw("┌─────┐\n│ ┌─┐ │\n│ └─┘ │\n└─────┘\n");
        assert_eq!(
            (nested.matches("class=\"box0\"").count(), nested.matches("box1\" x").count()),
            (1, 1)
        );
        assert!(!draw("┌───┐\n│\n└───┘\n").contains("class=\"box"));
    }

    #[test]
    fn the_first_text_below_a_line_is_a_title_and_texts_outside_are_labels() {
        let svg = draw("┌──────┐\n│ a  b │\n│ c    │\n└──────┘ d & e\n");
        let texts: Vec<_> = svg.lines().filter(|line| line.starts_with("<text")).collect();
        assert!(texts[0].contains("class=\"title\"") && texts[0].contains(">a<"), "{texts:?}");
        assert!(texts[1..3].iter().all(|text| !text.contains("class")), "{texts:?}");
        assert!(
            texts[3].contains("class=\"label\"") && texts[3].contains(">d &amp; e<"),
            "{texts:?}"
        );
    }

    #[test]
    fn a_head_reaches_the_line_in_the_next_cell() {
        assert!(draw("─▶ x\n").contains("class=\"head\" d=\"M18 10"));
        assert!(draw("─▶│\n").contains("class=\"head\" d=\"M22.5 10"));
    }
}
