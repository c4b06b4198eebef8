//! Tests with small programs, which the C compiler makes.

use std::{fs, path::PathBuf, process::Command};

use object::{Object, ObjectSection, ObjectSymbol};

use super::*;

/// A folder for a test's files.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("tally-{name}-{}", std::process::id()));
        _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    /// Writes sources and runs a command in the folder.
    fn make(&self, sources: &[(&str, &str)], command: &str) {
        for (name, text) in sources {
            fs::write(self.0.join(name), text).unwrap();
        }
        let mut words = command.split_whitespace();
        let mut call = Command::new(words.next().unwrap());
        let output = call.args(words).current_dir(&self.0).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// The functions and lines of the loop of [`INLINED`], innermost first.
    fn places(&self, file: &str, address: u64) -> Vec<String> {
        let places = self.symbols(file).places(address).into_iter();
        let line = |place: &Place| place.line.map_or("?".into(), |line| line.to_string());
        places.map(|place| format!("{}:{}", place.function, line(&place))).collect()
    }

    /// The symbols of a file that is loaded where it is linked.
    fn symbols(&self, name: &str) -> Symbols {
        let path = self.0.join(name);
        Symbols::loaded(&path, &fs::read(&path).unwrap(), 0).unwrap()
    }

    /// The address of a function.
    fn address(&self, file: &str, function: &str) -> u64 {
        let bytes = fs::read(self.0.join(file)).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let symbol = file.symbols().find(|symbol| symbol.name() == Ok(function));
        symbol.unwrap_or_else(|| panic!("no {function}")).address()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Functions whose callers need more than an offset from a register: `realigned` has the address of
/// its frame at -8(%rbp), as a function with aligned locals; `restore`, without unwind information,
/// and `trampoline`, as glibc describes it, return from a signal's handler; `interrupted` is so at
/// its first instruction, before which other rules hold.
const RULES: &str = "
.globl _start
_start: .cfi_startproc
  .cfi_undefined rip
  call outer
.cfi_endproc
outer: .cfi_startproc
  call interrupted
.cfi_endproc
before: .cfi_startproc
  .cfi_def_cfa rsp, 4096
  nop
.cfi_endproc
interrupted: .cfi_startproc
  nop
.cfi_endproc
realigned: .cfi_startproc
  .cfi_escape 0x0f, 3, 0x76, 0x78, 0x06
  .cfi_escape 0x10, 6, 2, 0x76, 0
  call leaf
.cfi_endproc
  nop
restore:
  mov $15, %rax
  syscall
.cfi_startproc
  .cfi_signal_frame
  .cfi_escape 0x0f, 4, 0x77, 0xa0, 0x01, 0x06
  .cfi_escape 0x10, 16, 3, 0x77, 0xa8, 0x01
  nop
trampoline:
  mov $15, %rax
  syscall
.cfi_endproc
";

/// A function that `.debug_frame` describes and `.eh_frame` does not.
const LEAF: &str = "
.globl leaf
.cfi_sections .debug_frame
leaf: .cfi_startproc
  nop
.cfi_endproc
";

#[test]
fn callers_are_found_by_expressions_and_behind_signals() {
    let folder = Folder::new("unwind");
    let sources = [("rules.s", RULES), ("leaf.s", LEAF)];
    folder.make(&sources, "cc -nostdlib -static -no-pie -o program rules.s leaf.s");
    let (symbols, address) = (folder.symbols("program"), |name| folder.address("program", name));
    let call_bytes = 5;
    // The frame of `leaf`, those of `realigned` twice, each with the registers that a signal
    // interrupted above it, and that of `interrupted`.
    let (leaf, frames, interrupted) = (0x1000_u64, [0x1100_u64, 0x1400], 0x1700_u64);
    let mut words = std::collections::BTreeMap::from([
        (leaf, address("realigned") + call_bytes),
        (interrupted, address("outer") + call_bytes),
        (interrupted + 8, address("_start") + call_bytes),
    ]);
    let returns = [address("restore"), address("trampoline")];
    for (frame, restorer) in frames.into_iter().zip(returns) {
        let (pointer, end) = (frame, frame + 0x40);
        // The frame's address, the caller's RBP, the return address.
        words.extend([(pointer - 8, end), (pointer, 0), (end - 8, restorer)]);
        let is_last = frame == frames[1];
        // RBP, RSP and RIP.
        let rsp = if is_last { interrupted } else { leaf };
        let rip = if is_last { address("interrupted") } else { address("leaf") };
        words.extend([(end + 120, frames[1]), (end + 160, rsp), (end + 168, rip)]);
    }
    let mut stack = Stack::at(leaf);
    for at in (leaf..0x2000).step_by(8) {
        stack.push(at, &words.get(&at).copied().unwrap_or_default().to_le_bytes());
    }
    let registers = Frame { rip: address("leaf"), rsp: leaf, rbp: frames[0], ..Frame::default() };
    let found = stack_addresses(&|_| Some(&symbols), &registers, &stack, CallGraph::Dwarf);
    let names = found.iter().map(|at| symbols.places(at.in_instruction()).pop().unwrap().function);
    let names: Vec<String> = names.collect();
    let signal = ["leaf", "realigned"];
    let last = ["interrupted", "outer", "_start"];
    let expected = [&signal[..], &["restore"], &signal, &["trampoline"], &last].concat();
    assert_eq!(names, expected);
}

/// A function with another one inlined into it, at its first instruction.
const INLINED: &str = "
static inline __attribute__((always_inline)) void inner(void) { __asm__ volatile (\"nop\"); }
__attribute__((noinline)) void hot(void) { inner(); }
void _start(void) { hot(); for (;;) ; }
";
const LINK: &str = "-O1 -nostdlib -static -no-pie -fcf-protection=none -Wl,--build-id";
const FOUND: [&str; 2] = ["inner:2", "hot:3"];

#[test]
fn separate_debug_files_are_found_by_name_and_checksum_or_by_build_id() {
    let folder = Folder::new("debug-file");
    folder.make(&[("a.c", INLINED)], &format!("cc -g {LINK} -o program a.c"));
    let address = folder.address("program", "hot");
    assert_eq!(folder.places("program", address), FOUND);
    folder.make(&[], "objcopy --only-keep-debug program program.debug");
    folder.make(&[], "objcopy --strip-all --add-gnu-debuglink=program.debug program");
    assert_eq!(folder.places("program", address), FOUND);
    let bytes = fs::read(folder.0.join("program.debug")).unwrap();
    assert!(is_debug_only(&object::File::parse(&*bytes).unwrap()));

    // In the folder `.debug`, and nowhere.
    folder.make(&[], "mkdir .debug");
    folder.make(&[], "mv program.debug .debug");
    assert_eq!(folder.places("program", address), FOUND);
    folder.make(&[], "mv .debug/program.debug other");
    assert!(folder.places("program", address).is_empty());

    // A file of this name that is another build is not used.
    fs::write(folder.0.join("program.debug"), [&bytes[..], b"x"].concat()).unwrap();
    assert!(folder.places("program", address).is_empty());

    // Where distributions have them, by build id.
    let program = fs::read(folder.0.join("program")).unwrap();
    let file = object::File::parse(&*program).unwrap();
    assert!(!is_debug_only(&file));
    let id = file.build_id().unwrap().unwrap();
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let there = folder.0.join("system/.build-id").join(&id[..2]);
    fs::create_dir_all(&there).unwrap();
    let debug = there.join(format!("{}.debug", &id[2..]));
    fs::write(&debug, bytes).unwrap();
    let path = folder.0.join("program");
    let separate = || debug_files::separate(&path, &file, &folder.0.join("system"));
    assert_eq!(separate(), Some(debug.clone()));
    fs::write(&debug, b"another file").unwrap();
    assert_eq!(separate(), None);
}

#[test]
fn split_and_compressed_debug_information_has_inlined_functions() {
    let folder = Folder::new("debug-forms");
    for compression in ["zlib", "zlib-gnu"] {
        let name = format!("by-{compression}");
        folder.make(&[("a.c", INLINED)], &format!("cc -g -gz={compression} {LINK} -o {name} a.c"));
        assert_eq!(folder.places(&name, folder.address(&name, "hot")), FOUND);
    }
    for version in [4, 5] {
        let name = format!("program{version}");
        let object = format!("part{version}");
        let words = format!("-g -gdwarf-{version} -gsplit-dwarf -fcf-protection=none -O1");
        folder.make(&[], &format!("cc {words} -c -o {object}.o a.c"));
        folder.make(&[], &format!("cc {LINK} -o {name} {object}.o"));
        let address = folder.address(&name, "hot");
        assert_eq!(folder.places(&name, address), FOUND);
        // Version 2.40 of dwp does not read DWARF 5.
        if version == 4 {
            folder.make(&[], &format!("dwp -e {name} -o {name}.dwp"));
        }
        fs::remove_file(folder.0.join(format!("{object}.dwo"))).unwrap();
        let expected: &[&str] = if version == 4 { &FOUND } else { &["hot:2"] };
        assert_eq!(folder.places(&name, address), expected);
    }
}

/// A function with three names, of which the debug information has the least plain one.
const ALIASES: &str = "
void __GI_plain(void) { __asm__ volatile (\"nop\"); }
void plain(void) __attribute__((alias(\"__GI_plain\")));
void __plain(void) __attribute__((alias(\"__GI_plain\")));
void _start(void) { __GI_plain(); for (;;) ; }
";

#[test]
fn a_function_of_several_names_has_the_plainest() {
    let folder = Folder::new("aliases");
    folder.make(&[("a.c", ALIASES)], &format!("cc -g {LINK} -fno-inline -o program a.c"));
    let address = folder.address("program", "plain");
    assert_eq!(folder.places("program", address), ["plain:2"]);
    assert_eq!(folder.symbols("program").aliases(address), ["__GI_plain", "__plain", "plain"]);
}

/// Static functions of C and C++ that both files have, a lambda, and code in an unnamed namespace.
const STATIC: &str = "
#define NOINLINE __attribute__((noinline))
static NOINLINE void helper(int n) { __asm__ volatile (\"nop\" : : \"r\"(n)); }
namespace { namespace inner { NOINLINE void hidden(int n) { __asm__ volatile (\"nop\" : : \"r\"(n)); } } }
void PUBLIC() {
  helper(1); inner::hidden(1);
  auto first = [](int n) NOINLINE { __asm__ volatile (\"nop\" : : \"r\"(n)); };
  auto second = [](int n) NOINLINE { __asm__ volatile (\"nop\" : : \"r\"(n)); };
  first(1); second(1);
}
";

#[test]
fn static_functions_of_one_name_are_told_apart() {
    let folder = Folder::new("static");
    fs::create_dir_all(folder.0.join("sub")).unwrap();
    let main = "void a(); void b(); extern \"C\" void _start() { a(); b(); for (;;) ; }";
    let c = "static __attribute__((noinline)) void plain(void) { __asm__ volatile (\"nop\"); }
void FUNCTION(void) { plain(); }";
    let sources =
        [("a.cc", STATIC), ("b.cc", STATIC), ("main.cc", main), ("u.c", c), ("sub/u.c", c)];
    folder.make(&sources, "c++ -g -O1 -c -DPUBLIC=a a.cc");
    for command in [
        "c++ -g -O1 -c -DPUBLIC=b b.cc",
        "cc -g -O1 -c -DFUNCTION=c u.c",
        "cc -g -O1 -c -DFUNCTION=d sub/u.c -o v.o",
        "c++ -g -O1 -nostdlib -static -o program main.cc a.o b.o u.o v.o",
    ] {
        folder.make(&[], command);
    }
    let bytes = fs::read(folder.0.join("program")).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbols = folder.symbols("program");
    let functions = file.symbols().filter(|of| of.kind() == object::SymbolKind::Text);
    let functions = functions.filter(object::ObjectSymbol::is_definition);
    let name = |of: object::Symbol<'_, '_>| symbols.places(of.address()).pop().unwrap().function;
    let mut names: Vec<String> = functions.filter(|of| of.is_local()).map(name).collect();
    names.sort();
    let folder = folder.0.display();
    let expected = [
        "(anonymous namespace)::inner::hidden(int) (a.cc)".to_owned(),
        "(anonymous namespace)::inner::hidden(int) (b.cc)".to_owned(),
        "a()::{lambda(int)#1}::operator()(int) const".to_owned(),
        "a()::{lambda(int)#2}::operator()(int) const".to_owned(),
        "b()::{lambda(int)#1}::operator()(int) const".to_owned(),
        "b()::{lambda(int)#2}::operator()(int) const".to_owned(),
        "helper(int) (a.cc)".to_owned(),
        "helper(int) (b.cc)".to_owned(),
        format!("plain ({folder}/sub/u.c)"),
        format!("plain ({folder}/u.c)"),
    ];
    assert_eq!(names, expected);
}

/// Two lambdas given to one function template, whose debug information has no numbers for them.
const LAMBDAS: &str = "
template <typename F> __attribute__((noinline)) void call(F f) { f(); }
void a() { call([]() { __asm__ volatile (\"nop\"); }); call([]() { __asm__ volatile (\"nop; nop\"); }); }
extern \"C\" void _start() { a(); for (;;) ; }
";

#[test]
fn functions_of_one_name_are_told_apart_by_lambdas_and_addresses() {
    let folder = Folder::new("lambdas");
    folder.make(&[("a.cc", LAMBDAS)], "c++ -g -O1 -nostdlib -static -no-pie -o program a.cc");
    let symbols = folder.symbols("program");
    let of =
        |symbol: &str| symbols.places(folder.address("program", symbol)).pop().unwrap().function;
    let calls = ["_Z4callIZ1avEUlvE_EvT_", "_Z4callIZ1avEUlvE0_EvT_"].map(of);
    assert!(calls[0].contains("{lambda()#1}") && calls[1].contains("{lambda()#2}"), "{calls:?}");

    let file = |name| {
        format!(
            "static __attribute__((noinline)) void helper(void) {{ __asm__ volatile (\"nop\"); }} void {name}(void) {{ helper(); }}"
        )
    };
    let main = "void a(void); void b(void); void _start(void) { a(); b(); for (;;) ; }";
    folder.make(
        &[("a.c", &file("a")), ("b.c", &file("b")), ("main.c", main)],
        "cc -O1 -nostdlib -static -no-pie -o plain main.c a.c b.c",
    );
    folder.make(&[], "objcopy --strip-debug plain");
    let bytes = fs::read(folder.0.join("plain")).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let helpers = file.symbols().filter(|of| of.name() == Ok("helper"));
    let symbols = folder.symbols("plain");
    let mut names = Vec::new();
    for helper in helpers {
        names.push(symbols.places(helper.address()).pop().unwrap().function);
        assert_eq!(names.last(), Some(&format!("helper@{:#x}", helper.address())));
    }
    assert_eq!(names.len(), 2);
}

#[test]
fn a_damaged_section_leaves_the_names_of_symbols() {
    let folder = Folder::new("damaged");
    folder.make(&[("a.c", INLINED)], &format!("cc -g -gz=zlib {LINK} -o program a.c"));
    let path = folder.0.join("program");
    let (mut bytes, address) = (fs::read(&path).unwrap(), folder.address("program", "hot"));
    let file = object::File::parse(&*bytes).unwrap();
    let (start, size) = file.section_by_name(".debug_info").unwrap().file_range().unwrap();
    let header = 24;
    bytes[(start + header) as usize..(start + size) as usize].fill(0xff);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(folder.places("program", address), ["hot:?"]);
}
