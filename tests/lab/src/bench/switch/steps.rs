//! Attribution of instructions to steps of the overflow path, by the functions that they were
//! inlined from.

use std::{borrow::Cow, collections::HashMap, path::Path};

use addr2line::Loader;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use serde::Serialize;
use tally_abi::ExitStatus;
use xtask::{Failure, Result, project};

/// A step of the overflow path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PathStep {
    /// The entry's assembly, from the interrupt to the handler and back.
    Enter,
    /// Finding the session, and control flow between the steps.
    Find,
    /// Reading counters.
    Read,
    /// Writing event selects.
    Select,
    /// Arming the slice timer.
    Arm,
    /// Acknowledging the overflow and, if needed, disabling and enabling counters.
    Acknowledge,
    /// Unmasking the PMI and signalling the end of interrupt.
    Controller,
    /// Logging: crediting counts, statistics, the trace record, the engine's own cost, drawing the
    /// group after the next and preparing the switch to it.
    Log,
}

impl PathStep {
    pub(super) const ALL: [PathStep; 8] = [
        PathStep::Enter,
        PathStep::Find,
        PathStep::Read,
        PathStep::Select,
        PathStep::Arm,
        PathStep::Acknowledge,
        PathStep::Controller,
        PathStep::Log,
    ];

    pub(super) fn sentence(self) -> &'static str {
        match self {
            PathStep::Enter => "enter and leave the interrupt",
            PathStep::Find => "find the session",
            PathStep::Read => "read counters",
            PathStep::Select => "write event selects",
            PathStep::Arm => "arm the slice timer",
            PathStep::Acknowledge => "acknowledge, disable, enable",
            PathStep::Controller => "interrupt controller",
            PathStep::Log => "log",
        }
    }

    /// The step of a function, if its name determines one.
    fn of(function: &str) -> Option<PathStep> {
        Some(match function {
            "pmi_entry" => PathStep::Enter,
            "overflow" | "handle_pmi" | "switch" => PathStep::Find,
            "read" | "read_general" | "read_some" => PathStep::Read,
            "change" | "change_each" | "change_some" => PathStep::Select,
            "reload" => PathStep::Arm,
            "acknowledge" | "ack_and_resume" | "enable" | "disable" | "control" | "gate"
            | "gate_each" | "disable_to_change" => PathStep::Acknowledge,
            "unmask_pmi" | "end_of_interrupt" => PathStep::Controller,
            "log" | "complete" | "push" | "advance" | "draw" | "begin_round" | "draw_column"
            | "prepare" | "tsc" => PathStep::Log,
            _ => return None,
        })
    }
}

/// A function's name without path and type arguments.
fn own_name(name: &str) -> String {
    let mut bare = String::new();
    let mut depth = 0_u32;
    for letter in name.chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => bare.push(letter),
            _ => {}
        }
    }
    bare.rsplit("::").find(|part| !part.is_empty()).unwrap_or_default().to_owned()
}

/// An instruction's access to the PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PmuAccess {
    None,
    Msr,
    Counter,
}

/// The kernel's file, with symbols and line tables.
pub(super) struct KernelCode {
    loader: Loader,
    /// Code sections: start address and bytes.
    sections: Vec<(u64, Vec<u8>)>,
    functions: Vec<(String, u64)>,
    known: HashMap<u64, (PathStep, PmuAccess)>,
}

impl KernelCode {
    pub(super) fn read(kernel: &Path) -> Result<KernelCode> {
        let loader = Loader::new(kernel).map_err(|error| bad(kernel, &*error))?;
        let bytes = project::read(kernel)?;
        let file = object::File::parse(&*bytes).map_err(|error| bad(kernel, &error))?;
        let code = file.sections().filter(|section| section.kind() == SectionKind::Text);
        let sections = code.filter_map(|s| Some((s.address(), s.data().ok()?.to_vec()))).collect();
        let functions = file
            .symbols()
            .filter_map(|symbol| Some((symbol.name().ok()?.to_owned(), symbol.address())))
            .collect();
        Ok(KernelCode { loader, sections, functions, known: HashMap::new() })
    }

    /// The address of the function with `name` in its mangled name, in the file.
    pub(super) fn address(&self, name: &str) -> Option<u64> {
        let found = self.functions.iter().find(|(function, _)| function.contains(name));
        found.map(|(_, address)| *address)
    }

    /// The address, in the file, of the function with this name whose path contains `owner`.
    pub(super) fn function(&self, owner: &str, name: &str) -> Option<u64> {
        let is_it = |mangled: &str| {
            let path = addr2line::demangle_auto(Cow::Borrowed(mangled), None);
            own_name(&path) == name && path.contains(owner)
        };
        let likely = self.functions.iter().filter(|(mangled, _)| mangled.contains(name));
        likely.clone().find(|(mangled, _)| is_it(mangled)).map(|(_, address)| *address)
    }

    /// The step and the access of the instruction at this address of the file.
    pub(super) fn classify(&mut self, address: u64) -> (PathStep, PmuAccess) {
        if let Some(known) = self.known.get(&address) {
            return *known;
        }
        let found = (self.step(address), self.access(address));
        self.known.insert(address, found);
        found
    }

    fn step(&self, address: u64) -> PathStep {
        // From the innermost inlined function outwards.
        let mut names = Vec::new();
        if let Ok(mut frames) = self.loader.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                names.extend(
                    frame.function.map(|name| {
                        name.demangle().map_or_else(|_| String::new(), Cow::into_owned)
                    }),
                );
            }
        }
        names.extend(
            self.loader
                .find_symbol(address)
                .map(|mangled| addr2line::demangle_auto(Cow::Borrowed(mangled), None).into_owned()),
        );
        names.iter().find_map(|name| PathStep::of(&own_name(name))).unwrap_or(PathStep::Log)
    }

    fn access(&self, address: u64) -> PmuAccess {
        match self.first_bytes(address) {
            [0x0f, 0x30 | 0x32] => PmuAccess::Msr,
            [0x0f, 0x33] => PmuAccess::Counter,
            _ => PmuAccess::None,
        }
    }

    /// Returns whether the instruction is IRETQ.
    pub(super) fn is_return(&self, address: u64) -> bool {
        self.first_bytes(address) == [0x48, 0xcf]
    }

    fn first_bytes(&self, address: u64) -> &[u8] {
        let of = |(start, bytes): &'_ (u64, Vec<u8>)| {
            let offset = usize::try_from(address.checked_sub(*start)?).ok()?;
            (offset + 2 <= bytes.len()).then_some(offset)
        };
        let found = self.sections.iter().find_map(|section| Some((of(section)?, section)));
        found.map_or(&[], |(offset, (_, bytes))| &bytes[offset..offset + 2])
    }
}

fn bad(kernel: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::new(ExitStatus::HostError, format!("cannot read {}: {error}", kernel.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_names_have_neither_path_nor_types() {
        for (name, own) in [
            ("pmi_entry", "pmi_entry"),
            ("switch<tally_pmu::bus::Native>", "switch"),
            ("<tally_engine::moments::GroupMoments>::add", "add"),
            ("<a::Multiplexer<b::Driver<c::Native>>>::log::<d::Trace>", "log"),
            ("<a::Trace as b::Sink>::record::<c::Session>::{closure#0}", "{closure#0}"),
        ] {
            assert_eq!(own_name(name), own);
        }
    }
}
