//! `cargo xtask stat` and `record`: the options of `stat` or `record`, and those of `run`, in any
//! order before the program.

use clap::{Arg, Args, Command, FromArgMatches};
use tally_abi::{
    ExitStatus,
    command::{Verb, help, takes_next},
};

use super::RunArgs;
use crate::{Result, output, program_words::program_index, trace_file::DEFAULT_TRACE};

/// The words behind `stat` or `record`.
#[derive(Args, Clone, Debug)]
pub struct VerbArgs {
    /// Options of `stat` or `record`, options of `run`, a program of this machine and its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "OPTIONS PROGRAM ARGUMENTS"
    )]
    words: Vec<String>,
}

/// Parses the words behind `verb` as those of `run`. The status, if there is nothing to run: the
/// help or an error is printed then.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn parse(verb: Verb, args: &VerbArgs) -> Result<std::result::Result<RunArgs, u8>> {
    let command = RunArgs::augment_args(Command::new("run").no_binary_name(true));
    let words = of_run(&command, verb, &args.words);
    let own = words.iter().skip_while(|word| *word != "--").skip(1);
    if let Some(text) = help(&own.map(String::as_str).collect::<Vec<_>>()) {
        let more = "\nOptions of `run` may stand among them: cargo xtask run --help";
        return output::text(&format!("{text}{more}\n")).map(|()| Err(0));
    }
    let parsed = command.try_get_matches_from(words);
    let parsed = parsed.and_then(|mut parsed| RunArgs::from_arg_matches_mut(&mut parsed));
    let parsed = parsed.map(|run| with_trace(run, verb));
    Ok(parsed.map_err(|error| {
        // If standard error cannot be written, the exit status remains.
        let _ = error.print();
        ExitStatus::Usage.into()
    }))
}

/// A run of `record` writes a trace, if it boots one machine: the default one if no other is named.
fn with_trace(mut run: RunArgs, verb: Verb) -> RunArgs {
    if verb == Verb::Record && !run.explain && run.machines() == 1 {
        run.trace.get_or_insert_with(|| DEFAULT_TRACE.into());
    }
    run
}

/// The words of `run` for those of `verb`: the options that only `run` has, then `-- verb` with its
/// own options, the program and its arguments.
fn of_run(command: &Command, verb: Verb, words: &[String]) -> Vec<String> {
    let (mut of_run, mut own) = (Vec::new(), Vec::from(["--", verb.name()].map(str::to_owned)));
    let mut rest = words.iter().cloned().peekable();
    while let Some(word) = rest.next_if(|word| word.starts_with('-') && word != "--") {
        let is_own = takes_next(verb, &word);
        let of_it = |arg: &&Arg| is_option(arg, &word);
        let known = command.get_arguments().find(of_it).filter(|_| is_own.is_none());
        let needs_value = |arg: &Arg| {
            arg.get_action().takes_values() && !arg.is_require_equals_set() && !word.contains('=')
        };
        let has_next = is_own.unwrap_or(known.is_some_and(needs_value));
        // `stat` says more with it, and so does the run.
        let is_of_both = is_own.is_some() && ["-v", "--verbose"].contains(&&*word);
        of_run.extend(is_of_both.then(|| word.clone()));
        let to = if known.is_some() { &mut of_run } else { &mut own };
        to.push(word);
        to.extend(has_next.then(|| rest.next()).flatten());
    }
    of_run.into_iter().chain(own).chain(rest).collect()
}

/// A line about the first argument of a program that is an option of `run` as well: it may be meant
/// for `run`.
pub(super) fn misplaced(programs: &[Vec<String>]) -> Option<String> {
    let command = RunArgs::augment_args(Command::new("run"));
    let is_known = |word: &&String| {
        word.starts_with("--") && command.get_arguments().any(|arg| is_option(arg, word))
    };
    programs.iter().find_map(|words| {
        let (name, arguments) = words.get(program_index(words)..)?.split_first()?;
        let word = arguments.iter().find(is_known)?;
        Some(format!(
            "xtask: {word} is an argument of {name}: an option of the run goes before {name}"
        ))
    })
}

/// Returns whether a word names this option of `run`.
fn is_option(arg: &Arg, word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    let short = arg.get_short().is_some_and(|short| name == format!("-{short}"));
    short || arg.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_go_to_the_command_that_has_them() {
        let command = RunArgs::augment_args(Command::new("run"));
        let of = |verb, text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            of_run(&command, verb, &words).join(" ")
        };
        for (text, expected) in [
            ("./a --pmu x", "-- stat ./a --pmu x"),
            ("-e a,b --pmu amd -r 3 ./a -e", "--pmu amd -- stat -e a,b -r 3 ./a -e"),
            ("--pmu=amd -q --json -x, -- -a", "--pmu=amd -q --json -- stat -x, -- -a"),
            ("--slice 9000 --cpus 2 -- ./a -- ./b", "--cpus 2 -- stat --slice 9000 -- ./a -- ./b"),
            ("--nonsense ./a", "-- stat --nonsense ./a"),
            ("-e", "-- stat -e"),
            ("-v ./a", "-v -- stat -v ./a"),
        ] {
            assert_eq!(of(Verb::Stat, text), expected);
        }
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let line = misplaced(&[words("a -e x"), words("stat -e x hello --events=cycles")]).unwrap();
        assert!(line.starts_with("xtask: --events=cycles is an argument of hello: "), "{line}");
        assert_eq!(misplaced(&[words("stat --slice 9 a --nonsense -e x")]), None);
        let record = of(Verb::Record, "-g --trace t -c 99 --file=f ./a");
        assert_eq!(record, "--trace t --file=f -- record -g -c 99 ./a");
    }
}
