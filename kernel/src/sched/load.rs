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
        tree::Node,
    },
    measure::{self, Context},
    memory::kernel,
    task::Process,
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
    let environment: Vec<Cow<str>> = environment.map(unescape).collect();
    let [words, environment]: [Vec<&str>; 2] =
        [&words, &environment].map(|all| all.iter().map(|word| &**word).collect());
    let name = words.first().copied().unwrap_or_default();
    let pid = table::lock().allocate_number().expect("a command line has few programs");
    let mut process =
        match Process::load(pid, &words, &environment, may_write_code, kernel::space()) {
            Ok(process) => process,
            Err((status, why)) => {
                refuse(name, status, &why);
                return None;
            }
        };
    if let Some(path) = input.map(unescape)
        && !set_input(&mut process, &path)
    {
        refuse(name, ExitStatus::ProgramNotFound, "no such file as its standard input");
        return None;
    }
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

/// Makes a file the standard input of a program. Returns whether there is such a file.
fn set_input(process: &mut Process, path: &str) -> bool {
    match location::locate(&Base::root(), path, true).and_then(|place| place.existing()) {
        Ok(Node::File(file)) => process.files.set_input(file),
        _ => return false,
    }
    true
}
