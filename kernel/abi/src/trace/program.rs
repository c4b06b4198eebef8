//! The trace's records of a program's code and threads, by which the host names them.

use serde::{Deserialize, Serialize};

use crate::{
    Malformed,
    record::{Field, FieldType, Form, RecordType, place, record},
};

record! {
    /// A program mapped code of a file of the ramdisk, as its interpreter does for each library.
    /// The code of the program itself and of its interpreter is loaded before the program starts,
    /// and has no record.
    MapRecord = 12 "map", stamp tsc "TSC when the file was mapped." {
        /// The CPU.
        cpu: u16,
        /// The program.
        program: u32,
        /// The first address.
        address: u64 as Address,
        /// The length in bytes: whole pages.
        bytes: u64,
        /// Offset of the first byte in the file.
        offset: u64,
        /// The file, by the offset of its content in the ramdisk.
        file: u64,
    }
}

record! {
    /// A thread named itself (`PR_SET_NAME`). Before that it has no name of its own.
    ThreadNameRecord = 13 "thread-name", stamp tsc "TSC when the thread was named." {
        /// The CPU.
        cpu: u16,
        /// The program.
        program: u32,
        /// The thread, by its number in the system.
        thread: u32,
        /// The first 8 bytes of the name, the first byte lowest; a zero byte ends a name.
        start: u64,
        /// The other 8 bytes.
        end: u64,
    }
}

impl ThreadNameRecord {
    /// Makes the record of a thread of a program.
    pub fn new(program: u32, thread: u32, name: [u8; 16]) -> ThreadNameRecord {
        let word = |at: usize| {
            let bytes = name.iter().skip(at).take(size_of::<u64>()).rev();
            bytes.fold(0, |word, byte| word << u8::BITS | u64::from(*byte))
        };
        ThreadNameRecord { tsc: 0, cpu: 0, program, thread, start: word(0), end: word(8) }
    }

    /// The bytes of the name, with zero bytes behind it.
    pub fn name(&self) -> [u8; 16] {
        (u128::from(self.end) << u64::BITS | u128::from(self.start)).to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_in_two_words() {
        let name = *b"a writer of it\0\0";
        let record = ThreadNameRecord::new(2, 3, name);
        assert_eq!(record.start.to_le_bytes(), *b"a writer");
        assert_eq!(record.name(), name);
    }
}
