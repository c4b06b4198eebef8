//! `cargo xtask report`, `script` and `annotate`: the samples of a trace in the form of perf's
//! commands of these names, by function, one by one, and by instruction.

pub mod annotate;
pub mod breakdown;
mod code;
pub(crate) mod printed;
pub mod report;
pub mod script;
mod share;

use std::path::PathBuf;

use clap::Args;
use tally_abi::text::Grouped;

use crate::{
    Result, output,
    recording::{Recording, Symbolizer},
    symbols::CallGraph,
    trace_file::DEFAULT_TRACE,
};

/// Columns of the text.
const COLUMNS: usize = 80;

/// Options that the three commands share.
#[derive(Args, Clone, Debug)]
pub struct SampleArgs {
    /// Trace file that `cargo xtask record` or `run --trace FILE` wrote
    #[arg(default_value = DEFAULT_TRACE)]
    trace: PathBuf,
    /// The file of a program that was sampled, for functions and lines; repeatable
    #[arg(long, value_name = "FILE")]
    symbols: Vec<PathBuf>,
    /// Only samples of this event
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// How callers are found, if the stacks were recorded (`record -g`)
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    call_graph: CallGraph,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl SampleArgs {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read, or the trace has no samples, or none of the event.
    fn read(&self) -> Result<(Recording, Symbolizer)> {
        Symbolizer::check(&self.symbols)?;
        let recording = Recording::read(&self.trace)?;
        recording.has_samples()?;
        let symbolizer = Symbolizer::of(&recording, &self.symbols, self.call_graph)?;
        if self.event.is_some() {
            recording.sampled_event(self.event.as_deref())?;
        }
        let programs = recording.records.samples.iter();
        let mut programs = programs.map(|sample| recording.program_of(sample.session));
        let lacks = |(program, _): &(u32, &str)| symbolizer.files(*program).next().is_none();
        if let Some((_, program)) = programs.find(lacks) {
            output::note(format_args!(
                "xtask: no symbols of {program}: add --symbols FILE for names of functions"
            ));
        }
        Ok((recording, symbolizer))
    }
}

/// A number of samples as text.
fn samples_of(count: u64) -> String {
    format!("{} sample{}", Grouped(count), if count == 1 { "" } else { "s" })
}

/// A function's name in at most `columns` columns: of a longer one the parameters and then the
/// template's arguments are left out, before its beginning is.
pub(crate) fn short_function(name: &str, columns: usize) -> String {
    let is_long = |name: &str| name.chars().count() > columns;
    if !is_long(name) {
        return name.to_owned();
    }
    let without = without_parameters(name);
    let short = if is_long(without) { without_arguments(without) } else { without.to_owned() };
    last_columns(&short, columns)
}

/// A C++ function's name without its parameters and what follows them.
fn without_parameters(name: &str) -> &str {
    let Some(end) = name.rfind(')') else { return name };
    let mut depth = 0;
    for (at, letter) in name[..=end].char_indices().rev() {
        match letter {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => (),
        }
        let is_anonymous = name[at..].starts_with("(anonymous namespace)");
        // The parentheses belong to a part of the name: `operator()`, `(anonymous namespace)`.
        if depth == 0 && !is_anonymous && !name[..at].ends_with("operator") {
            return if at == 0 { name } else { name[..at].trim_end() };
        }
        if depth == 0 {
            return name;
        }
    }
    name
}

/// A name with `…` for what its outermost angle brackets contain.
fn without_arguments(name: &str) -> String {
    let (mut depth, mut short, mut last) = (0_u32, String::new(), ' ');
    for letter in name.chars() {
        // The arrow of a return type is no bracket.
        let closes = letter == '>' && last != '-' && depth > 0;
        depth -= u32::from(closes);
        if depth == 0 {
            short.push(letter);
        }
        if letter == '<' {
            if depth == 0 {
                short.push('…');
            }
            depth += 1;
        }
        last = letter;
    }
    short
}

/// The end of a name that is longer than `columns` columns: a path's last parts are the most
/// informative.
fn last_columns(name: &str, columns: usize) -> String {
    let length = name.chars().count();
    if length <= columns {
        return name.to_owned();
    }
    let kept = name.chars().skip(length + 1 - columns.max(1));
    std::iter::once('…').chain(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_functions_lose_their_parameters_first() {
        let vector = "std::vector<int, std::allocator<int> >";
        let name = format!("double geo::norm<double>({vector} const&, int) const");
        assert_eq!(short_function(&name, 200), name);
        assert_eq!(short_function(&name, 40), "double geo::norm<double>");
        assert_eq!(short_function(&name, 22), "double geo::norm<…>");
        assert_eq!(short_function(&name, 10), "…::norm<…>");
        let called = format!("Less::operator()({vector}) const");
        assert_eq!(short_function(&called, 20), "Less::operator()");
        let hidden = "(anonymous namespace)::Parser::value(char const*, unsigned long)";
        assert_eq!(short_function(hidden, 40), "(anonymous namespace)::Parser::value");
        let rust = "<alloc::vec::Vec<T> as core::ops::Index<I>>::index";
        assert_eq!(short_function(rust, 20), "<…>::index");
    }

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(last_columns("core::fmt::write", 16), "core::fmt::write");
        assert_eq!(last_columns("core::fmt::write", 10), "…mt::write");
        assert_eq!(last_columns("überlänge", 4), "…nge");
    }
}
