//! Large pages: walks by page size, and the TLB entries that pages take.

use core::arch::asm;

use tally_abi::vpmu::Op;

use crate::{
    kernel::{HOLE, SPARE_PAGE, tables_pd, tables_pml4, unmap_hole},
    machine::{cpuid, vpmu},
    report::CheckReport,
    vendor::{OS, VendorPmu},
};

/// Pages of 2 MiB to load from, and places in each, all in different pages of 4 KiB.
const PAGES: u64 = 16;
const PLACES: u64 = 8;
/// Maximum pages that the guest's own kernel uses while it counts.
const OWN: u64 = 3;

/// A page table.
#[repr(C, align(4096))]
struct Table([u64; 512]);

/// Table that maps one page of the hole in pages of 4 KiB.
static mut SMALL_PAGES: Table = Table([0; 512]);
/// Table that maps memory in pages of 1 GiB, from this address on.
static mut HUGE_PAGES: Table = Table([0; 512]);
const HUGE: u64 = 1 << 39;

/// Event selects of a vendor.
struct Events {
    /// Walks for loads: of 4 KiB, 2 MiB and 1 GiB; on AMD's processors for stores too.
    walks: [u64; 3],
    /// Loads from pages of 2 MiB that hit the second level; on Intel's processors from pages of any
    /// size.
    hits: u64,
    /// Walks for fetches: of 4 KiB and 2 MiB.
    code: [u64; 2],
}

impl Events {
    fn here(vendor: &VendorPmu) -> Events {
        let of = |loads: u64, code: u64| Events {
            walks: [0x200, 0x400, 0x800].map(|umask| umask | loads),
            hits: 0x2000 | loads,
            code: [0x200, 0x400].map(|umask| umask | code),
        };
        match (vendor.is_intel(), cpuid(1, 0)[0] >> 4) {
            (true, 0x806f) => of(0x12, 0x11),
            // Hits of both sizes together have the second unit mask 3.
            (true, 0xb06d | 0xc06c) => Events { hits: 3 << 40 | 0x2012, ..of(0x12, 0x11) },
            (true, _) => of(0x08, 0x85),
            _ => Events { walks: [0x1045, 0x4045, 0x8045], hits: 0x445, code: [0x185, 0x285] },
        }
    }
}

/// Runs every check of this module.
pub fn run(report: &mut CheckReport) {
    let vendor = VendorPmu::here();
    let events = Events::here(&vendor);
    // The page-fault handler maps the hole at the first loads.
    unmap_hole();
    load_all();
    if vpmu(Op::Models, events.walks[1] as u32)[0] == 0 {
        // Intel has an event for all sizes; on AMD the one for 4 KiB counts all walks here.
        let all = if vendor.is_intel() { events.walks[0] | 0xe00 } else { events.walks[0] };
        flush();
        let [walks, ..] = vendor.count(&[all], OS, load_all);
        let most = PAGES * PLACES + 20;
        report.within("large pages: each 4 KiB takes a walk", walks, PAGES * PLACES, most);
    } else {
        pages_of_2_mib(report, &vendor, &events);
        pages_of_4_kib(report, &vendor, &events);
        pages_of_1_gib(report, &vendor, &events);
        code(report, &vendor, &events);
    }
    unmap_hole();
}

fn pages_of_2_mib(report: &mut CheckReport, vendor: &VendorPmu, events: &Events) {
    let [small, large, huge] = events.walks;
    let loads = || vendor.count(&[small, large, huge, events.hits], OS, load_all);
    flush();
    let [small, large, huge, _] = loads();
    report.within("2 MiB: one walk for each page", large, PAGES, PAGES + OWN);
    report.equal("2 MiB: no walk is for a page of 4 KiB", small, 0);
    report.equal("2 MiB: none is for a page of 1 GiB", huge, 0);
    let [_, large, _, hits] = loads();
    report.equal("2 MiB: then the first level has them", large + hits, 0);
    invalidate(HOLE + (5 << 21) + 0x1f_e123);
    let [small, large, ..] = loads();
    report.equal("2 MiB: INVLPG removes the one with the address", large, 1);
    report.equal("2 MiB: and no other", small, 0);
}

fn pages_of_4_kib(report: &mut CheckReport, vendor: &VendorPmu, events: &Events) {
    let (table, pages) = (&raw mut SMALL_PAGES, &raw mut tables_pd);
    for page in 0..512 {
        // The entry without the bit for a large page.
        let entry = (SPARE_PAGE & !0x80) + ((page as u64) << 12);
        // SAFETY: nothing else uses the table.
        unsafe { (*table).0[page] = entry };
    }
    // SAFETY: nothing but the checks' own loops uses the hole.
    unsafe { (*pages)[(HOLE >> 21) as usize] = table as u64 | 7 };
    invalidate(HOLE);
    let [small, large, ..] = vendor.count(&events.walks, OS, load_all);
    report.equal("4 KiB: one walk for each page", small, PLACES);
    report.equal("4 KiB: none for the large pages beside it", large, 0);
}

fn pages_of_1_gib(report: &mut CheckReport, vendor: &VendorPmu, events: &Events) {
    let (table, top) = (&raw mut HUGE_PAGES, &raw mut tables_pml4);
    // SAFETY:
    // 1. Nothing else uses the table, and this entry of the top table is empty.
    // 2. The page is the first gigabyte, which is only read there.
    unsafe {
        (*table).0[0] = 0x87;
        (*top)[(HUGE >> 39) as usize] = table as u64 | 7;
    }
    flush();
    let places = || (1..100).for_each(|place| load(HUGE + (place << 20)));
    let [small, _, huge, _] = vendor.count(&events.walks, OS, places);
    report.equal("1 GiB: one walk for the page", huge, 1);
    report.equal("1 GiB: no walk is for a page of 4 KiB", small, 0);
    let [_, _, huge, _] = vendor.count(&events.walks, OS, places);
    report.equal("1 GiB: then the first level has it", huge, 0);
    // SAFETY: as above.
    unsafe { (*top)[(HUGE >> 39) as usize] = 0 };
    flush();
}

fn code(report: &mut CheckReport, vendor: &VendorPmu, events: &Events) {
    let [small, large, ..] = vendor.count(&events.code, OS, flush);
    report.within("code: walks for pages of 2 MiB", large, 1, OWN);
    report.equal("code: none for pages of 4 KiB", small, 0);
}

/// Loads from all places of all pages of the hole, page by page.
fn load_all() {
    for page in 0..PAGES {
        (0..PLACES).for_each(|place| load(HOLE + (page << 21) + 0x5000 * place));
    }
}

fn load(address: u64) {
    // SAFETY: the callers' addresses are mapped, or are by the handler of page faults.
    unsafe { core::ptr::read_volatile(address as *const u8) };
}

/// Removes every translation; no page is global.
fn flush() {
    // SAFETY: rewriting CR3 changes nothing else.
    unsafe { asm!("mov {0}, cr3", "mov cr3, {0}", out(reg) _) };
}

/// Removes the translation of the page that contains the address.
fn invalidate(address: u64) {
    // SAFETY: a translation that is removed is found again.
    unsafe { asm!("invlpg [{}]", in(reg) address) };
}
