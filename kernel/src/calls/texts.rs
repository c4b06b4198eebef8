//! The texts of `/proc` and `/sys`, in Linux's form. They have one CPU, the program's, however many
//! the machine has; `possible` alone has all, by whose number programs size tables of CPUs.

use alloc::{
    format,
    string::{String, ToString},
};
use core::{arch::x86_64::__cpuid_count, fmt::Write};

use raw_cpuid::CpuId;
use tally_abi::text::short_name;

use crate::{
    arch::extended_state,
    cpu::online,
    files::tree::Text,
    machine::clock::{self, SECOND_NS},
    memory::{
        area::Origin,
        frames::{self, FRAME_BYTES},
        space::PageAccess,
    },
    sched::table,
    task::{CLOCK_TICKS, Process},
};

/// Generates the text as of now, for the program that reads it.
pub(super) fn generate(process: &mut Process, text: Text) -> String {
    match text {
        Text::Maps => maps(process),
        Text::Stat => stat(process),
        Text::Statm => {
            let (all, resident) = sizes(process);
            format!(
                "{} {} 0 0 0 {} 0\n",
                all / FRAME_BYTES,
                resident / FRAME_BYTES,
                all / FRAME_BYTES
            )
        }
        Text::Status => status(process),
        Text::CommandLine => words(&process.arguments),
        Text::Environment => words(&process.environment),
        Text::Name => format!("{}\n", short_name(&process.name)),
        Text::Processors => processor(process.cpu),
        Text::Memory => memory(),
        Text::Uptime => {
            let now = clock::now_ns();
            let hundredths = now % SECOND_NS / (SECOND_NS / 100);
            format!("{}.{hundredths:02} 0.00\n", now / SECOND_NS)
        }
        Text::Load => String::from("0.00 0.00 0.00 1/1 1\n"),
        Text::Machine => machine(process.cpu),
        Text::Online => format!("{}\n", process.cpu),
        Text::Possible => match online::count() {
            1 => String::from("0\n"),
            count => format!("0-{}\n", count - 1),
        },
    }
}

/// Joins words, each ended by a zero byte.
fn words(words: &[String]) -> String {
    words.iter().flat_map(|word| [word.as_str(), "\0"]).collect()
}

fn maps(process: &Process) -> String {
    let mut text = String::new();
    for (range, area) in process.memory.areas() {
        let access = match area.access {
            PageAccess::Nothing => "---",
            PageAccess::Read => "r--",
            PageAccess::Write => "rw-",
            PageAccess::Execute => "r-x",
            PageAccess::All => "rwx",
        };
        let (kind, page, number, name) = match &area.origin {
            Origin::Copy(source, page) => ('p', *page, source.number(), String::new()),
            Origin::Shared(source, page, _) => ('s', *page, source.number(), String::new()),
            Origin::Heap => ('p', 0, 0, "[heap]".to_string()),
            Origin::Stack => ('p', 0, 0, "[stack]".to_string()),
            Origin::Segment => ('p', 0, 1, format!("/{}", process.name)),
            Origin::Zeros | Origin::Kernel(_) | Origin::Arriving => ('p', 0, 0, String::new()),
        };
        let head = format!(
            "{:08x}-{:08x} {access}{kind} {:08x} 00:01 {number}",
            range.start,
            range.end,
            page * FRAME_BYTES
        );
        let line = if name.is_empty() { format!("{head} ") } else { format!("{head:<72} {name}") };
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{line}");
    }
    text
}

/// Bytes of all areas, and bytes of all present pages.
fn sizes(process: &Process) -> (u64, u64) {
    let all = process.memory.areas().map(|(range, _)| range.end - range.start).sum();
    (all, process.memory.space.resident_bytes())
}

/// `/proc/self/stat`: 52 fields, of which the kernel fills the named ones.
fn stat(process: &mut Process) -> String {
    let (all, resident) = sizes(process);
    let ran = process.ran();
    let [user, system] =
        [ran.user_ns(), ran.system_ns()].map(|time| time / (SECOND_NS / CLOCK_TICKS));
    let parent = table::lock().parent(process.pid).unwrap_or(0);
    let (pid, name, threads) = (process.pid, short_name(&process.name), process.threads.len());
    let pages = resident / FRAME_BYTES;
    format!(
        "{pid} ({name}) R {parent} {pid} {pid} 0 -1 0 0 0 0 0 {user} {system} 0 0 20 0 {threads} 0 0 {all} \
         {pages} 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    )
}

fn status(process: &mut Process) -> String {
    let (all, resident) = sizes(process);
    let parent = table::lock().parent(process.pid).unwrap_or(0);
    let cpus = mask(process.cpu);
    format!(
        "Name:\t{}\nState:\tR (running)\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t{parent}\n\
         Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t64\nVmPeak:\t{all:8} kB\nVmSize:\t{all:8} kB\n\
         VmLck:\t       0 kB\nVmHWM:\t{rss:8} kB\nVmRSS:\t{rss:8} kB\nThreads:\t{}\n\
         Cpus_allowed:\t{cpus}\n",
        short_name(&process.name),
        process.threads.len(),
        pid = process.pid,
        all = all >> 10,
        rss = resident >> 10,
    )
}

/// A set of one CPU as Linux prints it: hexadecimal words of 32 bits for all online CPUs, the
/// highest first.
fn mask(cpu: u16) -> String {
    let word = |index: u32| match u32::from(cpu).checked_sub(32 * index) {
        Some(bit @ 0..32) => 1_u32 << bit,
        _ => 0,
    };
    let last = (online::count() - 1) / 32;
    let width = (online::count() - 32 * last).div_ceil(4) as usize;
    (0..last).rev().fold(format!("{:0width$x}", word(last)), |text, index| {
        text + &format!(",{:08x}", word(index))
    })
}

fn processor(index: u16) -> String {
    let id = CpuId::new();
    let vendor = id.get_vendor_info();
    let vendor = vendor.as_ref().map_or("unknown", |vendor| vendor.as_str());
    let brand = id.get_processor_brand_string();
    let brand = brand.as_ref().map_or("unknown", |brand| brand.as_str().trim());
    let (family, model, stepping) = id
        .get_feature_info()
        .map_or((0, 0, 0), |info| (info.family_id(), info.model_id(), info.stepping_id()));
    let flags = extensions();
    format!(
        "processor\t: {index}\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n\
         model name\t: {brand}\nstepping\t: {stepping}\nphysical id\t: 0\nsiblings\t: 1\n\
         core id\t\t: {index}\ncpu cores\t: 1\nfpu\t\t: yes\n\
         flags\t\t: fpu tsc cx8 cmov mmx fxsr sse sse2 syscall nx lm{flags}\n\n"
    )
}

/// The names of the extensions that programs may use and not every processor has.
fn extensions() -> String {
    let [one, seven, extended] = [1, 7, 0x8000_0001].map(|leaf| __cpuid_count(leaf, 0));
    let (avx, avx512) = (extended_state::has_avx(), extended_state::has_avx512());
    let all = [
        ("pni", one.ecx, 0, true),
        ("ssse3", one.ecx, 9, true),
        ("sse4_1", one.ecx, 19, true),
        ("sse4_2", one.ecx, 20, true),
        ("movbe", one.ecx, 22, true),
        ("popcnt", one.ecx, 23, true),
        ("aes", one.ecx, 25, true),
        ("abm", extended.ecx, 5, true),
        ("bmi1", seven.ebx, 3, true),
        ("bmi2", seven.ebx, 8, true),
        ("xsave", one.ecx, 26, extended_state::get().has_xsave()),
        ("avx", one.ecx, 28, avx),
        ("fma", one.ecx, 12, avx),
        ("f16c", one.ecx, 29, avx),
        ("avx2", seven.ebx, 5, avx),
        ("avx512f", seven.ebx, 16, avx512),
        ("avx512dq", seven.ebx, 17, avx512),
        ("avx512bw", seven.ebx, 30, avx512),
        ("avx512vl", seven.ebx, 31, avx512),
    ];
    let has = |(_, word, bit, is_on): &(&str, u32, u32, bool)| *is_on && word >> bit & 1 == 1;
    all.iter().filter(|it| has(it)).fold(String::new(), |text, (name, ..)| text + " " + name)
}

fn memory() -> String {
    let frames::Usage { all, free } = frames::usage();
    let zeros = ["Buffers", "Cached", "SwapCached", "Active", "Inactive", "SwapTotal", "SwapFree"];
    let mut text = String::new();
    for (name, bytes) in [("MemTotal", all), ("MemFree", free), ("MemAvailable", free)]
        .into_iter()
        .chain(zeros.map(|name| (name, 0)))
    {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{:16}{:8} kB", format!("{name}:"), bytes >> 10);
    }
    text
}

/// `/proc/stat`: the CPU, with zeros as times.
fn machine(cpu: u16) -> String {
    format!("cpu  0 0 0 0 0 0 0 0 0 0\ncpu{cpu} 0 0 0 0 0 0 0 0 0 0\n")
}
