//! Runs `cargo xtask` without a boot: refused requests, and output that cannot be written.

use std::{
    fs::{self, File},
    process::{Command, Stdio},
};

use tally_abi::ExitStatus;
use xtask_start::LABORATORY;

/// Device on which every write fails as on a full disk.
fn full() -> File {
    File::options().write(true).open("/dev/full").expect("Linux has it")
}

/// Exit status of `cargo xtask` with these words; `_` stands for a blank within a word.
fn status(words: &str, stdout: Stdio, stderr: Stdio) -> Option<i32> {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_tally"));
    let words = words.split(' ').map(|word| word.replace('_', " "));
    xtask.stdin(Stdio::null()).args(words).stdout(stdout).stderr(stderr);
    xtask.status().expect("it was built").code()
}

fn code(status: ExitStatus) -> Option<i32> {
    Some(u8::from(status).into())
}

#[test]
fn an_unwritable_standard_error_is_ignored() {
    let run = |words| status(words, Stdio::null(), full().into());
    assert_eq!(run("trace /nonexistent"), code(ExitStatus::HostError));
    assert_eq!(run("run --explain --events nonsense"), code(ExitStatus::UnknownEvent));
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_is_not() {
    for words in ["events --pmu intel", "trace --describe", "run --explain", "run --explain --json"]
    {
        assert_eq!(
            status(words, full().into(), Stdio::null()),
            code(ExitStatus::NoSpace),
            "{words}"
        );
        let (reader, writer) = std::io::pipe().expect("there are pipes");
        drop(reader);
        assert_eq!(status(words, writer.into(), Stdio::null()), Some(0), "{words}");
    }
}

#[test]
fn explain_refuses_what_a_run_refuses() {
    for (words, refused) in [
        ("-- stat -e cycles hello", None),
        ("-- stat -a hello", Some(ExitStatus::CallRefused)),
        ("--paranoid 0 -- stat -a hello", None),
        ("-- stat --no-big-num -x, hello", Some(ExitStatus::Usage)),
        ("-- stat --shares foo hello", Some(ExitStatus::Usage)),
        ("-- stat -e instructions", Some(ExitStatus::Usage)),
        ("-- stat --slice 9 hello", Some(ExitStatus::SliceOutOfRange)),
        ("--events nonsense -- stat -e cycles hello", Some(ExitStatus::Usage)),
        ("--events cycles --env A -- hello", Some(ExitStatus::Usage)),
        ("--events cycles --stdin /nonexistent -- hello", Some(ExitStatus::ProgramNotFound)),
        ("--events cycles --memory 100M -- hello", Some(ExitStatus::Usage)),
        ("--events cycles -- hello -- foo x", None),
        ("--events cycles -- hello --", Some(ExitStatus::Usage)),
        ("--events cycles --file /nonexistent -- hello", Some(ExitStatus::ProgramNotFound)),
        ("--events cycles --file Cargo.toml --file src/../Cargo.toml", Some(ExitStatus::Usage)),
        ("--program deflate -- stat -e cycles hello", Some(ExitStatus::Usage)),
        ("-- record --stack 0 hello", Some(ExitStatus::Usage)),
        ("--vpmu profile=z80", Some(ExitStatus::Usage)),
        ("--slice 0", Some(ExitStatus::Usage)),
        ("--slice 9", Some(ExitStatus::SliceOutOfRange)),
        ("-- stat --slice 0 hello", Some(ExitStatus::Usage)),
        ("--budget 0", Some(ExitStatus::Usage)),
        ("--budget 51", Some(ExitStatus::Usage)),
        ("--events ,", Some(ExitStatus::Usage)),
        ("--events cycles:k /bin/true", Some(ExitStatus::CallRefused)),
        ("--events cycles:k --paranoid 1 /bin/true", None),
        ("--events cpu/event=0x5e,umask=1,edge,inv,cmask=1/", Some(ExitStatus::EventNotSupported)),
        ("--events cpu/event=0xd1,umask=8,cmask=1,name=foo/", Some(ExitStatus::EventNotSupported)),
    ] {
        let status = status(&format!("run --explain {words}"), Stdio::null(), Stdio::null());
        assert_eq!(status, refused.map_or(Some(0), code), "{words}");
    }
}

#[test]
fn estimates_from_the_trace_and_breakdowns_need_lists_that_are_known() {
    for (words, refused) in [
        ("--unobserved --events nonsense", ExitStatus::UnknownEvent),
        ("--unobserved --shares planned", ExitStatus::Usage),
        ("--unobserved -- stat -e cycles hello", ExitStatus::Usage),
        ("--unobserved --repeat 2", ExitStatus::Usage),
        ("--refine --events nonsense", ExitStatus::UnknownEvent),
        ("--refine --trace-last", ExitStatus::Usage),
        ("--breakdown --events cycles", ExitStatus::Usage),
        ("--breakdown --pmu zen3", ExitStatus::NoBreakdown),
        ("--over-time a.csv", ExitStatus::Usage),
        ("--breakdown --over-time a.png", ExitStatus::Usage),
        ("--breakdown --over-time a.csv --trace-last", ExitStatus::Usage),
        ("--report a.html --repeat 2", ExitStatus::Usage),
        ("--report /nonexistent/a.html", ExitStatus::HostError),
        ("--report src", ExitStatus::HostError),
    ] {
        let status = status(&format!("run {words}"), Stdio::null(), Stdio::null());
        assert_eq!(status, code(refused), "{words}");
    }
}

#[test]
fn diff_refuses_what_is_not_a_run() {
    let sample = "src/page/sample.json";
    for (words, expected) in [
        (format!("diff {sample} {sample}"), Some(0)),
        (format!("diff {sample} {sample} --json"), Some(0)),
        (format!("diff {sample} {sample} --symbols {sample}"), code(ExitStatus::Usage)),
        (format!("diff {sample} /nonexistent"), code(ExitStatus::HostError)),
        (format!("diff Cargo.toml {sample}"), code(ExitStatus::BadTrace)),
        (format!("diff {sample} src/page/layout.html"), code(ExitStatus::BadTrace)),
        (
            format!("diff {sample} {sample} --report /nonexistent/a.html"),
            code(ExitStatus::HostError),
        ),
    ] {
        assert_eq!(status(&words, Stdio::null(), Stdio::null()), expected, "{words}");
    }
}

#[test]
fn a_run_is_checked_before_anything_is_built() {
    for (words, refused) in [
        ("--events nonsense -- deflate", ExitStatus::UnknownEvent),
        ("-- stat -e nonsense deflate", ExitStatus::UnknownEvent),
        ("--events cycles:k /bin/true", ExitStatus::CallRefused),
        (
            "--events cpu/event=0x5e,umask=1,edge,inv,cmask=1/ /bin/true",
            ExitStatus::EventNotSupported,
        ),
        ("--repeat 2 -- stat -o x /bin/true", ExitStatus::Usage),
        ("--program nobody", ExitStatus::ProgramNotFound),
        ("-- stat nobody", ExitStatus::ProgramNotFound),
        ("-- deflate -- nobody", ExitStatus::ProgramNotFound),
        ("--file Cargo.toml -- Cargo.toml", ExitStatus::NotRunnable),
        ("./Cargo.toml", ExitStatus::NotRunnable),
        ("./nobody", ExitStatus::ProgramNotFound),
        ("./src", ExitStatus::ProgramNotFound),
        ("-- ./src", ExitStatus::ProgramNotFound),
        ("--nonsense /bin/true", ExitStatus::Usage),
        ("-- stat ./nobody", ExitStatus::ProgramNotFound),
        ("--file Cargo.toml --file Cargo.toml:x/../y -- deflate", ExitStatus::Usage),
        ("--file Cargo.toml:deflate -- deflate", ExitStatus::Usage),
        ("--file src:/ --file Cargo.toml:run.rs -- deflate", ExitStatus::Usage),
        ("--vpmu profile=z80 -- deflate", ExitStatus::Usage),
    ] {
        let status = status(&format!("run {words}"), Stdio::null(), Stdio::null());
        assert_eq!(status, code(refused), "{words}");
    }
}

#[test]
fn commands_that_count_a_program_are_checked_before_anything_is_built() {
    for (words, refused) in [
        ("stat", ExitStatus::Usage),
        ("record -g", ExitStatus::Usage),
        ("stat --nonsense /bin/true", ExitStatus::Usage),
        ("stat --pmu z80 /bin/true", ExitStatus::Usage),
        ("stat ./nobody --pmu z80", ExitStatus::ProgramNotFound),
        ("record --pmu amd ./src", ExitStatus::ProgramNotFound),
        ("record -c 99 ./Cargo.toml", ExitStatus::NotRunnable),
        ("record -e cycles:k /bin/true", ExitStatus::CallRefused),
        ("record -e , /bin/true", ExitStatus::Usage),
        ("stat --event= /bin/true", ExitStatus::Usage),
        ("stat --paranoid 0 -C 1 /bin/true", ExitStatus::CallRefused),
        ("stat -o /nonexistent/file -e cycles /bin/true", ExitStatus::HostError),
        ("stat -e nonsense --pmu amd /bin/true", ExitStatus::UnknownEvent),
    ] {
        assert_eq!(status(words, Stdio::null(), Stdio::null()), code(refused), "{words}");
    }
    for words in ["stat --help", "record -h", "stat --pmu amd --help", "stat -M list"] {
        assert_eq!(status(words, Stdio::null(), Stdio::null()), Some(0), "{words}");
    }
}

#[test]
fn options_of_the_virtual_pmu_are_checked_before_anything_is_built() {
    for (words, names) in [
        ("--vpmu profile=z80", "profile 'z80': use one of icelake-server, sapphire-rapids, "),
        ("--vpmu profile=zen4", "profile=zen4 needs another machine: use --pmu amd"),
        ("--vpmu speed=1", "option 'speed': use one of profile, processor, counters, "),
        ("--vpmu counters=9", "counters=9 is not supported: icelake-server has 1 to 8"),
        ("--vpmu version=7", "version=7 is not supported: Intel's profiles have 1 to 6"),
        ("--vpmu width=31", "width=31 is not supported: Intel's profiles have 32 to 48"),
        ("--vpmu pipeline=fast", "pipeline 'fast': use interval or ooo"),
        ("--vpmu mode=single", "mode=single needs the other pipeline: add pipeline=ooo"),
        ("--vpmu perfect=l4", "perfect=l4 is no structure: use l1i, l1d, "),
        ("--vpmu series=x,every=9", "every=9 is no interval: use a number of at least 1000"),
        ("--vpmu unlike=1,counters=8", "unlike=1 is no CPU of this machine: use 0 to 0"),
        ("--vpmu truth=x", "truth=... would take the truth from the results: omit it"),
        (
            "--pmu z80",
            "[possible values: intel, sapphire-rapids, lunar-lake, panther-lake, zen3, amd]",
        ),
    ] {
        let mut run = Command::new(env!("CARGO_BIN_EXE_tally"));
        run.arg("run").args(words.split(' ')).args(["--", "deflate"]);
        let refused = run.output().expect("it was built");
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), code(ExitStatus::Usage), "{words}: {message}");
        assert!(message.contains(names), "{words}: {message}");
    }
}

#[test]
fn files_of_a_run_need_an_empty_folder() {
    for words in ["--out src", "--out Cargo.toml/x", "--out x --explain", "--out x --repeat 2"] {
        let status = status(&format!("run {words}"), Stdio::null(), Stdio::null());
        let is_refused = [ExitStatus::Usage, ExitStatus::HostError].map(code).contains(&status);
        assert!(is_refused, "{words}: {status:?}");
    }
}

#[test]
fn halts_are_refused_before_anything_is_built() {
    for words in [
        "--halt 5000",
        "--halt 5000,999",
        "--halt 5000,2000000000",
        "--halt 10000000001,5000",
        "--halt 5000,5000,8388609",
        "--halt 5000,5000 --overflows nmi",
        "--halt 5000,5000 --explain",
        "--halt 5000,5000 --repeat 2",
        "--halt 5000,5000 --halt-timer off",
        "--halt-timer held",
    ] {
        let status = status(&format!("run {words}"), Stdio::null(), Stdio::null());
        assert_eq!(status, code(ExitStatus::Usage), "{words}");
    }
}

#[test]
fn repeat_refuses_options_before_it_builds_anything() {
    for words in [
        "--repeat 1",
        "--repeat 1001",
        "--repeat 2 --explain",
        "--repeat 2 --gdb",
        "--repeat 2 --trace x",
        "--repeat 2 --seed 18446744073709551615",
    ] {
        let status = status(&format!("run {words}"), Stdio::null(), Stdio::null());
        assert_eq!(status, code(ExitStatus::Usage), "{words}");
    }
}

#[test]
fn export_refuses_options_without_effect_and_files_that_are_no_traces() {
    for (words, refused) in [
        ("/nonexistent --to chrome", ExitStatus::HostError),
        ("Cargo.toml --to chrome", ExitStatus::BadTrace),
        ("Cargo.toml --to pictures", ExitStatus::Usage),
        ("Cargo.toml --to chrome --event cycles", ExitStatus::Usage),
        ("Cargo.toml --to chrome --table samples", ExitStatus::Usage),
        ("Cargo.toml --to openmetrics --symbols Cargo.toml", ExitStatus::Usage),
        ("Cargo.toml --to parquet --symbols Cargo.toml", ExitStatus::Usage),
        ("Cargo.toml --to folded --symbols Cargo.toml", ExitStatus::NotRunnable),
        ("Cargo.toml --to folded --symbols /nonexistent", ExitStatus::HostError),
        ("Cargo.toml --to chrome --out Cargo.toml", ExitStatus::Usage),
        ("Cargo.toml --to chrome --out /nonexistent/x", ExitStatus::HostError),
    ] {
        let status = status(&format!("export {words}"), Stdio::null(), Stdio::null());
        assert_eq!(status, code(refused), "{words}");
    }
}

/// Runs the tool as `cargo install` installs it: not from cargo, and from another folder.
fn installed(words: &[&str]) -> std::process::Output {
    let mut tally = Command::new(env!("CARGO_BIN_EXE_tally"));
    tally.args(words).current_dir("/").env_remove("CARGO_MANIFEST_DIR");
    tally.output().unwrap()
}

#[test]
fn the_installed_tool_has_its_own_name_and_works_from_any_folder() {
    let help = installed(&["run", "--help"]);
    assert!(String::from_utf8_lossy(&help.stdout).contains("Usage: tally run"), "{help:?}");
    let events = installed(&["events", "branch-misses"]);
    assert!(events.status.success(), "{events:?}");
    let plan = installed(&["run", "--explain", "--events", "branch-misses"]);
    assert!(plan.status.success(), "{plan:?}");
}

#[test]
fn commands_of_the_laboratory_are_refused_in_one_line() {
    let help = installed(&["--help"]);
    let help = String::from_utf8_lossy(&help.stdout);
    for word in LABORATORY {
        for words in [[word, "--help"], ["help", word]] {
            let refused = installed(&words);
            let why =
                format!("tally: {word} is a command of the laboratory: use cargo xtask {word}\n");
            assert_eq!(String::from_utf8_lossy(&refused.stderr), why);
            assert_eq!(refused.status.code(), code(ExitStatus::Usage), "{words:?}");
        }
        assert!(help.contains(word), "{help}");
    }
}

#[test]
fn shells_and_man_know_every_command() {
    let script = installed(&["completions", "bash"]).stdout;
    let text = String::from_utf8_lossy(&script);
    assert!(["tally", "annotate", "--percent-limit"].iter().all(|word| text.contains(word)));
    let folder = std::env::temp_dir().join(format!("tally-man-{}", std::process::id()));
    let file = folder.join("script");
    fs::create_dir_all(&folder).unwrap();
    fs::write(&file, script).unwrap();
    let checked = Command::new("bash").arg("-n").arg(&file).status();
    // On a host without bash the script cannot be checked.
    assert!(checked.map_or(true, |status| status.success()), "the script is no bash");
    assert!(installed(&["man", folder.to_str().unwrap()]).status.success());
    for page in ["tally.1", "tally-run.1", "tally-check-diff.1"] {
        let page = fs::read_to_string(folder.join(page)).unwrap_or_else(|e| panic!("{page}: {e}"));
        assert!(page.contains(".TH tally") && page.contains(".SH OPTIONS"), "{page}");
    }
    fs::remove_dir_all(&folder).unwrap();
}
