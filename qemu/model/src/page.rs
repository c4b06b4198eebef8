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

    /// The binary logarithm of the pages of 4 KiB in it.
    pub(crate) const fn shift(self) -> u32 {
        9 * self as u32
    }

    /// The bits of the number of a page of 4 KiB that say which one of a page of this size it is.
    pub(crate) const fn within(self) -> u64 {
        (1 << self.shift()) - 1
    }
}

/// Where the sizes of pages are found. Both may only change with a flush of the translations.
#[derive(Clone, Copy, Debug)]
pub struct PageSizes {
    /// The size of the page at an address, in the address space of `tables`.
    pub of: fn(tables: u64, address: u64) -> PageSize,
    /// What tells the function which page tables are in use.
    pub tables: u64,
}

impl PageSizes {
    /// Every page is one of 4 KiB.
    pub(crate) const SMALL: PageSizes = PageSizes { of: |_, _| PageSize::Small, tables: 0 };

    pub(crate) fn at(self, address: u64) -> PageSize {
        (self.of)(self.tables, address)
    }
}
