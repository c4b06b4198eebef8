//! What overflow interrupts' handlers execute and access inside regions and sessions, one line for
//! each: for `cargo xtask bench switch`. What the kernel does next, until ring 3 goes on, and ring
//! 3's first instruction are in the file too.
//!
//! An instruction's line is its virtual address and, of the page there, the binary logarithm of its
//! size. An access of that instruction follows it: a blank, its virtual address, its bytes, the
//! same of its page, and `device` if a device answers it, which no cache holds. Addresses are
//! hexadecimal. What the processor itself accesses to deliver the interrupt is not in the file.

use std::{
    ffi::{c_uint, c_void},
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    ffi,
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

/// Registers the callback of the first instruction of a block of ring 3, at `pc`, likewise.
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

/// An instruction of the kernel is about to run.
extern "C" fn on_instruction(vcpu: c_uint, pc: *mut c_void) {
    let (vcpu, pc) = (vcpu::current(vcpu), pc as u64);
    if vcpu.is_followed {
        let page = page_bits(vcpu, pc);
        write(format_args!("{pc:x} {page}"));
    }
}

/// Ring 3 goes on.
extern "C" fn on_program(vcpu: c_uint, pc: *mut c_void) {
    on_instruction(vcpu, pc);
    vcpu::current(vcpu).is_followed = false;
}

/// An instruction accesses memory.
extern "C" fn on_access(vcpu: c_uint, info: u32, address: u64, _: *mut c_void) {
    let vcpu = vcpu::current(vcpu);
    if vcpu.is_followed {
        let page = page_bits(vcpu, address);
        // SAFETY: `info` is this callback's.
        let bytes = 1_u32 << unsafe { ffi::qemu_plugin_mem_size_shift(info) };
        let device = if is_device(info, address) { " device" } else { "" };
        write(format_args!(" {address:x} {bytes} {page}{device}"));
    }
}

/// Returns whether a device answers this access, which is the callback's.
fn is_device(info: u32, address: u64) -> bool {
    // SAFETY: `info` and `address` are this callback's, in which QEMU allows the call.
    let found = unsafe { ffi::qemu_plugin_get_hwaddr(info, address) };
    // SAFETY: QEMU's handle is valid up to the next such call.
    !found.is_null() && unsafe { ffi::qemu_plugin_hwaddr_is_io(found) }
}

fn write(line: std::fmt::Arguments) {
    if let Some(HandlersFile { file, written, .. }) = handlers_file().as_mut()
        && written.is_ok()
    {
        *written = writeln!(file, "{line}");
    }
}

/// The binary logarithm of the size of the page at a virtual address.
fn page_bits(vcpu: &mut Vcpu, address: u64) -> u32 {
    let top = vcpu.space << 12;
    let registers = &mut vcpu.registers;
    size_bits(top, address, |entry| registers.read_physical(entry))
}

/// The binary logarithm of the size of the page at `address`, by the page tables of four levels
/// below `top`. `read` returns the low half of an entry (SDM volume 3, "4-Level Paging").
fn size_bits(top: u64, address: u64, mut read: impl FnMut(u64) -> Option<u32>) -> u32 {
    const PRESENT: u64 = 1;
    const IS_PAGE: u64 = 1 << 7;
    const TABLE: u64 = 0xf_ffff_ffff_f000;
    let mut table = top;
    for shift in [39, 30, 21] {
        let at = table + 8 * (address >> shift & 0x1ff);
        let (Some(low), Some(high)) = (read(at), read(at + 4)) else { break };
        let entry = u64::from(high) << 32 | u64::from(low);
        if entry & PRESENT == 0 {
            break;
        }
        if shift < 39 && entry & IS_PAGE != 0 {
            return shift;
        }
        table = entry & TABLE;
    }
    12
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_the_size_of_the_table_that_maps_them() {
        // One table of each level: the first entry of each leads to the next, the second of the
        // lower ones is a page.
        let entry = |at: u64| match at {
            0x1000 => 0x2000 | 1,
            0x2000 => 0x3000 | 1,
            0x2008 => 0x4000_0000 | 0x81,
            0x3000 => 0x5000 | 1,
            0x3008 => 0x20_0000 | 0x81,
            _ => 0_u64,
        };
        let read = |at: u64| Some((entry(at & !7) >> (8 * (at & 7))) as u32);
        for (address, bits) in [(0x1234, 12), (0x20_1234, 21), (0x4000_1234, 30), (0x80_0000, 12)] {
            assert_eq!(size_bits(0x1000, address, read), bits, "{address:#x}");
        }
    }
}
