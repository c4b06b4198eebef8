//! The options of `tally stat` and `tally record`, and those of perf that are refused.

use alloc::{format, string::String, vec::Vec};

use super::Verb;
use crate::nearest::nearest;

/// An option: short form, long form, name of its value, verb that has it, description.
type Known = (&'static str, &'static str, &'static str, Option<Verb>, &'static str);

const STAT: Option<Verb> = Some(Verb::Stat);
const RECORD: Option<Verb> = Some(Verb::Record);

/// All options; `None` as the verb stands for both verbs.
pub(super) const OPTIONS: [Known; 32] = [
    ("-e", "--event", "LIST", None, "the events; those between braces in the same slices"),
    ("-r", "--repeat", "N", STAT, "run the program N times: means, and the spread between runs"),
    ("-I", "--interval-print", "MS", STAT, "print the counts of each interval, at least 10 ms"),
    ("-x", "--field-separator", "TEXT", STAT, "print fields with TEXT between them"),
    ("-j", "--json-output", "", STAT, "print a JSON object for each event"),
    ("-o", "--output", "FILE", STAT, "write to FILE instead of standard error"),
    ("", "--append", "", STAT, "with -o: add to FILE"),
    ("-d", "--detailed", "", STAT, "count the data cache's events too"),
    ("", "--per-thread", "", STAT, "count each thread apart, 64 events at most"),
    ("-a", "--all-cpus", "", STAT, "count all CPUs; needs `run --paranoid 0`"),
    ("-C", "--cpu", "LIST", STAT, "count these CPUs, such as 0,2-3"),
    ("-A", "--no-aggr", "", STAT, "with -a or -C: print each CPU apart"),
    ("-M", "--metrics", "LIST", STAT, "print the vendor's metrics, by perf's names"),
    ("", "--topdown", "", STAT, "print the shares of the slots, of level 1"),
    ("", "--td-level", "N", STAT, "with --topdown: another level"),
    ("", "--breakdown", "", None, "count, or sample, what tells where the cycles go"),
    ("-v", "--verbose", "", STAT, "print what is counted, and how, before the program runs"),
    ("", "--timeout", "MS", STAT, "end the program after this time, at least 10 ms"),
    ("-c", "--count", "PERIOD", RECORD, "events between two samples"),
    ("-F", "--freq", "HZ", RECORD, "samples a second, in place of a period"),
    ("-d", "--data", "", RECORD, "sample loads and stores, with the addresses of the data"),
    ("-W", "--weight", "", RECORD, "the same as -d, whose samples of loads have their latency"),
    ("-g", "--stacks", "", RECORD, "record 4096 bytes of the stack, for the callers"),
    ("", "--stack", "BYTES", RECORD, "record as many bytes of the stack"),
    ("", "--call-graph", "lbr", RECORD, "record the calls that have not returned (Intel)"),
    ("-b", "--branch-any", "", RECORD, "record the taken branches before each sample"),
    ("-j", "--branch-filter", "FILTER", RECORD, "record those of types and rings, as any_call,u"),
    ("", "--kernel", "", None, "count ring 0 too; needs `run --paranoid 1`"),
    ("", "--slice", "CYCLES", None, "length of a time slice; auto; instructions as 50000i"),
    ("", "--budget", "PERCENT", None, "the engine's share of the program's time"),
    ("", "--shares", "KIND", None, "planned, adaptive or paired"),
    ("-h", "--help", "", None, "print this"),
];

/// Refused options of perf: why, and what to use instead.
const NOT_HERE: [(&str, &str, &str); 6] = [
    ("", "--per-core", WHOLE),
    ("", "--per-socket", WHOLE),
    ("", "--per-node", WHOLE),
    ("-p", "--pid", "stat starts the program that it counts: name it, with its arguments"),
    ("-t", "--tid", "stat starts the program that it counts: name it, with its arguments"),
    ("-i", "--no-inherit", "all threads of the program are counted, and it has no other programs"),
];

const WHOLE: &str = "the kernel does not tell cores, sockets and nodes apart: count each CPU \
    with -a -A";

fn is_of(of: Option<Verb>, verb: Verb) -> bool {
    of.is_none_or(|of| of == verb)
}

/// The message about an option that the verb does not have.
pub(super) fn unknown(verb: Verb, word: &str) -> String {
    if let Some((_, _, why)) =
        NOT_HERE.iter().find(|(short, long, _)| [*short, *long].contains(&word))
    {
        return format!("{word}: {why}");
    }
    let of_verb = OPTIONS.iter().filter(|option| is_of(option.3, verb));
    let names: Vec<&str> = of_verb.flat_map(|option| [option.1, option.0]).collect();
    let long = names.iter().copied().filter(|name| name.starts_with("--"));
    let near = if word.starts_with("--") { nearest(word, long) } else { Vec::new() };
    match near.first() {
        Some(near) => format!("unknown option {word}; nearest: {near}"),
        None => format!("unknown option {word}; --help prints all"),
    }
}

/// The message about an option that has no value, behind which `word` goes on.
pub(super) fn no_value(word: &str, option: &str) -> String {
    let letters = option.trim_start_matches('-');
    if word.trim_start_matches('-').chars().all(|letter| letters == letter.encode_utf8(&mut [0; 4]))
    {
        return format!("{word}: {option} has one level: give it once, and further events with -e");
    }
    format!("{word}: {option} takes no value, and each option is a word")
}

/// The long form of one of the verb's options and whether it takes a value; `None` for other words.
pub(super) fn known(verb: Verb, word: &str) -> Option<(&'static str, bool)> {
    let is_it = |option: &&Known| is_of(option.3, verb) && [option.0, option.1].contains(&word);
    let option = OPTIONS.iter().find(is_it).filter(|_| !word.is_empty())?;
    Some((option.1, !option.2.is_empty()))
}

/// The text that `--help` prints.
pub(super) fn help(verb: Verb) -> String {
    let name = verb.name();
    let mut text = format!("tally {name} [OPTIONS] [--] PROGRAM ARGUMENTS\n\n");
    for (short, long, value, of, about) in OPTIONS {
        if is_of(of, verb) {
            let comma = if short.is_empty() { "    " } else { ", " };
            let both = format!("  {short}{comma}{long} {value}");
            text += &format!("{both:<34}{about}\n");
        }
    }
    text
}
