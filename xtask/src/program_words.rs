//! The words after `--`: programs and their arguments. `stat` and `record` run another program.

use tally_abi::{
    ExitStatus,
    branches::BranchFilter,
    command::{Command, StatOptions, Verb},
};

use crate::{Failure, Result};

/// The programs of a command, each with its arguments. `--` separates them, unless it ends the
/// options of `stat` or `record`. An argument `\--` stands for `--`.
pub fn programs(command: &[String]) -> Vec<Vec<String>> {
    let (mut all, mut last) = (Vec::new(), Vec::new());
    for word in command {
        let ends_options =
            |last: &[String]| tally(last).is_some_and(|words| Command::parse(&words).is_err());
        let literal = word.strip_prefix('\\').filter(|rest| rest.trim_start_matches('\\') == "--");
        match literal {
            None if word == "--" && !ends_options(&last) => all.push(std::mem::take(&mut last)),
            literal => last.push(literal.unwrap_or(word).to_owned()),
        }
    }
    if !command.is_empty() {
        all.push(last);
    }
    all
}

/// The index of the program that a command runs: after the options of `stat` or `record`.
pub fn program_index(command: &[String]) -> usize {
    let parsed = tally(command).and_then(|words| Some(Command::parse(&words).ok()?.program.len()));
    parsed.map_or(0, |words| command.len() - words)
}

/// The arguments of the program `tally`, if `command` calls it: `stat` is short for `tally stat`.
pub fn tally(command: &[String]) -> Option<Vec<&str>> {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let words = words.strip_prefix(&["tally"]).unwrap_or(&words);
    words.first().and_then(|word| Verb::parse(word)).map(|_| words.to_vec())
}

/// Returns whether the samples of these words include what cycles are lost to; `None` if the words
/// take no samples.
pub fn record(words: &[String]) -> Option<bool> {
    let words = tally(words)?;
    let command = Command::parse(&words).ok().filter(|it| it.verb == Verb::Record)?;
    Some(command.samples_breakdown)
}

/// The branches that these words record: `record -b`, `-j` or `--call-graph lbr`.
pub fn branches(words: &[String]) -> BranchFilter {
    let words = tally(words);
    let command = words.as_ref().and_then(|words| Command::parse(words).ok());
    command.map_or(BranchFilter::default(), |command| command.branches)
}

/// Returns whether these words ask for the names of the metrics: `stat -M list`.
pub fn lists_metrics(words: &[String]) -> bool {
    tally(words).is_some_and(|words| {
        Command::parse(&words).is_ok_and(|command| command.stat.lists_metrics())
    })
}

/// Returns whether these words print fields or JSON on standard error, where no other lines may be
/// between them.
pub fn prints_fields(words: &[String]) -> bool {
    let is_it = |command: Command<'_>| {
        let StatOptions { separator, is_json, output, .. } = command.stat;
        (separator.is_some() || is_json) && output.is_none()
    };
    tally(words).is_some_and(|words| Command::parse(&words).is_ok_and(is_it))
}

/// Name on the machine of the file of `stat -o FILE`, in the root.
pub fn name_of_output(file: &str) -> String {
    format!(".tally-stat:{}", file.replace('%', "%25").replace('/', "%2f"))
}

/// The words of `command`, one program, for the kernel's command line. `stat -o FILE` writes a file
/// in the root, which the host writes to FILE ([`crate::stat_files`]).
///
/// # Errors
/// `stat` or `record` refuses its arguments.
pub fn kernel_words(command: &[String]) -> Result<Vec<String>> {
    let refused = |why: String| Failure::new(ExitStatus::Usage, why);
    let Some(asked) = tally(command) else { return Ok(command.to_vec()) };
    let parsed = Command::parse(&asked).map_err(refused)?;
    let (own, program) = asked.split_at(asked.len() - parsed.program.len());
    let own_without = own.strip_suffix(&["--"]).unwrap_or(own);
    // The `--` before the program is dropped if the rest has the same meaning without it.
    let is_same = Command::parse(&[own_without, program].concat()).as_ref() == Ok(&parsed);
    // Of two equal options the last one counts.
    let output = parsed.stat.output.map(|file| format!("-o/{}", name_of_output(file)));
    let dashes = (!is_same).then_some("--");
    let words = ["tally"].into_iter().chain(own_without.iter().copied());
    let words = words.chain(output.as_deref()).chain(dashes).chain(program.iter().copied());
    Ok(words.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_separate_programs_with_their_arguments() {
        let words = ["one", "x y", "", "--", "./two", "\\--", "--z", "--", "three"];
        let of = programs(&words.map(str::to_owned));
        assert_eq!(of, [&["one", "x y", ""][..], &["./two", "--", "--z"], &["three"]]);
        assert!(programs(&[]).is_empty());
    }

    #[test]
    fn fields_are_alone_unless_they_go_to_a_file() {
        let of =
            |text: &str| prints_fields(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let all = ["stat -x, a", "stat -j a", "stat -j -o f a", "stat a -j", "a -j"].map(of);
        assert_eq!(all, [true, true, false, false, false]);
        let many = vec!["a".to_owned(); 100_000];
        let words = [&["stat".to_owned()][..], &many].concat();
        assert_eq!(programs(&words).len(), 1, "in linear time");
    }

    #[test]
    fn the_program_that_is_run_follows_the_options_of_stat() {
        let of = |text: &str| -> Vec<usize> {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            programs(&words).iter().map(|program| program_index(program)).collect()
        };
        assert_eq!(of("stat -e a -- prog x -- prog y -- tally record prog"), [4, 0, 2]);
    }
}
