//! Kernel and ramdisk grow, and neither the truth of the default job nor an estimate changes.

use std::path::PathBuf;

use tally_abi::truth::Truth;
use xtask::{
    guest_files::GuestFile,
    machine::{Artefacts, Folder},
    project::Project,
    ramdisk,
    report::Report,
    run::RunArgs,
};

use crate::{artefacts, assert_success, boot_with};

/// The part that grows.
#[derive(Clone, Copy, Debug)]
struct Growth {
    /// Bytes that every segment of the kernel has more.
    kernel_bytes: usize,
    /// Whether the ramdisk has one file more.
    file: bool,
}

/// Offsets in an ELF file, in its program headers and in its section headers (System V ABI,
/// "Object Files").
mod elf {
    pub const PROGRAM_HEADERS: usize = 32;
    pub const SECTION_HEADERS: usize = 40;
    pub const PROGRAM_HEADER_COUNT: usize = 56;
    pub const SECTION_HEADER_COUNT: usize = 60;
    pub const PROGRAM_HEADER_BYTES: usize = 56;
    pub const SECTION_HEADER_BYTES: usize = 64;
    pub const OFFSET_OF_SEGMENT: usize = 8;
    pub const BYTES_IN_FILE: usize = 32;
    pub const BYTES_IN_MEMORY: usize = 40;
    pub const OFFSET_OF_SECTION: usize = 24;
    pub const LOAD: u64 = 1;
}

fn number<const N: usize>(file: &[u8], at: usize) -> usize {
    file[at..at + N].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

fn set(file: &mut [u8], at: usize, number: usize) {
    file[at..at + 8].copy_from_slice(&(number as u64).to_le_bytes());
}

/// A kernel with `bytes` more, a multiple of the page size, at the end of every segment; of the
/// last, which zeros end, in memory alone.
fn grown(kernel: &[u8], bytes: usize) -> Vec<u8> {
    let headers = |table, count, size| {
        let (start, count) = (number::<8>(kernel, table), number::<2>(kernel, count));
        (0..count).map(move |index| start + index * size)
    };
    let segments =
        headers(elf::PROGRAM_HEADERS, elf::PROGRAM_HEADER_COUNT, elf::PROGRAM_HEADER_BYTES);
    let sections =
        headers(elf::SECTION_HEADERS, elf::SECTION_HEADER_COUNT, elf::SECTION_HEADER_BYTES);
    let loaded: Vec<usize> =
        segments.clone().filter(|at| number::<4>(kernel, *at) as u64 == elf::LOAD).collect();
    let start = |segment: &usize| number::<8>(kernel, segment + elf::OFFSET_OF_SEGMENT);
    // More bytes are before every segment but the first.
    let starts: Vec<usize> = loaded[1..].iter().map(start).collect();
    let moved = |offset| offset + bytes * starts.iter().filter(|start| **start <= offset).count();
    let mut file = kernel.to_vec();
    let places = segments.map(|at| at + elf::OFFSET_OF_SEGMENT);
    let places = places.chain(sections.map(|at| at + elf::OFFSET_OF_SECTION));
    for at in places.chain([elf::SECTION_HEADERS]) {
        set(&mut file, at, moved(number::<8>(kernel, at)));
    }
    for (index, segment) in loaded.iter().enumerate() {
        let in_file = (index < starts.len()).then_some(segment + elf::BYTES_IN_FILE);
        for at in in_file.into_iter().chain([segment + elf::BYTES_IN_MEMORY]) {
            set(&mut file, at, number::<8>(kernel, at) + bytes);
        }
    }
    for start in starts.into_iter().rev() {
        file.splice(start..start, vec![0xcc; bytes]);
    }
    file
}

/// Places the same files, grown, in `folder`.
fn with(growth: Growth, artefacts: &Artefacts, folder: &Folder) -> Artefacts {
    let mut artefacts = artefacts.clone();
    let put = |name: &str, bytes: Vec<u8>| -> PathBuf {
        let path = folder.file(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let boot = &mut artefacts.boot;
    if growth.file {
        // Its name is before all others.
        let file = put("a-file", vec![b'x'; 5000]);
        boot.ramdisk = put(
            "ramdisk-grown",
            ramdisk::with(&boot.ramdisk, &GuestFile::by_names(&[file])).unwrap(),
        );
    }
    let kernel = std::fs::read(&boot.kernel).unwrap();
    boot.kernel = put("kernel-grown", grown(&kernel, growth.kernel_bytes));
    artefacts
}

/// The truth of a job, and what its report says.
fn measured(command: &str, artefacts: &Artefacts) -> (Truth, String) {
    let request = RunArgs::of(command).and_then(|args| args.request()).expect("it is a run");
    let boot = boot_with(artefacts, &request);
    assert_success(&boot);
    let report = serde_json::to_string(&Report::of(&boot)).unwrap();
    (boot.truth.expect("there is the virtual PMU"), report)
}

fn assert_same(command: &str, growths: &[Growth]) {
    let artefacts = artefacts();
    let folder = Folder::make(&Project::here()).unwrap();
    let (truth, report) = measured(command, &artefacts);
    for growth in growths {
        let (grown_truth, grown_report) = measured(command, &with(*growth, &artefacts, &folder));
        assert_eq!(truth, grown_truth, "{command}: {growth:?}");
        assert_eq!(report, grown_report, "{command}: {growth:?}");
    }
}

#[test]
fn a_larger_kernel_and_ramdisk_change_nothing_that_is_measured() {
    assert_same("cargo xtask run", &[Growth { kernel_bytes: 64 << 10, file: true }]);
}

macro_rules! on {
    ($($name:ident: $options:literal;)*) => {
        $(
            #[test]
            #[ignore = "long"]
            fn $name() {
                let kernels = [4 << 10, 64 << 10, 2 << 20];
                let kernels = kernels.map(|kernel_bytes| Growth { kernel_bytes, file: false });
                let files = [Growth { kernel_bytes: 0, file: true }];
                let all = [&kernels[..], &files].concat();
                assert_same(concat!("cargo xtask run ", $options), &all);
            }
        )*
    };
}

on! {
    growth_changes_nothing_on_intel: "--pmu intel --vpmu pipeline=interval";
    growth_changes_nothing_on_intel_out_of_order: "--pmu intel --vpmu pipeline=ooo";
    growth_changes_nothing_on_amd: "--pmu amd --vpmu pipeline=interval";
    growth_changes_nothing_on_amd_out_of_order: "--pmu amd --vpmu pipeline=ooo";
}
