//! Functions and lines of addresses in one file: by its debug information, and without that by its
//! symbols.

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Range,
    path::{Path, PathBuf},
};

use addr2line::{Loader, Location};
use cpp_demangle::DemangleOptions;
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind, elf};
use serde::Serialize;

use super::stubs::stubs;
use crate::{output, project::Project, visible::visible};

/// A function and a line in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The function, with its path.
    pub function: String,
    /// File of the line, relative to the project's folder if it is inside.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// Kind of text behind the function's name.
    #[serde(skip)]
    pub(crate) mark: Mark,
}

/// Text behind a function's name that tells it from others of that name in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mark {
    /// No text: the file has no other function of that name.
    #[default]
    None,
    /// Source file's name.
    Source,
    /// Source file's path, because several of the source files have that name.
    Path,
    /// Address of the function: the one at this place, in the order of addresses, of so many.
    Rank { at: usize, of: usize },
}

impl Place {
    /// The function's name without the text that tells it from others.
    pub(crate) fn unmarked(&self) -> &str {
        let parts = match self.mark {
            Mark::None => None,
            Mark::Source | Mark::Path => self.function.rsplit_once(" ("),
            Mark::Rank { .. } => self.function.rsplit_once('@'),
        };
        parts.map_or(&*self.function, |(name, _)| name)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.function)?;
        if let Some(file) = &self.file {
            write!(f, " at {file}")?;
        }
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// The functions of a file.
pub(super) struct Names {
    /// The file.
    pub(super) path: PathBuf,
    /// The debug information; `None` if it cannot be read.
    loader: Option<Loader>,
    /// The functions by symbols, each with its addresses and its name.
    symbols: Vec<(Range<u64>, String)>,
    /// Addresses of functions that have several symbols, with these.
    pub(super) aliases: BTreeMap<u64, Vec<String>>,
    /// Symbols of static functions that several functions have, with these functions' addresses.
    shared: BTreeMap<String, Vec<u64>>,
    /// Names of static functions that several source files have; with `true` those of which two
    /// files have one name too.
    repeated: BTreeMap<String, bool>,
}

/// The functions of a file by its symbols of code, in the order of addresses: one at each address,
/// with the plainest of its names, as perf takes it: `malloc`, not `__libc_malloc`. None reaches
/// beyond the next. Assembly has no sizes: it ends at the next symbol, or with its section. A stub
/// has the name of the function that it jumps to and `@plt`, as objdump prints it.
pub(crate) fn functions_of(file: &object::File<'_>) -> Vec<(Range<u64>, String)> {
    let symbols = code_symbols(file);
    let mut found: Vec<_> =
        symbols.map(|(of, name)| (of.address(), of.size(), name.to_owned())).collect();
    found.extend(
        stubs(file)
            .into_iter()
            .map(|(of, name)| (of.start, of.end - of.start, format!("{}@plt", demangled(name)))),
    );
    let underscores = |name: &str| name.len() - name.trim_start_matches('_').len();
    found.sort_by_cached_key(|(start, size, name)| {
        (*start, Reverse(*size), underscores(name), name.len(), name.clone())
    });
    found.dedup_by_key(|(start, ..)| *start);
    // A separate debug file has the sections without their bytes.
    let is_executed = |flags| match flags {
        SectionFlags::Elf { sh_flags } => sh_flags & u64::from(elf::SHF_EXECINSTR) != 0,
        _ => false,
    };
    let sections = file.sections().filter(|of| is_executed(of.flags()));
    let sections: Vec<Range<u64>> =
        sections.map(|of| of.address()..of.address().saturating_add(of.size())).collect();
    let end_of_section =
        |at: u64| sections.iter().find(|of| of.contains(&at)).map_or(at, |of| of.end);
    let starts: Vec<u64> = found.iter().map(|(start, ..)| *start).collect();
    let function = |(index, (start, size, name)): (usize, (u64, u64, String))| {
        let end = if size > 0 { start.saturating_add(size) } else { end_of_section(start) };
        let next = starts.get(index + 1).copied().unwrap_or(u64::MAX);
        (start..end.min(next), name)
    };
    found.into_iter().enumerate().map(function).collect()
}

/// The symbols of a file's code, with their names.
fn code_symbols<'a>(
    file: &'a object::File<'a>,
) -> impl Iterator<Item = (object::Symbol<'a, 'a>, &'a str)> {
    // Labels of assembly have no kind.
    let is_code = |of: &object::Symbol<'_, '_>| {
        of.is_definition() && matches!(of.kind(), SymbolKind::Text | SymbolKind::Unknown)
    };
    let symbols = file.symbols().chain(file.dynamic_symbols()).filter(is_code);
    symbols.filter_map(|of| {
        let name = of.name().ok()?;
        Some((of, name))
    })
}

/// The addresses of functions that have several symbols, with these.
fn aliases(file: &object::File<'_>) -> BTreeMap<u64, Vec<String>> {
    let mut names = BTreeMap::<u64, BTreeSet<&str>>::new();
    for (symbol, name) in code_symbols(file) {
        names.entry(symbol.address()).or_default().insert(name);
    }
    let several = names.into_iter().filter(|(_, names)| names.len() > 1);
    several.map(|(at, names)| (at, names.into_iter().map(str::to_owned).collect())).collect()
}

impl Names {
    /// Reads the file's debug information; if that is damaged, functions have the names of their
    /// symbols. `dwz` is the file that it shares with others, if it has one.
    pub(super) fn read(path: &Path, file: &object::File<'_>, dwz: Option<PathBuf>) -> Names {
        let loader = Loader::new_with_sup(path, dwz).inspect_err(|error| {
            output::note_once(format_args!(
                "xtask: {}: its debug information cannot be read: functions have no lines: {}",
                path.display(),
                visible(&error.to_string())
            ));
        });
        Names {
            path: path.to_owned(),
            loader: loader.ok(),
            symbols: functions_of(file),
            aliases: aliases(file),
            shared: shared(file),
            repeated: repeated(file),
        }
    }

    /// Returns whether no function has a symbol.
    pub(super) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Address and name of the symbol of the code at an address; `None` in code that has none.
    fn symbol(&self, address: u64) -> Option<(u64, &str)> {
        let behind = self.symbols.partition_point(|(of, _)| of.start <= address);
        let (of, name) = self.symbols.get(behind.checked_sub(1)?)?;
        of.contains(&address).then_some((of.start, name))
    }

    /// The functions of the instruction at an address in the file: the inlined ones, innermost
    /// first, and the one they were inlined into. `base` is the distance to its loaded address.
    pub(super) fn places(&self, address: u64, base: u64) -> Vec<Place> {
        let (mut found, mut nameless) = (Vec::new(), None);
        let frames = self.loader.as_ref().and_then(|loader| loader.find_frames(address).ok());
        if let Some(mut frames) = frames {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame.function.as_ref().and_then(|name| name.demangle().ok());
                match name {
                    Some(name) => found.push((tidied(&name), frame.location)),
                    None => nameless = frame.location,
                }
            }
        }
        if found.is_empty() {
            return self.by_symbol(address, base, nameless).into_iter().collect();
        }
        let symbol = self.symbol(address);
        // The debug information has one of several names, not the plainest.
        if let Some((start, plainest)) = symbol
            && let Some((name, _)) = found.last_mut()
            && self.aliases.get(&start).is_some_and(|aliases| aliases.contains(name))
        {
            *name = plainest.to_owned();
        }
        let symbol = symbol.map(|(_, name)| source_name(name));
        let last = found.len() - 1;
        let place = |(index, (name, at)): (usize, (String, Option<Location<'_>>))| {
            self.place(&name, symbol.filter(|_| index == last), at)
        };
        found.into_iter().enumerate().map(place).collect()
    }

    /// The place in a function of this demangled name; `symbol` is the symbol of a function that is
    /// not inlined.
    fn place(&self, name: &str, symbol: Option<&str>, at: Option<Location<'_>>) -> Place {
        let (file, line) = at.map_or((None, None), |at| (at.file, at.line));
        let qualified = symbol.and_then(|symbol| qualified(name, symbol));
        let mut function = visible(qualified.as_deref().unwrap_or(name)).into_owned();
        let key = symbol.filter(|_| qualified.is_some()).unwrap_or(name);
        let mut mark = Mark::None;
        if let Some((file, has_equal_files)) = file.zip(self.repeated.get(key)) {
            mark = if *has_equal_files { Mark::Path } else { Mark::Source };
            let last = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
            let shown = if *has_equal_files { relative(file) } else { visible(&last).into_owned() };
            function = format!("{function} ({shown})");
        }
        Place { function, file: file.map(relative), line, mark }
    }

    /// The place in the function by the symbols: assembly has no other name. `at` is its line, if
    /// it is known.
    fn by_symbol(&self, address: u64, base: u64, at: Option<Location<'_>>) -> Option<Place> {
        let (start, symbol) = self.symbol(address)?;
        let mut function = visible(&demangled(symbol)).into_owned();
        let mut mark = Mark::None;
        let same = self.shared.get(symbol);
        if same.is_some() || self.repeated.contains_key(source_name(symbol)) {
            function = format!("{function}@{:#x}", base.wrapping_add(start));
            let (at, of) = same
                .map_or((0, 1), |same| (same.partition_point(|other| *other < start), same.len()));
            mark = Mark::Rank { at, of };
        }
        let (file, line) = at.map_or((None, None), |at| (at.file, at.line));
        Some(Place { function, file: file.map(relative), line, mark })
    }
}

/// The demangled name of a function's symbol, or the symbol.
pub fn demangled(symbol: &str) -> String {
    tidied(&addr2line::demangle_auto(Cow::Borrowed(symbol), None))
}

/// A name as the demangler returns it, without the comma that it leaves before an empty pack of
/// arguments, and with the suffixes of C++ for the types of numbers. Of a symbol that it does not
/// know, the function's own name.
fn tidied(name: &str) -> String {
    let name = without_types(name).unwrap_or_else(|| name.replace(", >", ">"));
    SUFFIXES.iter().fold(name, |name, (cast, suffix)| with_suffix(&name, cast, suffix))
}

/// Types of numbers as the demangler writes them before a number, and as `c++filt` behind it.
const SUFFIXES: [(&str, &str); 5] = [
    ("(unsigned int)", "u"),
    ("(long)", "l"),
    ("(unsigned long)", "ul"),
    ("(long long)", "ll"),
    ("(unsigned long long)", "ull"),
];

/// A name with a suffix behind the numbers that a cast is before.
fn with_suffix(name: &str, cast: &str, suffix: &str) -> String {
    let mut parts = name.split(cast);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.strip_prefix('-').unwrap_or(part);
        let behind = digits.trim_start_matches(|letter: char| letter.is_ascii_digit());
        if behind.len() == digits.len() {
            text = text + cast + part;
        } else {
            text = text + &part[..part.len() - behind.len()] + suffix + behind;
        }
    }
    text
}

/// The function's name with its path and arguments of templates, without the types of its value and
/// parameters, of a C++ symbol that the demangler does not know: most have a name in an expression
/// (`sr`) in one of these types.
fn without_types(symbol: &str) -> Option<String> {
    if !symbol.starts_with("_Z") {
        return None;
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let name = |end: usize| {
        let part = cpp_demangle::Symbol::new(symbol.get(..end)?).ok()?;
        part.demangle_with_options(&options).ok()
    };
    // A template's arguments and a nested name end with an E.
    let ends = symbol.match_indices('E').map(|(at, _)| at + 1).filter(|end| *end < symbol.len());
    ends.rev().find_map(name)
}

/// A symbol's name without the suffix of a copy that the compiler made: `helper.constprop.0`.
fn source_name(symbol: &str) -> &str {
    symbol.split('.').next().unwrap_or_default()
}

/// The demangled name of a function's symbol, if only this one has the function's scope and
/// parameters, or the numbers of lambdas: compilers describe lambdas and static functions of C++
/// without.
fn qualified(name: &str, symbol: &str) -> Option<String> {
    let full = demangled(symbol);
    if name.contains("<lambda(") && full.contains("{lambda(") {
        return Some(full);
    }
    let mut ends = full.match_indices(name).map(|(at, _)| &full[at + name.len()..]);
    let has_name = ends.any(|end| end.starts_with('('));
    (has_name && full != symbol && !name.contains("::")).then_some(full)
}

/// The symbols of static functions that several functions have, with these functions' addresses.
fn shared(file: &object::File<'_>) -> BTreeMap<String, Vec<u64>> {
    let mut addresses = BTreeMap::<&str, BTreeSet<u64>>::new();
    let is_static = |of: &object::Symbol<'_, '_>| of.is_local() && of.kind() == SymbolKind::Text;
    for symbol in file.symbols().filter(is_static) {
        addresses.entry(symbol.name().unwrap_or_default()).or_default().insert(symbol.address());
    }
    let several = addresses.into_iter().filter(|(_, of)| of.len() > 1);
    several.map(|(name, of)| (name.to_owned(), of.into_iter().collect())).collect()
}

/// The names of static functions that several source files have, each with whether two of the files
/// have one name.
fn repeated(file: &object::File<'_>) -> BTreeMap<String, bool> {
    let (mut source, mut sources) = ((0, ""), BTreeMap::<&str, BTreeSet<(usize, &str)>>::new());
    // The local symbols of a source file follow the symbol with its name.
    for symbol in file.symbols().filter(|symbol| symbol.is_local()) {
        let Ok(name) = symbol.name() else { continue };
        match symbol.kind() {
            SymbolKind::File => source = (source.0 + 1, name),
            SymbolKind::Text => {
                sources.entry(source_name(name)).or_default().insert(source);
            }
            _ => {}
        }
    }
    let several = sources.into_iter().filter(|(_, files)| files.len() > 1);
    let repeated = several.map(|(name, files)| {
        let names: BTreeSet<&str> = files.iter().map(|(_, name)| *name).collect();
        (name.to_owned(), names.len() < files.len())
    });
    repeated.collect()
}

/// A file's path relative to the project's folder, if it is inside. Paths of guests begin with a
/// dot (`xtask/src/build/rustc.sh`).
fn relative(file: &str) -> String {
    let root = Project::here().root;
    let path = Path::new(file);
    let inside = path.strip_prefix(root).or_else(|_| path.strip_prefix("."));
    visible(&inside.unwrap_or(path).display().to_string()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected names: those of `c++filt`, without the types of value and parameters.
    #[test]
    fn a_symbol_with_a_name_in_an_expression_has_the_function_s_without_types() {
        let fill = "_ZSt9__fill_a1IPddEN9__gnu_cxx11__enable_ifIXsrSt11__is_scalarIT0_E7__valueE\
                    vE6__typeET_S8_RKS4_";
        assert_eq!(demangled(fill), "std::__fill_a1<double*, double>");
        let same = "_Z2sfIiENSt9enable_ifIXsrSt7is_sameIT_iE5valueES2_E4typeES2_";
        assert_eq!(demangled(same), "sf<int>");
        assert_eq!(demangled("_Z3addii"), "add(int, int)");
        let numbers = "void f<32ul, -1l, unsigned int, 8u>(unsigned long)";
        assert_eq!(demangled("_Z1fILm32ELln1EjLj8EEvm"), numbers);
        assert_eq!(demangled("_Zwrong"), "_Zwrong");
    }
}
