//! Output and files.

use alloc::vec::Vec;
use core::fmt::{self, Write};

use crate::sys;

/// An output stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Output {
    /// Standard output.
    Out = 1,
    /// Standard error.
    Err = 2,
}

impl Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write_all(*self as u64, text)
    }
}

/// A file that is written. Dropping it closes it.
#[derive(Debug)]
pub struct File {
    fd: u64,
}

impl File {
    /// Creates a file, or opens an existing one: truncates it, or appends to it.
    ///
    /// # Errors
    /// The path's folder does not exist, or the path cannot be written.
    pub fn create(path: &str, appends: bool) -> Result<File, FileError> {
        const WRITE_ONLY_CREATE: u64 = 0o101;
        const TRUNCATE: u64 = 0o1000;
        const APPEND: u64 = 0o2000;
        const MODE: u64 = 0o644;
        let flags = WRITE_ONLY_CREATE | if appends { APPEND } else { TRUNCATE };
        let mut name = Vec::from(path);
        name.push(0);
        // SAFETY: the path is a string that ends in a zero byte.
        let fd = unsafe { sys::call(sys::OPEN, [name.as_ptr() as u64, flags, MODE, 0, 0, 0]) };
        u64::try_from(fd).map(|fd| File { fd }).map_err(|_| FileError(-fd))
    }
}

impl Write for File {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write_all(self.fd, text)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the call touches no memory of the program.
        unsafe { sys::call(sys::CLOSE, [self.fd, 0, 0, 0, 0, 0]) };
    }
}

/// Writes all of a text to a descriptor.
fn write_all(fd: u64, text: &str) -> fmt::Result {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let arguments = [fd, rest.as_ptr() as u64, rest.len() as u64, 0, 0, 0];
        // SAFETY: the buffer is valid for reading its length.
        let written = unsafe { sys::call(sys::WRITE, arguments) };
        let written = usize::try_from(written).map_err(|_| fmt::Error)?;
        rest = rest.get(written..).ok_or(fmt::Error)?;
    }
    Ok(())
}

/// Writes a line by one call, so that lines of several programs do not mix. Write errors are
/// ignored.
pub fn print_line(mut output: Output, text: fmt::Arguments) {
    let mut line = alloc::fmt::format(text);
    line.push('\n');
    let _ = output.write_str(&line);
}

/// Prints a line to standard output.
#[macro_export]
macro_rules! println {
    ($($argument:tt)*) => {
        $crate::io::print_line($crate::io::Output::Out, format_args!($($argument)*))
    };
}

/// Prints a line to standard error.
#[macro_export]
macro_rules! eprintln {
    ($($argument:tt)*) => {
        $crate::io::print_line($crate::io::Output::Err, format_args!($($argument)*))
    };
}

/// Failure to open or read a file; with Linux's error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileError(pub i64);

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match sys::errno::name(self.0) {
            Some(name) => write!(f, "the file cannot be opened or read: {name}"),
            None => write!(f, "the file cannot be opened or read: error {}", self.0),
        }
    }
}

impl core::error::Error for FileError {}

/// Reads a whole file.
///
/// # Errors
/// The file does not exist or cannot be read.
pub fn read_file(path: &str) -> Result<Vec<u8>, FileError> {
    let mut name = Vec::from(path);
    name.push(0);
    let check = |result: i64| u64::try_from(result).map_err(|_| FileError(-result));
    // SAFETY: the path is a string that ends in a zero byte.
    let fd = check(unsafe { sys::call(sys::OPEN, [name.as_ptr() as u64, 0, 0, 0, 0, 0]) })?;
    let seek = |offset: u64, whence: u64| {
        // SAFETY: the call touches no memory of the program.
        check(unsafe { sys::call(sys::LSEEK, [fd, offset, whence, 0, 0, 0]) })
    };
    let length = seek(0, 2)? as usize;
    seek(0, 0)?;
    let mut bytes = alloc::vec![0; length];
    let mut done = 0;
    while done < length {
        let rest = &mut bytes[done..];
        let arguments = [fd, rest.as_mut_ptr() as u64, rest.len() as u64, 0, 0, 0];
        // SAFETY: the buffer is valid for writing its length.
        match check(unsafe { sys::call(sys::READ, arguments) })? {
            0 => break,
            read => done += read as usize,
        }
    }
    bytes.truncate(done);
    // SAFETY: the call touches no memory of the program.
    check(unsafe { sys::call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]) })?;
    Ok(bytes)
}
