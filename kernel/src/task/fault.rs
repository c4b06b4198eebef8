//! Faults of programs: their descriptions, and the signals that they raise.

use alloc::{borrow::Cow, format};

use x86_64::registers::control::Cr2;

use super::{
    fpu,
    signal::{FROM_KERNEL, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP, SignalInfo},
};
use crate::{
    arch::{extended_state, frame::Frame, vectors},
    memory::user::Touch,
};

/// Bytes of an instruction by which its extension is known.
pub const CODE_BYTES: usize = 4;
/// The first byte of AVX-512's instructions (Intel SDM volume 2, "EVEX").
const EVEX: u8 = 0x62;

/// A program's fault.
#[derive(Clone, Debug, Default)]
pub struct Fault {
    /// The description, for the log and the host.
    pub what: Cow<'static, str>,
    /// The address whose access faulted; `None` if unknown.
    pub touched: Option<u64>,
    /// Signal of the fault.
    pub signal: u32,
    /// `si_code`.
    pub code: i32,
    /// `si_addr`.
    pub address: u64,
    /// The exception's vector.
    pub vector: u64,
    /// The exception's error code.
    pub error: u64,
}

impl Fault {
    /// The fault of the exception that made `frame`. Signals and codes are Linux's
    /// (`arch/x86/kernel/traps.c`).
    pub fn of_exception(frame: &Frame) -> Fault {
        let (vector, error) = (frame.vector, frame.error);
        let name = vectors::exception_name(vector);
        let (signal, code, address) = match vector {
            0 => (SIGFPE, 1, frame.rip),
            1 => (SIGTRAP, 2, frame.rip),
            3 => (SIGTRAP, FROM_KERNEL, 0),
            6 => (SIGILL, 2, frame.rip),
            11 | 12 => (SIGBUS, FROM_KERNEL, 0),
            14 => (SIGSEGV, 1 + (error & 1) as i32, Cr2::read_raw()),
            16 => (SIGFPE, float_code(fpu::x87_exceptions()), frame.rip),
            19 => (SIGFPE, float_code(fpu::sse_exceptions()), frame.rip),
            17 => (SIGBUS, 1, 0),
            _ => (SIGSEGV, FROM_KERNEL, 0),
        };
        let what = match vector {
            14 => format!("{name}: {}", page_fault_cause(error)).into(),
            _ => name.into(),
        };
        let touched = (vector == 14).then_some(address);
        Fault { what, touched, signal, code, address, vector, error }
    }

    /// The touched address and the kind of access, if the fault is a page fault.
    pub fn touch(&self) -> Option<(u64, Touch)> {
        let touch = match (self.error & 16 != 0, self.error & 2 != 0) {
            (true, _) => Touch::Execute,
            (false, true) => Touch::Write,
            (false, false) => Touch::Read,
        };
        self.touched.map(|address| (address, touch))
    }

    /// An invalid instruction that begins with these bytes: names the extension that it is of, if
    /// the processor lacks that.
    pub fn of_code(mut self, code: [u8; CODE_BYTES]) -> Fault {
        // Prefixes of segments and of the address size may stand before those of AVX.
        const PREFIXES: [u8; 7] = [0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x67];
        let first = code.into_iter().find(|byte| !PREFIXES.contains(byte));
        let lacks = match first {
            Some(EVEX) => !extended_state::has_avx512(),
            Some(0xc4 | 0xc5) => !extended_state::has_avx(),
            _ => false,
        };
        if lacks {
            let name = vectors::exception_name(self.vector);
            let extension = if first == Some(EVEX) { "AVX-512" } else { "AVX" };
            self.what = format!("{name}: {extension} instruction: this processor has none").into();
        }
        self
    }

    /// A fault that is no exception: SIGSEGV.
    pub fn of_kind(what: &'static str, touched: Option<u64>) -> Fault {
        let (signal, code) = (SIGSEGV, FROM_KERNEL);
        Fault { what: what.into(), touched, signal, code, ..Fault::default() }
    }

    /// Changes a page fault to a violation of its area's access, for an area whose page may not be
    /// present.
    pub fn in_area(mut self) -> Fault {
        self.code = 2;
        let name = vectors::exception_name(self.vector);
        self.what = format!("{name}: {}", page_fault_cause(self.error | 1)).into();
        self
    }

    /// Changes the fault to an access to a file's mapping beyond the end of the file: SIGBUS.
    pub fn behind_file(self) -> Fault {
        let what = "access to a mapping behind the end of its file".into();
        Fault { what, signal: SIGBUS, code: 2, ..self }
    }

    /// The description for a handler of its signal: `siginfo_t`.
    pub fn info(&self) -> SignalInfo {
        let mut info = SignalInfo::default();
        info[0] = self.signal.into();
        info[1] = u64::from(self.code as u32);
        info[2] = self.address;
        info
    }
}

/// `si_code` of the unmasked exceptions, whose bits are those of the status word and of MXCSR
/// (Intel SDM volume 1, "x87 FPU Status Word"): `FPE_FLTINV`, `…DIV`, `…OVF`, `…UND` (denormals
/// too), `…RES`.
fn float_code(exceptions: u32) -> i32 {
    const CODES: [(u32, i32); 5] = [(0x01, 7), (0x04, 3), (0x08, 4), (0x12, 5), (0x20, 6)];
    CODES.iter().find(|(bits, _)| exceptions & bits != 0).map_or(0, |(_, code)| *code)
}

/// Cause of a page fault, from its error code (Intel SDM volume 3, "Page-Fault Exceptions").
fn page_fault_cause(error: u64) -> &'static str {
    match (error & 1 != 0, error & 16 != 0, error & 2 != 0) {
        (false, true, _) => "execution of unmapped memory",
        (false, false, true) => "write to unmapped memory",
        (false, false, false) => "read of unmapped memory",
        (true, true, _) => {
            "execution of memory without execute permission: for code that it writes add --jit"
        }
        (true, false, true) => "write to memory without write permission",
        (true, false, false) => "read of memory without read permission",
    }
}
