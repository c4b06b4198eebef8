//! The guest's page tables, as far as they are needed for the sizes of pages.

/// CR4.LA57: page tables have five levels.
const CR4_LA57: u64 = 1 << 12;

/// A vCPU's page tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageTables {
    /// The address of the top-level table.
    top: u64,
    has_five_levels: bool,
}

impl PageTables {
    const PRESENT: u64 = 1;
    const IS_PAGE: u64 = 1 << 7;
    const TABLE: u64 = 0xf_ffff_ffff_f000;
    /// Flag in the word of [`Self::word`], next to the address of the top-level table.
    const FIVE_LEVELS: u64 = 1;

    /// Records that the guest loads CR3 with the page number of a top-level table.
    pub(crate) fn load(&mut self, page: u64) {
        self.top = page << 12 & Self::TABLE;
    }

    /// Records the guest's write of CR4.
    pub(crate) fn set_control(&mut self, cr4: u64) {
        self.has_five_levels = cr4 & CR4_LA57 != 0;
    }

    /// Packs the page tables into a word, for a caller that can store no more.
    pub(crate) fn word(self) -> u64 {
        self.top | if self.has_five_levels { Self::FIVE_LEVELS } else { 0 }
    }

    /// Unpacks the page tables from the word of [`Self::word`].
    pub(crate) fn of_word(word: u64) -> PageTables {
        PageTables { top: word & Self::TABLE, has_five_levels: word & Self::FIVE_LEVELS != 0 }
    }

    /// The binary logarithm of the size of the page at `address`; 12 if none is mapped. `read`
    /// returns the low half of an entry (SDM volume 3, "4-Level Paging and 5-Level Paging").
    pub(crate) fn size_bits(self, address: u64, read: impl Fn(u64) -> Option<u32>) -> u32 {
        let mut table = self.top;
        for shift in [48, 39, 30, 21].into_iter().skip(usize::from(!self.has_five_levels)) {
            let at = table + 8 * (address >> shift & 0x1ff);
            let (Some(low), Some(high)) = (read(at), read(at + 4)) else { break };
            let entry = u64::from(high) << 32 | u64::from(low);
            if entry & Self::PRESENT == 0 {
                break;
            }
            if shift < 39 && entry & Self::IS_PAGE != 0 {
                return shift;
            }
            table = entry & Self::TABLE;
        }
        12
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Page tables of a test, one per level, from 1000H on: the first entry of each leads to the
    /// next; the second entry of the third- and second-level tables is a page.
    fn read(at: u64) -> Option<u32> {
        let entry = match at & !7 {
            0x1000 => 0x2000 | 1,
            0x2000 => 0x3000 | 1,
            0x3000 => 0x4000 | 1,
            0x3008 => 0x4000_0000 | 0x81,
            0x4000 => 0x6000 | 1,
            0x4008 => 0x20_0000 | 0x81,
            _ => 0_u64,
        };
        Some((entry >> (8 * (at & 7))) as u32)
    }

    const SIZES: [(u64, u32); 4] =
        [(0x1234, 12), (0x20_1234, 21), (0x4000_1234, 30), (0x80_0000, 12)];

    #[test]
    fn pages_have_the_size_of_the_table_that_maps_them() {
        let mut tables = PageTables::default();
        tables.load(2);
        for (address, bits) in SIZES {
            assert_eq!(tables.size_bits(address, read), bits, "{address:#x}");
        }
        assert_eq!(tables.size_bits(0x20_1234, |_| None), 12);
    }

    #[test]
    fn five_levels_have_one_more_table() {
        let mut tables = PageTables::default();
        tables.set_control(CR4_LA57 | 1 << 5);
        tables.load(1);
        for (address, bits) in SIZES {
            assert_eq!(tables.size_bits(address, read), bits, "{address:#x}");
        }
        assert_eq!(PageTables::of_word(tables.word()), tables);
        tables.set_control(1 << 5);
        assert_eq!(PageTables::of_word(tables.word()), tables);
        assert_eq!(tables.size_bits(0x4000_1234, read), 12);
    }
}
