//! Record of the instructions and accesses of overflow interrupt handlers inside regions and
//! sessions, one line per instruction, for `cargo xtask bench switch`. The record continues with
//! the kernel's instructions until ring 3 resumes, and with ring 3's first instruction.
//!
//! The line of an instruction has its virtual address and the binary logarithm of the size of its
//! page. A line of an access by that instruction follows: a blank, the virtual address, the number
//! of bytes, the binary logarithm of the page's size, and `device` if a device answers the access,
//! which no cache holds. Addresses are hexadecimal. The processor's own accesses to deliver the
//! interrupt are not in the file.

use std::{
    ffi::{c_uint, c_void},
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    ffi,
    guest::read_physical,
    vcpu::{self, Vcpu},
};

/// The file, and the first error in writing it.
struct HandlersFile {
    file: BufWriter<File>,
    path: PathBuf,
    written: io::Result<()>,
}

static HANDLERS_FILE: Mutex<Option<HandlersFile>> = Mutex::new(None);

fn handlers_file() -> MutexGuard<'static, Option<HandlersFile>> {
    HANDLERS_FILE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(path: &Path, error: &io::Error) -> String {
    format!("handlers={}: {error}", path.display())
}

/// Creates the file.
pub(crate) fn create(path: &Path) -> Result<(), String> {
    let file = File::create(path).map_err(|error| failed(path, &error))?;
    let path = path.to_owned();
    *handlers_file() = Some(HandlersFile { file: BufWriter::new(file), path, written: Ok(()) });
    Ok(())
}

/// Completes the file.
pub(crate) fn finish() -> Result<(), String> {
    let Some(HandlersFile { mut file, path, written }) = handlers_file().take() else {
        return Ok(());
    };
    written.and_then(|()| file.flush()).map_err(|error| failed(&path, &error))
}

type OnInstruction = extern "C" fn(c_uint, *mut c_void);

/// Registers the callbacks of the kernel's instruction at `pc`, if handlers are recorded.
pub(crate) fn follow(insn: *mut ffi::TbInsn, pc: u64) {
    if handlers_file().is_none() {
        return;
    }
    register(insn, pc, on_instruction);
    // SAFETY: the caller's handle is the translation callback's.
    unsafe {
        ffi::qemu_plugin_register_vcpu_mem_cb(
            insn,
            on_access,
            ffi::CB_NO_REGS,
            ffi::MEM_R | ffi::MEM_W,
            std::ptr::null_mut(),
        );
    }
}

/// Registers the callback of the first instruction of a block of ring 3, at `pc`, if handlers are
/// recorded.
pub(crate) fn follow_program(insn: *mut ffi::TbInsn, pc: u64) {
    if handlers_file().is_some() {
        register(insn, pc, on_program);
    }
}

fn register(insn: *mut ffi::TbInsn, pc: u64, callback: OnInstruction) {
    let word = pc as *mut c_void;
    // SAFETY: the caller's handle is the translation callback's; the word is no pointer.
    unsafe {
        ffi::qemu_plugin_register_vcpu_insn_exec_cb(insn, callback, ffi::CB_NO_REGS, word);
    }
}

/// Called before an instruction of the kernel runs.
extern "C" fn on_instruction(vcpu: c_uint, pc: *mut c_void) {
    let (vcpu, pc) = (vcpu::current(vcpu), pc as u64);
    if vcpu.is_followed {
        let page = vcpu.core.page_tables().size_bits(pc, read_physical);
        write(format_args!("{pc:x} {page}"));
    }
}

/// Called when ring 3 resumes.
extern "C" fn on_program(vcpu: c_uint, pc: *mut c_void) {
    on_instruction(vcpu, pc);
    vcpu::current(vcpu).is_followed = false;
}

/// Called when an instruction accesses memory.
extern "C" fn on_access(vcpu: c_uint, info: u32, address: u64, _: *mut c_void) {
    let vcpu = vcpu::current(vcpu);
    if vcpu.is_followed {
        let page = vcpu.core.page_tables().size_bits(address, read_physical);
        // SAFETY: `info` is this callback's.
        let bytes = 1_u32 << unsafe { ffi::qemu_plugin_mem_size_shift(info) };
        let device = if is_device(info, address) { " device" } else { "" };
        write(format_args!(" {address:x} {bytes} {page}{device}"));
    }
}

/// Returns whether a device answers the callback's access.
fn is_device(info: u32, address: u64) -> bool {
    // SAFETY: `info` and `address` are this callback's, in which QEMU allows the call.
    let found = unsafe { ffi::qemu_plugin_get_hwaddr(info, address) };
    // SAFETY: QEMU's handle is valid up to the next such call.
    !found.is_null() && unsafe { ffi::qemu_plugin_hwaddr_is_io(found) }
}

impl Vcpu {
    pub(crate) fn note_handler(&mut self, to_pc: u64) {
        if let Some(depth) = &mut self.handler_depth {
            *depth += 1;
        } else if self.expected_handler == Some(to_pc) {
            self.expected_handler = None;
            if self.truth.inside() {
                self.handler_depth = Some(0);
                self.is_followed = true;
                let (profile, clock) = (*self.pmu.profile(), self.core.clock());
                self.truth.begin_handler(self.core.counts(), clock, &profile);
            }
        }
    }

    #[cold]
    pub(crate) fn handler_returned(&mut self) {
        match self.handler_depth {
            None => {}
            Some(0) => {
                self.handler_depth = None;
                let (profile, clock) = (*self.pmu.profile(), self.core.clock());
                self.truth.end_handler(self.core.counts(), clock, &profile);
            }
            Some(depth) => self.handler_depth = Some(depth - 1),
        }
    }
}

fn write(line: std::fmt::Arguments) {
    if let Some(HandlersFile { file, written, .. }) = handlers_file().as_mut()
        && written.is_ok()
    {
        *written = writeln!(file, "{line}");
    }
}
