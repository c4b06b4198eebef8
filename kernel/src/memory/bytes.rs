//! Copying between the kernel and a program's memory.
//!
//! Pages that the program has not touched yet are allocated, as if it touched them now.

use x86_64::structures::paging::PageTableFlags as Flags;

use super::{
    space::SpaceError,
    user::{Touch, UserMemory},
};

impl UserMemory {
    /// Copies the program's bytes at `address` into `to`.
    ///
    /// # Errors
    /// Some of them are not the program's to read, or no memory is left.
    pub fn read(&mut self, address: u64, to: &mut [u8]) -> Result<(), SpaceError> {
        let mut done = 0;
        while done < to.len() {
            let (view, room) = self.view(address, done, to.len(), Touch::Read)?;
            // SAFETY: `view` returns `room` readable bytes of one mapped frame; `to` is borrowed
            // exclusively.
            unsafe { view.copy_to_nonoverlapping(to[done..].as_mut_ptr(), room) };
            done += room;
        }
        Ok(())
    }

    /// Reads the program's words at `address`, little-endian, aligned or not.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_words<const N: usize>(&mut self, address: u64) -> Result<[u64; N], SpaceError> {
        let mut bytes = [[0; 8]; N];
        self.read(address, bytes.as_flattened_mut())?;
        Ok(bytes.map(u64::from_le_bytes))
    }

    /// Copies the program's words at `address` into `to`, or, if some are not the program's to
    /// read, those before them. Returns how many.
    pub fn read_some<const N: usize>(&mut self, address: u64, to: &mut [u64; N]) -> usize {
        if let Ok(words) = self.read_words(address) {
            *to = words;
            return N;
        }
        for (n, word) in to.iter_mut().enumerate() {
            let at = address.checked_add((n * size_of::<u64>()) as u64);
            match at.map(|at| self.read_words(at)) {
                Some(Ok([read])) => *word = read,
                _ => return n,
            }
        }
        N
    }

    /// Writes words to the program's memory at `address`.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_words<const N: usize>(
        &mut self,
        address: u64,
        words: [u64; N],
    ) -> Result<(), SpaceError> {
        self.write(address, words.map(u64::to_le_bytes).as_flattened())
    }

    /// Copies `from` to the program's memory at `address`.
    ///
    /// # Errors
    /// Some of it is not the program's to write, or no memory is left.
    pub fn write(&mut self, address: u64, from: &[u8]) -> Result<(), SpaceError> {
        let mut done = 0;
        while done < from.len() {
            let (view, room) = self.view(address, done, from.len(), Touch::Write)?;
            // SAFETY: `view` returns `room` bytes of one mapped frame that the program may write;
            // `from` is the kernel's.
            unsafe { view.copy_from_nonoverlapping(from[done..].as_ptr(), room) };
            done += room;
        }
        Ok(())
    }

    fn view(
        &mut self,
        base: u64,
        done: usize,
        total: usize,
        touch: Touch,
    ) -> Result<(*mut u8, usize), SpaceError> {
        let needed = if touch == Touch::Write { Flags::WRITABLE } else { Flags::empty() };
        self.space.view(base, done, total, needed).or_else(|_| {
            let address = base.checked_add(done as u64).ok_or(SpaceError::BadAddress)?;
            self.page_in(address, touch)?;
            self.space.view(base, done, total, needed)
        })
    }
}
