//! `cargo xtask stat` and `record`: the options of `stat` or `record`, and those of `run`, in any
//! order before the program.

use clap::{
    Arg, Args, Command, FromArgMatches,
    error::{ContextKind, ContextValue, ErrorKind},
};
use tally_abi::{
    ExitStatus,
    command::{Verb, help, takes_next},
};

use super::RunArgs;
use crate::{
    Result, machine, output,
    program_words::{program_index, tally},
    trace_file::DEFAULT_TRACE,
};

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
        let _ = machine::with_processor(error).print();
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

/// A line about the first argument of a program that is an option of `run`, `stat` or `record` as
/// well: it may be meant for that. Short options, which many programs have, are so only where
/// nothing else is likely: `-e` before events, by `is_list`, and `-g` of `record`.
pub(super) fn misplaced(
    programs: &[Vec<String>],
    is_list: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let command = RunArgs::augment_args(Command::new("run"));
    programs.iter().find_map(|words| {
        let verb = tally(words).and_then(|words| Verb::parse(words[0]));
        let is_known = |(word, next): &(&String, Option<&String>)| match word.as_str() {
            "-e" => next.is_some_and(|list| is_list(list)),
            "-g" => verb == Some(Verb::Record),
            long if long.starts_with("--") => {
                let is_verbs = verb.is_some_and(|verb| takes_next(verb, long).is_some());
                is_verbs || command.get_arguments().any(|arg| is_option(arg, long))
            }
            _ => false,
        };
        // Of words that the verb refuses, which are the program's is not known.
        let index = program_index(words);
        if verb.is_some() && index == 0 {
            return None;
        }
        let (name, arguments) = words.get(index..)?.split_first()?;
        let nexts = arguments.iter().skip(1).map(Some).chain([None]);
        let (word, _) = arguments.iter().zip(nexts).find(is_known)?;
        let before = match (verb, word.as_str()) {
            (None, "-e") => format!("to count events, `stat -e EVENTS {name}`"),
            (Some(verb), _) => format!("an option of {} goes before {name}", verb.name()),
            (None, _) => format!("an option of the run goes before {name}"),
        };
        Some(format!("xtask: {word} is an argument of {name}: {before}"))
    })
}

/// Adds to the error of an option of `stat` or `record` before the program of `run` which command
/// has it.
pub fn with_verbs(mut error: clap::Error) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::StyledStr(text)) => text.to_string(),
        _ => String::new(),
    };
    let (option, usage) = (text(ContextKind::InvalidArg), text(ContextKind::Usage));
    let verbs = [Verb::Stat, Verb::Record].into_iter();
    let verbs: Vec<String> = verbs
        .filter(|verb| takes_next(*verb, &option).is_some())
        .map(|verb| format!("`{} {}`", output::typed(), verb.name()))
        .collect();
    if error.kind() == ErrorKind::UnknownArgument && usage.contains(" run ") && !verbs.is_empty() {
        let of_events = ["-e", "--event"].contains(&&*option);
        let here = if of_events { "`run` takes --events LIST; " } else { "" };
        let tip = format!("{here}{option} is an option of {}", verbs.join(" and "));
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
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
        let record = of(Verb::Record, "-g --trace t -c 99 --file=f ./a");
        assert_eq!(record, "--trace t --file=f -- record -g -c 99 ./a");
    }

    #[test]
    fn options_behind_the_program_are_named() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let misplaced = |all: &[&str]| {
            let all: Vec<Vec<String>> = all.iter().map(|text| words(text)).collect();
            super::misplaced(&all, &|list| list == "cycles")
        };
        let line = misplaced(&["a -e x", "stat -e x hello --events=cycles"]).unwrap();
        assert!(line.starts_with("xtask: --events=cycles is an argument of hello: "), "{line}");
        for (text, end) in [
            (
                "stat hello -e cycles",
                "-e is an argument of hello: an option of stat goes before hello",
            ),
            (
                "record hello -g",
                "-g is an argument of hello: an option of record goes before hello",
            ),
            ("stat hello --per-thread", ": an option of stat goes before hello"),
            ("hello -e cycles", "to count events, `stat -e EVENTS hello`"),
        ] {
            assert!(misplaced(&[text]).is_some_and(|line| line.ends_with(end)), "{text}");
        }
        for text in [
            "stat --slice 9 a --nonsense -e x",
            "grep -e x -g",
            "record ls -e",
            "stat ls -g",
            "record -e cycles -c 0 ls",
        ] {
            assert_eq!(misplaced(&[text]), None);
        }
    }
}
