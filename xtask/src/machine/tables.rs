//! ACPI tables of machines whose firmware reports wrong table lengths (ACPI 6.5, 5.2 "ACPI System
//! Description Tables"), or has a serial port as its console.

/// Bytes of the pointer to the tables, of a table's header, and of the list of four.
const POINTER: usize = 64;
const HEADER: usize = 36;
/// Bytes reserved for each table.
const PLACE: usize = 512;
/// The port of the power-management timer of QEMU's machine `pc`.
const TIMER_PORT: u32 = 0x608;

/// ACPI tables for two processors, with a timer, and with one fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// No fault.
    Right,
    /// A processor's entry has no length.
    EntryWithoutLength,
    /// A processor's entry ends behind its table.
    EntryBehindTheEnd,
    /// The table of processors has no length.
    TableWithoutLength,
    /// The table of processors has 4 GiB.
    EndlessTable,
    /// The list of tables is shorter than its header.
    ShortList,
    /// The list of tables has 4 GiB.
    EndlessList,
    /// The list of tables is far behind the memory.
    ListNowhere,
    /// A table is far behind the memory.
    TableNowhere,
    /// The table with the timer ends before it.
    ShortTimerTable,
    /// No fault, and a serial port at this I/O port as firmware's console.
    Console(u16),
}

impl Tables {
    /// All variants that concern the lengths.
    pub const ALL: [Tables; 10] = [
        Tables::Right,
        Tables::EntryWithoutLength,
        Tables::EntryBehindTheEnd,
        Tables::TableWithoutLength,
        Tables::EndlessTable,
        Tables::ShortList,
        Tables::EndlessList,
        Tables::ListNowhere,
        Tables::TableNowhere,
        Tables::ShortTimerTable,
    ];

    /// The tables' bytes, to be placed at a physical address. The pointer comes first.
    pub(super) fn make(self, at: u64) -> Vec<u8> {
        const NOWHERE: u64 = 1 << 45;
        let place = |number: usize| at + (POINTER + number * PLACE) as u64;
        let list = if self == Tables::ListNowhere { NOWHERE } else { place(0) };
        let second = if self == Tables::TableNowhere { NOWHERE } else { place(2) };
        let console = self.console();
        let third = console.is_some().then(|| place(3));
        let addresses = [Some(place(1)), Some(second), third].into_iter().flatten();
        let addresses: Vec<u8> = addresses.flat_map(u64::to_le_bytes).collect();
        let list_bytes = match self {
            Tables::ShortList => 8,
            Tables::EndlessList => u32::MAX,
            _ => (HEADER + addresses.len()) as u32,
        };
        let mut bytes = pointer(list);
        let list = table(*b"XSDT", 1, list_bytes, &addresses);
        for table in [list, self.processors(), self.timer()].into_iter().chain(console) {
            bytes.extend(table);
            bytes.resize(bytes.len().next_multiple_of(PLACE) + POINTER % PLACE, 0);
        }
        bytes
    }

    /// The table of processors.
    fn processors(self) -> Vec<u8> {
        let entry_bytes = match self {
            Tables::EntryWithoutLength => 0,
            Tables::EntryBehindTheEnd => 200,
            _ => 8,
        };
        // The local APIC's address, flags; then a processor's kind, length, numbers, flags.
        let mut body = [0xfee0_0000_u32, 1].map(u32::to_le_bytes).concat();
        body.extend([0, 8, 0, 0, 1, 0, 0, 0]);
        body.extend([0, entry_bytes, 1, 1, 1, 0, 0, 0]);
        let bytes = match self {
            Tables::TableWithoutLength => 0,
            Tables::EndlessTable => u32::MAX,
            _ => (HEADER + body.len()) as u32,
        };
        table(*b"APIC", 3, bytes, &body)
    }

    /// The table of firmware's console: a 16550 at an I/O port (Microsoft, "Serial Port Console
    /// Redirection Table", revision 2).
    fn console(self) -> Option<Vec<u8>> {
        const BYTES: usize = 80;
        let Tables::Console(port) = self else { return None };
        let mut body = vec![0; BYTES - HEADER];
        // The address's space (1: I/O), bits of a register, first bit, bytes of an access.
        body[4..8].copy_from_slice(&[1, 8, 0, 1]);
        body[8..10].copy_from_slice(&port.to_le_bytes());
        Some(table(*b"SPCR", 2, BYTES as u32, &body))
    }

    /// The fixed table, which has the timer's port.
    fn timer(self) -> Vec<u8> {
        const BYTES: usize = 244;
        const BLOCK: usize = 76;
        const BLOCK_BYTES: usize = 91;
        let mut body = vec![0; BYTES - HEADER];
        body[BLOCK - HEADER..][..4].copy_from_slice(&TIMER_PORT.to_le_bytes());
        body[BLOCK_BYTES - HEADER] = 4;
        let bytes = if self == Tables::ShortTimerTable { 60 } else { BYTES as u32 };
        table(*b"FACP", 3, bytes, &body)
    }
}

/// The pointer to the list of tables.
fn pointer(list: u64) -> Vec<u8> {
    let mut bytes = b"RSD PTR \0TALLY \x02\0\0\0\0".to_vec();
    bytes.extend(36_u32.to_le_bytes());
    bytes.extend(list.to_le_bytes());
    bytes.resize(36, 0);
    bytes[8] = sum(&bytes[..20]);
    bytes[32] = sum(&bytes);
    bytes.resize(POINTER, 0);
    bytes
}

/// A table whose header says that it has `says` bytes.
fn table(signature: [u8; 4], revision: u8, says: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = signature.to_vec();
    bytes.extend(says.to_le_bytes());
    bytes.extend([revision, 0]);
    bytes.extend(b"TALLY TALLY   ");
    bytes.resize(HEADER, 0);
    bytes.extend(body);
    bytes[9] = sum(&bytes);
    bytes
}

/// The byte that makes the sum of all bytes 0.
fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_the_places_of_the_tables() {
        const AT: u64 = 0x40_0000;
        let bytes = Tables::Right.make(AT);
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..][..4].try_into().unwrap());
        let list = u32_at(24) as usize - AT as usize;
        assert_eq!((&bytes[list..][..4], u32_at(list + 4)), (&b"XSDT"[..], 52));
        let tables = [list + 36, list + 44].map(|at| u32_at(at) as usize - AT as usize);
        let [processors, timer] = tables;
        assert_eq!((&bytes[processors..][..4], u32_at(processors + 4)), (&b"APIC"[..], 60));
        assert_eq!((&bytes[timer..][..4], u32_at(timer + 76)), (&b"FACP"[..], TIMER_PORT));
        assert_eq!(bytes[processors..][..60].iter().fold(0_u8, |sum, b| sum.wrapping_add(*b)), 0);
    }
}
