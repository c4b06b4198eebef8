//! Rules about registers, and their checks.

use core::{arch::global_asm, fmt::Display, sync::atomic::Ordering::Relaxed};

use crate::{
    kernel::{self, fault_of},
    machine::{rdmsr, wrmsr},
    report::CheckReport,
    vendor::VendorPmu,
};

global_asm!(
    r#"
    .section .text
do_wrmsr:
    wrmsr
    ret
do_rdmsr:
    rdmsr
    ret
do_rdpmc:
    rdpmc
    ret
    "#
);

unsafe extern "C" {
    fn do_wrmsr();
    fn do_rdmsr();
    fn do_rdpmc();
}

/// A general-protection fault's vector.
const GP: u8 = 13;
/// The value that stands for "no fault" in the report.
pub const NONE: u64 = 0x100;

/// A rule about a register in ring 0.
#[derive(Clone, Copy)]
pub enum Rule {
    /// Value kept: after a write of the first value, a read returns the second.
    Holds(u32, u64, u64),
    /// Write refused: a write of the value faults and changes nothing.
    RefusesWrite(u32, u64),
    /// Value read: a read returns this value.
    Reads(u32, u64),
    /// Read refused: a read faults.
    RefusesRead(u32),
    /// Index refused: RDPMC of this index faults.
    RefusesIndex(u32),
}

/// Checks one rule.
pub fn check(report: &mut CheckReport, rule: Rule) {
    use Rule::{Holds, Reads, RefusesIndex, RefusesRead, RefusesWrite};
    match rule {
        Holds(msr, value, reads) => {
            let before = rdmsr(msr);
            let fault = fault_of(do_wrmsr, msr.into(), value & 0xffff_ffff, value >> 32);
            let got = if fault.is_none() { rdmsr(msr) } else { !reads };
            report.equal(format_args!("{msr:#x} <- {value:#x} reads {reads:#x}"), got, reads);
            wrmsr(
                msr,
                before
                    & if is_full_width(msr) { VendorPmu::here().counter_mask() } else { u64::MAX },
            );
        }
        RefusesWrite(msr, value) => {
            let what = format_args!("{msr:#x} <- {value:#x} faults");
            let before = fault_of(do_rdmsr, msr.into(), 0, 0).is_none().then(|| rdmsr(msr));
            let fault = fault_of(do_wrmsr, msr.into(), value & 0xffff_ffff, value >> 32);
            expect_gp(report, what, fault, msr);
            if let Some(before) = before {
                let what = format_args!("{msr:#x} <- {value:#x} changes nothing");
                report.equal(what, rdmsr(msr), before);
            }
        }
        Reads(msr, value) => report.equal(format_args!("{msr:#x} reads"), rdmsr(msr), value),
        RefusesRead(msr) => {
            let fault = fault_of(do_rdmsr, msr.into(), 0, 0);
            expect_gp(report, format_args!("a read of {msr:#x} faults"), fault, msr);
        }
        RefusesIndex(index) => {
            let fault = fault_of(do_rdpmc, index.into(), 0, 0);
            expect_gp(report, format_args!("rdpmc {index:#x} faults"), fault, index);
        }
    }
}

/// Expects a general-protection fault whose handler finds the guest's own RCX.
pub fn expect_gp(report: &mut CheckReport, what: impl Display, fault: Option<u8>, rcx: u32) {
    let rcx_kept = kernel::FAULT_RCX.load(Relaxed) == rcx.into();
    let got = match fault {
        None => NONE,
        Some(_) if !rcx_kept => NONE + 1,
        Some(vector) => vector.into(),
    };
    report.equal(what, got, GP.into());
}

fn is_full_width(msr: u32) -> bool {
    matches!(msr, 0x309..=0x30c | 0x4c1..=0x4c8)
}
