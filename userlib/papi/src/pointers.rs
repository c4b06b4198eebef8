//! Arguments from C programs: pointers that may be null, and strings.
//!
//! Only this module dereferences them. A C program obeys the contract of `papi.h`: a pointer is
//! null, or valid for the accesses of the function.

use core::{
    ffi::{CStr, c_char},
    mem::MaybeUninit,
};

use crate::answer::Code;

/// Pointer to values that a function reads or writes.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Place<T>(*mut T);

impl<T> From<*mut T> for Place<T> {
    fn from(pointer: *mut T) -> Self {
        Place(pointer)
    }
}

impl<T: Copy> Place<T> {
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn pointer(self) -> *mut T {
        self.0
    }

    /// Reads the value.
    pub(crate) fn read(self) -> Result<T, Code> {
        self.read_at(0)
    }

    /// Reads the value with this index.
    pub(crate) fn read_at(self, index: usize) -> Result<T, Code> {
        if self.is_null() {
            return Err(Code::Inval);
        }
        // SAFETY: the pointer is not null, so it is valid for reading (see the module).
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    pub(crate) fn write(self, value: T) -> Result<(), Code> {
        self.write_at(0, value)
    }

    pub(crate) fn write_at(self, index: usize, value: T) -> Result<(), Code> {
        if self.is_null() {
            return Err(Code::Inval);
        }
        // SAFETY: the pointer is not null, so it is valid for writing (see the module).
        unsafe { self.0.add(index).write_unaligned(value) };
        Ok(())
    }

    /// Writes values from the first on; writes nothing if the pointer is null.
    pub(crate) fn fill(self, values: impl IntoIterator<Item = T>) {
        for (index, value) in values.into_iter().enumerate() {
            if self.write_at(index, value).is_err() {
                return;
            }
        }
    }
}

/// String from a C program.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Name(*const c_char);

impl Name {
    /// Returns the text. Text that is not UTF-8 is never a valid name.
    pub(crate) fn text(self) -> Result<&'static str, Code> {
        if self.0.is_null() {
            return Err(Code::Inval);
        }
        // SAFETY: the pointer is not null, so it is a string that lives during the call, which
        // keeps no reference to it (see the module).
        unsafe { CStr::from_ptr(self.0) }.to_str().map_err(|_| Code::NoEvnt)
    }
}

/// Writes as much of `text` as fits, and a zero byte.
pub(crate) fn put(room: &mut [c_char], text: &str) {
    let length = text.len().min(room.len() - 1);
    for (to, byte) in room.iter_mut().zip(&text.as_bytes()[..length]) {
        *to = *byte as c_char;
    }
    room[length] = 0;
}

/// A type whose bytes may all be 0.
///
/// # Safety
/// It consists of integers, floating-point numbers and raw pointers.
pub(crate) unsafe trait Plain: Copy {}

/// Returns a value of zeros.
pub(crate) fn zeros<T: Plain>() -> T {
    // SAFETY: zeros are a value of the type.
    unsafe { MaybeUninit::zeroed().assume_init() }
}
