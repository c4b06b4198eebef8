//! The functions in which samples were taken.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde::Serialize;
use tally_abi::{
    program::{VDSO_BASE, VDSO_BYTES},
    trace::SampleRecord,
};

use super::{
    Recording,
    loaded::{self, KERNEL_PROGRAM, LoadedFile},
    perf_map::{PerfMap, program_of_map},
};
use crate::{
    Result,
    symbols::{self, CallGraph, Mark, Place, StackAddress, stack_addresses},
};

/// Name for a sample whose address is not known.
const NO_ADDRESS: &str = "[no address]";
/// Name for a sample in ring 0 of a kernel whose file is not known.
const KERNEL: &str = "[kernel]";
/// Name for a sample in the shared object that the kernel gives programs to read the clocks with.
const VDSO: &str = "[vdso]";

/// A level of a sample's stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Level {
    /// The sample's address, or that of a caller.
    #[serde(flatten)]
    pub(crate) at: StackAddress,
    /// The functions at the address, from the outermost one to the innermost one inlined into it.
    pub(crate) functions: Vec<String>,
}

/// A function's own name, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The name without what tells the function from others in the trace.
    pub(crate) name: String,
    /// Source file, if it is known.
    pub(crate) source: Option<String>,
    /// Text that the function's name has behind it in the trace.
    pub(crate) mark: Mark,
    /// The name of the file with the code, if other files of the program have such a function.
    pub(crate) object: Option<String>,
}

/// The files of the sampled programs.
#[derive(Default)]
pub(crate) struct Symbolizer {
    files: Vec<LoadedFile>,
    /// Names of code that programs made, from the files `perf-PID.map` of `--symbols`.
    maps: Vec<PerfMap>,
    by: CallGraph,
    /// Programs with names of functions that samples are in, in several of the program's files.
    shared: BTreeSet<(u32, String)>,
}

impl Symbolizer {
    /// Checks the files of `--symbols` before the trace is read.
    ///
    /// # Errors
    /// A file cannot be read, or is no ELF file.
    pub(crate) fn check(paths: &[PathBuf]) -> Result<()> {
        let mut files = paths.iter().filter(|path| program_of_map(path).is_none());
        files.try_for_each(|path| symbols::check(path))
    }

    /// Reads the files of the programs that were sampled: those of `--symbols`, and those that the
    /// run names and that have not changed since.
    ///
    /// # Errors
    /// A file cannot be read or is no program, or a file of `--symbols` is another build than the
    /// one that ran.
    pub(crate) fn of(of: &Recording, paths: &[PathBuf], by: CallGraph) -> Result<Symbolizer> {
        let (maps, files): (Vec<_>, Vec<_>) =
            paths.iter().cloned().partition(|path| program_of_map(path).is_some());
        let maps = maps.iter().filter_map(|path| PerfMap::read(path).transpose());
        let maps = maps.collect::<Result<_>>()?;
        let files = loaded::read(of, &files)?;
        let mut all = Symbolizer { files, maps, by, shared: BTreeSet::new() };
        all.shared = all.shared_names(of);
        Ok(all)
    }

    /// The programs with names of functions that samples are in, in several files.
    fn shared_names(&self, of: &Recording) -> BTreeSet<(u32, String)> {
        let mut found: BTreeMap<(u32, String), BTreeSet<&Path>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for sample in &of.records.samples {
            let file = self.file(of, sample, sample.address);
            let Some(file) =
                file.filter(|file| seen.insert((file.program, file.key(), sample.address)))
            else {
                continue;
            };
            for place in file.places(sample.address) {
                let key = (file.program, place.function);
                found.entry(key).or_default().insert(file.key().0);
            }
        }
        found.retain(|_, files| files.len() > 1);
        found.into_keys().collect()
    }

    /// A function's name with the name of its file, if other files of the program have a function
    /// of that name.
    fn told_apart(&self, name: String, file: &LoadedFile) -> String {
        match self.object(&name, file) {
            Some(object) => format!("{name} ({object})"),
            None => name,
        }
    }

    /// The name of a function's file, if other files of the program have a function of that name.
    fn object(&self, name: &str, file: &LoadedFile) -> Option<String> {
        let is_shared = self.shared.contains(&(file.program, name.to_owned()));
        let path = file.key().0.file_name().filter(|_| is_shared)?;
        Some(path.to_string_lossy().into_owned())
    }

    /// The identity of the outermost function of a sample, if a file has it.
    pub(crate) fn identity(&self, of: &Recording, sample: &SampleRecord) -> Option<Identity> {
        let file = self.file(of, sample, sample.address)?;
        let place = file.places(sample.address).pop()?;
        let object = self.object(&place.function, file);
        let name = place.unmarked().to_owned();
        Some(Identity { name, source: place.file, mark: place.mark, object })
    }

    /// The name of the function at an address of a file; without one the name that `other` returns.
    pub(crate) fn named(
        &self,
        file: &LoadedFile,
        address: u64,
        other: impl FnOnce() -> String,
    ) -> String {
        let name = file.places(address).pop().map_or_else(other, |place| place.function);
        self.told_apart(name, file)
    }

    /// The files that were in a program's memory: the first is its own.
    pub(crate) fn files(&self, program: u32) -> impl Iterator<Item = &LoadedFile> {
        self.files.iter().filter(move |file| file.program == program)
    }

    /// The file that has the code at an address of a program at a time: the last one that was
    /// mapped there.
    fn at(&self, program: u32, tsc: u64, address: u64) -> Option<&LoadedFile> {
        let there = self.files(program).filter(|file| file.symbols.contains(address));
        there.filter(|file| file.from_tsc <= tsc).max_by_key(|file| file.from_tsc)
    }

    /// The file that has the code at an address of a sample's stack; the kernel's for a sample in
    /// ring 0.
    pub(crate) fn file(
        &self,
        of: &Recording,
        sample: &SampleRecord,
        address: u64,
    ) -> Option<&LoadedFile> {
        let program = if sample.user { of.program_of(sample.session).0 } else { KERNEL_PROGRAM };
        self.at(program, sample.tsc, address)
    }

    /// The functions of a sample, from the outermost one to the innermost one inlined into it.
    pub(crate) fn functions(&self, of: &Recording, sample: &SampleRecord) -> Vec<String> {
        self.level(of, sample).functions
    }

    /// The functions at an address of a sampled program.
    fn functions_at(&self, of: &Recording, sample: &SampleRecord, at: StackAddress) -> Vec<String> {
        let file = self.file(of, sample, at.in_instruction());
        let mut names: Vec<String> = Vec::new();
        if let Some(file) = file {
            let places = file.places(at.in_instruction()).into_iter().rev();
            names.extend(places.map(|place| self.told_apart(place.function, file)));
        }
        if names.is_empty() {
            let (program, _) = of.program_of(sample.session);
            let mut named = self.maps.iter().filter(|_| sample.user);
            let in_map = named.find_map(|map| map.name(program, at.in_instruction()));
            let nameless = || file.map_or_else(|| format!("{:#x}", at.address), LoadedFile::name);
            names.push(in_map.map_or_else(nameless, str::to_owned));
        }
        names
    }

    /// The stack of a sample, the outermost caller first and the sample itself last; only the
    /// sample if no stack was copied and no calls were recorded, or the program's file is not
    /// known.
    pub(crate) fn stack(&self, of: &Recording, sample: &SampleRecord) -> Vec<Level> {
        let symbols = |address| self.file(of, sample, address).map(|file| &file.symbols);
        let copy = of.stacks.of_sample(sample).filter(|_| sample.user);
        let addresses =
            copy.map(|copy| stack_addresses(&symbols, &copy.registers, &copy.stack, self.by));
        let callers = addresses.into_iter().flatten().skip(1);
        let is_copied = copy.is_some();
        let calls = of.branches.calls_of_sample(sample).iter();
        let calls = calls.filter(|_| sample.user && !is_copied);
        let calls = calls.map(|call| StackAddress { address: call.from, is_return: false });
        let callers = callers.chain(calls);
        let level = |at| Level { at, functions: self.functions_at(of, sample, at) };
        let mut levels: Vec<Level> = callers.map(level).collect();
        levels.reverse();
        levels.push(self.level(of, sample));
        levels
    }

    /// The innermost level of a sample's stack: the sample itself.
    pub(crate) fn level(&self, of: &Recording, sample: &SampleRecord) -> Level {
        let at = StackAddress { address: sample.address, is_return: false };
        let functions = match sample {
            SampleRecord { address: 0, .. } => vec![NO_ADDRESS.to_owned()],
            SampleRecord { user: false, address, .. }
                if self.file(of, sample, *address).is_none() =>
            {
                vec![KERNEL.to_owned()]
            }
            SampleRecord { user: true, address, .. }
                if (VDSO_BASE..VDSO_BASE + VDSO_BYTES).contains(address) =>
            {
                vec![VDSO.to_owned()]
            }
            _ => self.functions_at(of, sample, at),
        };
        Level { at, functions }
    }

    /// The functions of a sample's stack, from the outermost to the innermost.
    pub(crate) fn stack_functions(&self, of: &Recording, sample: &SampleRecord) -> Vec<String> {
        self.stack(of, sample).into_iter().flat_map(|level| level.functions).collect()
    }

    /// The place of a sample in its innermost function, if it is known.
    pub(crate) fn place(&self, of: &Recording, sample: &SampleRecord) -> Option<Place> {
        let file = self.file(of, sample, sample.address)?;
        file.places(sample.address).into_iter().next()
    }

    /// The innermost function of a sample.
    pub(crate) fn function(&self, of: &Recording, sample: &SampleRecord) -> String {
        self.functions(of, sample).pop().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use object::Object;
    use tally_abi::boot::KERNEL_BASE;

    use super::*;
    use crate::{
        code_files::{self, KernelFile},
        trace::run::Run,
        trace_file::Records,
    };

    /// The functions of a sample in ring 0 at an address, of a kernel whose file is this program's.
    fn functions(identity: &str, address: u64) -> Vec<String> {
        let sample = loaded::tests::made_up_sample(address, false);
        let host = std::env::current_exe().unwrap();
        let kernel = Some(KernelFile { host, identity: identity.to_owned() });
        let run = Run { kernel, ..Run::default() };
        let records = Records { samples: vec![sample], ..Records::default() };
        let of = Recording::made(run, records, (0, 1));
        let symbolizer = Symbolizer::of(&of, &[], CallGraph::Dwarf).unwrap();
        symbolizer.functions(&of, &of.records.samples[0])
    }

    #[test]
    fn samples_in_ring_0_are_in_functions_of_the_kernel_that_ran() {
        let bytes = fs::read(std::env::current_exe().unwrap()).unwrap();
        let start = KERNEL_BASE + object::File::parse(&*bytes).unwrap().entry();
        let identity = code_files::identity(&bytes);
        assert_eq!(functions(&identity, start), ["[k] _start"]);
        assert_eq!(functions(&identity, 1 << 63), [KERNEL]);
        assert_eq!(functions("another", start), [KERNEL]);
    }
}
