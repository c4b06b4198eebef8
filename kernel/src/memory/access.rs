//! What programs may do with their pages.

use x86_64::structures::paging::PageTableFlags as Flags;

/// What a program may do with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAccess {
    /// Nothing. The page keeps its content.
    Nothing,
    /// Read.
    Read,
    /// Read and write.
    Write,
    /// Read and execute.
    Execute,
    /// Read, write and execute.
    All,
}

impl PageAccess {
    /// The flags of a page-table entry.
    pub(super) fn flags(self) -> Flags {
        let common = Flags::PRESENT | Flags::USER_ACCESSIBLE;
        match self {
            // An entry with an address is a page, present or not ([`super::space::AddressSpace`]).
            PageAccess::Nothing => Flags::USER_ACCESSIBLE | Flags::NO_EXECUTE,
            PageAccess::Read => common | Flags::NO_EXECUTE,
            PageAccess::Write => common | Flags::WRITABLE | Flags::NO_EXECUTE,
            PageAccess::Execute => common,
            PageAccess::All => common | Flags::WRITABLE,
        }
    }

    /// Returns whether the program may write.
    pub fn writes(self) -> bool {
        matches!(self, PageAccess::Write | PageAccess::All)
    }

    /// Returns whether the program may execute.
    pub(super) fn executes(self) -> bool {
        matches!(self, PageAccess::Execute | PageAccess::All)
    }
}
