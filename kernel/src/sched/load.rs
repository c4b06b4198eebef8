//! Loading the command line's programs.

use alloc::{borrow::Cow, boxed::Box, vec::Vec};

use tally_abi::{
    ExitStatus,
    boot::{BadOption, CommandLine, Program},
    words::unescape,
};

use super::{status::refuse, table};
use crate::{
    files::{
        location::{self, Base},
        tree::Node,
    },
    measure::{self, Context},
    memory::kernel,
    task::Process,
};

/// Why nothing runs. A boot loader that finds no ramdisk boots the kernel all the same.
const NO_PROGRAM: &str = "no program is named on the command line, or the boot loader found no \
                          ramdisk: put the file `ramdisk` beside the kernel, or write the image \
                          again";

/// Loads the programs of the command line. A program that cannot be loaded is reported, and if
/// none is named, that is.
pub fn load_all(line: &CommandLine) {
    if line.programs().next().is_none() {
        refuse("kernel", ExitStatus::ProgramNotFound, NO_PROGRAM);
    }
    for program in line.programs() {
        match program {
            Ok(program) => load(program),
            Err(BadOption(option)) => {
                refuse(option, ExitStatus::Usage, "unknown or malformed option of a program");
            }
        }
    }
}

fn load(program: Program) {
    let Program { measure, phases, region, environment, input, words } = program;
    let words: Vec<Cow<str>> = words.map(unescape).collect();
    let environment: Vec<Cow<str>> = environment.map(unescape).collect();
    let [words, environment]: [Vec<&str>; 2] =
        [&words, &environment].map(|all| all.iter().map(|word| &**word).collect());
    let name = words.first().copied().unwrap_or_default();
    let pid = table::lock().allocate_number().expect("a command line has few programs");
    let mut process = match Process::load(pid, &words, &environment, kernel::space()) {
        Ok(process) => process,
        Err((status, why)) => return refuse(name, status, &why),
    };
    if let Some(path) = input.map(unescape) {
        match location::locate(&Base::root(), &path, true).and_then(|place| place.existing()) {
            Ok(Node::File(file)) => process.files.set_input(file),
            _ => {
                return refuse(
                    name,
                    ExitStatus::ProgramNotFound,
                    "no such file as its standard input",
                );
            }
        }
    }
    if let Some((list, config)) = measure {
        match Context::around(process.subject(), list, config, phases) {
            Ok(context) => process.slot.context = Some(context),
            Err(refused) => return refuse(name, refused.error.exit_status(), &refused.detail),
        }
    }
    if let Some(tag) = region {
        measure::open_region(&process.memory.space, tag);
        process.region = region;
    }
    table::lock().add(Box::new(process), None);
}

/// Returns whether any program is left to run.
pub fn any_live() -> bool {
    table::lock().any_live()
}
