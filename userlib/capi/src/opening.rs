//! Opening of sessions, and the texts of refusals and errors.

use core::ffi::{CStr, c_char};

use tally_rust::{
    Error, SessionConfig,
    session::{ConfigWords, Opened},
    sys,
};

/// Buffer for the text of an error.
pub(crate) struct Detail {
    pub(crate) text: *mut c_char,
    pub(crate) bytes: usize,
}

impl Detail {
    /// Makes the text empty.
    ///
    /// # Safety
    /// `text` is valid for writing `bytes` bytes.
    pub(crate) unsafe fn clear(&self) {
        if self.bytes > 0 {
            // SAFETY: the caller guarantees it.
            unsafe { *self.text = 0 };
        }
    }

    /// Writes the error's own message if the kernel wrote none. Returns `result`.
    ///
    /// # Safety
    /// See [`Self::clear`].
    pub(crate) unsafe fn explain(&self, result: i64) -> i64 {
        // SAFETY: the caller guarantees that there is a first byte.
        if result >= 0 || self.bytes == 0 || unsafe { *self.text } != 0 {
            return result;
        }
        // SAFETY: the function returns a string; the caller guarantees the rest.
        unsafe { self.write(CStr::from_ptr(tally_strerror(result)).to_bytes()) };
        result
    }

    /// Writes as much of a message as fits.
    ///
    /// # Safety
    /// See [`Self::clear`].
    pub(crate) unsafe fn write(&self, message: &[u8]) {
        let Some(room) = self.bytes.checked_sub(1) else { return };
        let length = message.len().min(room);
        // SAFETY: the buffer has room for the text and a zero byte; the text is not in it.
        unsafe {
            self.text.copy_from_nonoverlapping(message.as_ptr().cast(), length);
            *self.text.add(length) = 0;
        }
    }
}

/// Opens a session on a program or on CPUs.
///
/// # Safety
/// See `tally_open`.
pub(crate) unsafe fn open_by_number(
    of: u64,
    events: *const c_char,
    config: *const ConfigWords,
    detail: *mut c_char,
    detail_bytes: usize,
) -> i64 {
    // SAFETY: the caller guarantees it.
    let bytes = unsafe { CStr::from_ptr(events) }.count_bytes();
    let default = SessionConfig::default().to_words();
    let arguments = [
        events as u64,
        bytes as u64,
        if config.is_null() { &raw const default } else { config } as u64,
        detail as u64,
        detail_bytes as u64,
        of,
    ];
    let detail = Detail { text: detail, bytes: detail_bytes };
    // SAFETY: the caller guarantees it.
    let result = unsafe {
        detail.clear();
        detail.explain(sys::tally_call(sys::SESSION_OPEN, arguments))
    };
    u64::try_from(result).map_or(result, |word| Opened::from_word(word).session.into())
}

/// Returns an error's message. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_strerror(error: i64) -> *const c_char {
    macro_rules! messages {
        ($($error:ident,)*) => {
            match Error::from_return(error) {
                $(Some(Error::$error) => {
                    const BYTES: usize = Error::$error.message().len() + 1;
                    static TEXT: [u8; BYTES] = terminated(Error::$error.message());
                    TEXT.as_ptr().cast()
                })*
                None => c"this number is no error of Tally's".as_ptr(),
            }
        };
    }
    messages! {
        UnknownEvent, TooManyEvents, SliceOutOfRange, NoPmu, EventNotSupported, NoEvents,
        BadArgument, BadPointer, NoSession, WrongState, Busy, NoMemory, NoProgram, NotPermitted,
        NotAProgram, TooManySessions, TooManyPrograms, NotTally,
    }
}

/// Returns a text with a terminating zero byte.
const fn terminated<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let (front, _) = bytes.split_at_mut(text.len());
    front.copy_from_slice(text.as_bytes());
    bytes
}
