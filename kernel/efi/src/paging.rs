//! Four-level and five-level paging, and the switch between them.
//!
//! A processor changes the number of levels only while paging is disabled, and long mode requires
//! paging (Intel SDM volume 3, "Enabling Intel 64 Architecture's Paging" and CR4.LA57). Therefore
//! the switch goes through 32-bit mode, in a page below 4 GiB that all modes reach at the same
//! address.

use core::{arch::global_asm, mem, ptr};

use x86_64::{
    registers::control::{Cr3, Cr4, Cr4Flags},
    structures::paging::{PageTable, PageTableFlags},
};

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;

/// Returns whether paging has five levels.
pub fn has_five_levels() -> bool {
    Cr4::read().contains(Cr4Flags::L5_PAGING)
}

/// Memory below 4 GiB for the code that switches, followed by the root of the page tables.
#[derive(Debug)]
pub struct Switch {
    code: *mut u8,
}

impl Switch {
    /// Copies the code to `memory`.
    ///
    /// # Safety
    /// `memory` has two pages below 4 GiB that only this value uses, that can be executed, and that
    /// are mapped at their physical addresses.
    pub unsafe fn new(memory: *mut u8) -> Switch {
        // SAFETY: 1. the symbols are the bounds of the code below, which is shorter than a page;
        // 2. a condition of this function.
        unsafe {
            let bytes = (&raw const switch_end).byte_offset_from_unsigned(&raw const switch_begin);
            ptr::copy_nonoverlapping(&raw const switch_begin, memory, bytes);
        }
        Switch { code: memory }
    }

    /// Converts to a pointer for a static; [`Self::from_raw`] is the inverse.
    pub(crate) fn into_raw(self) -> *mut u8 {
        self.code
    }

    /// # Safety
    /// `code` is from [`Self::into_raw`].
    pub(crate) unsafe fn from_raw(code: *mut u8) -> Switch {
        Switch { code }
    }

    /// Leaves five-level paging. The mappings of the first table below the root, the lower 128 TiB,
    /// stay the same.
    pub fn leave_five_levels(self) {
        let (root, _) = Cr3::read();
        // SAFETY: the firmware maps its page tables at their physical addresses.
        let top = unsafe { &*(root.start_address().as_u64() as *const PageTable) };
        // SAFETY: likewise; the first entry maps this code.
        let lower = unsafe { &*(top[0].addr().as_u64() as *const PageTable) };
        self.run(lower.clone());
    }

    /// Enters five-level paging: the current tables become the first below the new root.
    pub fn enter_five_levels(self) {
        let (root, _) = Cr3::read();
        let mut top = PageTable::new();
        let flags = PageTableFlags::PRESENT | PageTableFlags::WRITABLE;
        top[0].set_addr(root.start_address(), flags);
        self.run(top);
    }

    /// Changes the number of levels, with `root` as the new root.
    fn run(self, root: PageTable) {
        // SAFETY: 1. the second page is for the root (`new`), and aligned as one; 2. the code keeps
        // what the calling convention says, and both pages are below 4 GiB; 3. under the new root
        // the same addresses lead to the same memory.
        unsafe {
            let place = self.code.add(PAGE_BYTES).cast::<PageTable>();
            place.write(root);
            let switch: extern "sysv64" fn(u32) = mem::transmute(self.code);
            switch(place as u32);
        }
    }
}

unsafe extern "C" {
    static switch_begin: u8;
    static switch_end: u8;
}

// fn(root: u32), System V, position independent; it writes to its own page. While paging is
// disabled the stack is not used, because it can be above 4 GiB, and an NMI would be fatal, as in
// every system that switches this way. EFER.LME stays set, so that enabling paging enters long mode
// again.
global_asm!(
    ".global switch_begin, switch_end",
    ".set CODE_32, 8",
    ".set DATA, 16",
    ".set CODE_64, 24",
    ".p2align 4",
    "switch_begin:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "pushfq",
    "cli",
    "lea rax, [rip + saved]",
    "mov [rax], rsp",
    "mov [rax + 8], cs",
    "mov [rax + 10], ss",
    "mov [rax + 12], ds",
    "mov [rax + 14], es",
    "sgdt [rax + 16]",
    "lea rcx, [rip + gdt]",
    "mov [rip + gdt_pointer + 2], rcx",
    "lgdt [rip + gdt_pointer]",
    "lea rcx, [rip + back]",
    "mov [rax + 26], ecx",
    "lea rcx, [rip + without_paging]",
    "push CODE_32",
    "push rcx",
    "retfq",
    ".code32",
    "without_paging:",
    "mov ecx, DATA",
    "mov ds, ecx",
    "mov es, ecx",
    "mov ss, ecx",
    "mov ecx, cr0",
    "and ecx, 0x7fffffff", // PG
    "mov cr0, ecx",
    "mov ecx, cr4",
    "xor ecx, 0x1000", // LA57
    "mov cr4, ecx",
    "mov cr3, edi",
    "mov ecx, cr0",
    "or ecx, 0x80000000", // PG
    "mov cr0, ecx",
    "jmp fword ptr [eax + 26]",
    ".code64",
    "back:",
    "lea rax, [rip + saved]",
    "mov rsp, [rax]",
    "lgdt [rax + 16]",
    "movzx ecx, word ptr [rax + 8]",
    "push rcx",
    "lea rcx, [rip + with_selectors]",
    "push rcx",
    "retfq",
    "with_selectors:",
    "mov ss, [rax + 10]",
    "mov ds, [rax + 12]",
    "mov es, [rax + 14]",
    "popfq",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    ".p2align 3",
    "gdt:",
    ".quad 0",
    ".quad 0x00cf9b000000ffff",
    ".quad 0x00cf93000000ffff",
    ".quad 0x00af9b000000ffff",
    "gdt_pointer:",
    ".word 31",
    ".quad 0",
    ".p2align 3",
    // RSP; CS, SS, DS, ES; the firmware's GDTR; the far address of `back`.
    "saved:",
    ".skip 26",
    ".skip 4",
    ".word CODE_64",
    "switch_end:",
);
