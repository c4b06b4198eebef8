//! Loading the programs of a job.

use alloc::{borrow::Cow, boxed::Box, vec::Vec};

use tally_abi::{
    ExitStatus,
    boot::{BadOption, Job, Program},
    words::unescape,
};

use super::{status::refuse, table};
use crate::{
    files::{
        location::{self, Base},
        open::{Descriptor, OpenFile},
        tree::Node,
    },
    measure::{self, Context},
    memory::kernel,
    task::{Process, Surroundings},
};

/// Loads the programs of a job, and starts all of them at once. Returns whether there is any.
/// Reports programs that cannot be loaded.
pub(super) fn load_all(job: Job) -> bool {
    let load_one = |program| match program {
        Ok(program) => load(program),
        Err(BadOption(option)) => {
            refuse(option, ExitStatus::Usage, "unknown or malformed option of a program");
            None
        }
    };
    // The other CPUs run the table's programs. All must be loaded first, so that a program's end is
    // not taken for the job's.
    let loaded: Vec<Box<Process>> = job.programs().filter_map(load_one).collect();
    let is_any = !loaded.is_empty();
    let mut table = table::lock();
    loaded.into_iter().for_each(|process| table.add(process, None));
    is_any
}

/// Loads a program; `None` if it is refused.
fn load(program: Program) -> Option<Box<Process>> {
    let Program { measure, is_default, may_write_code, phases, region, environment, input, words } =
        program;
    let words: Vec<Cow<str>> = words.map(unescape).collect();
    let words: Vec<&str> = words.iter().map(|word| &**word).collect();
    let environment = environment.map(|word| unescape(word).into_owned()).collect();
    let mut surroundings = Surroundings::of_job(environment, may_write_code);
    let name = words.first().copied().unwrap_or_default();
    if let Some(path) = input.map(unescape) {
        let Some(input) = open_input(&path) else {
            refuse(name, ExitStatus::ProgramNotFound, "no such file as its standard input");
            return None;
        };
        surroundings.input = input;
    }
    let pid = table::lock().allocate_number().expect("a command line has few programs");
    let mut process = match Process::load(pid, &words, surroundings, kernel::space()) {
        Ok(process) => process,
        Err((status, why)) => {
            refuse(name, status, &why);
            return None;
        }
    };
    if let Some((list, config)) = measure {
        match Context::around(process.subject(), list, config, phases) {
            Ok(mut context) => {
                context.is_default = is_default;
                process.slot.context = Some(context);
            }
            Err(refused) => {
                refuse(name, refused.error.exit_status(), &refused.detail);
                return None;
            }
        }
    }
    if let Some(tag) = region {
        measure::open_region(&process.memory.space, tag);
        process.region = region;
    }
    Some(Box::new(process))
}

/// Opens a file as the standard input of a program; `None` if there is no such file.
fn open_input(path: &str) -> Option<Descriptor> {
    match location::locate(&Base::root(), path, true).and_then(|place| place.existing()) {
        Ok(Node::File(file)) => Some(OpenFile::open(file, true, false, false)),
        _ => None,
    }
}
