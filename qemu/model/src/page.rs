//! Sizes of pages.

/// The size of a page of the guest's page tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PageSize {
    /// 4 KiB.
    #[default]
    Small,
    /// 2 MiB.
    Large,
    /// 1 GiB.
    Huge,
}

impl PageSize {
    /// The sizes of large pages.
    pub(crate) const LARGE: [PageSize; 2] = [PageSize::Large, PageSize::Huge];

    /// The size with this binary logarithm of its bytes, 12, 21 or 30.
    pub const fn of_bits(bits: u32) -> Option<PageSize> {
        match bits {
            12 => Some(PageSize::Small),
            21 => Some(PageSize::Large),
            30 => Some(PageSize::Huge),
            _ => None,
        }
    }

    /// The binary logarithm of the number of 4 KiB pages in a page of this size.
    pub(crate) const fn shift(self) -> u32 {
        9 * self as u32
    }

    /// The bits of a 4 KiB page number that select a 4 KiB page within a page of this size.
    pub(crate) const fn within(self) -> u64 {
        (1 << self.shift()) - 1
    }
}

/// Source of page sizes. Both fields may only change together with a flush of the translations.
#[derive(Clone, Copy, Debug)]
pub struct PageSizes {
    /// Returns the size of the page at an address, in the address space of `tables`.
    pub of: fn(tables: u64, address: u64) -> PageSize,
    /// The page tables in use: the function's first argument.
    pub tables: u64,
}

impl PageSizes {
    /// A source for which every page has 4 KiB.
    pub(crate) const SMALL: PageSizes = PageSizes { of: |_, _| PageSize::Small, tables: 0 };

    pub(crate) fn at(self, address: u64) -> PageSize {
        (self.of)(self.tables, address)
    }
}
