//! The firmware's framebuffer shows the log, and at the end the results as codes.
//!
//! There is no keyboard driver, so pages are shown one after another, repeatedly, until the machine
//! is switched off.
//!
//! Interrupts are off while a CPU holds a lock, as with the serial ports.

use alloc::vec::Vec;
use core::{
    fmt::{self, Write},
    ops::Range,
};

use bootloader_api::info::FrameBuffer;
use spin::{Mutex, Once};
use tally_abi::{
    text::FixedText,
    wire::{MAX_FRAME_BYTES, Message},
};
use tally_screen::{Console, Layout, Parts, Sheet, Surface};

use super::clock;

/// Time for which a page is on the screen: enough for a photograph, and another if it is blurred.
const PAGE_MS: u32 = 8_000;
/// Bytes of kept messages.
const KEPT_BYTES: usize = 192 << 10;
/// Bytes up to which output and traces are kept too: the output of a check of sixteen CPUs. As
/// codes that do not compress these are some seventy pages.
const BULK_BYTES: usize = 160 << 10;
/// Bytes reserved for the last messages: the number of omitted ones, and the run's end.
const END_BYTES: usize = 64;
/// Maximum length of the line at the bottom of a page.
const FOOTER_BYTES: usize = 128;

static CONSOLE: Mutex<Console<'static>> = Mutex::new(Console::new());
/// The addresses of the framebuffer in use.
static PIXELS: Once<Range<u64>> = Once::new();
static RESULTS: Mutex<Option<Results>> = Mutex::new(None);

/// The messages for the codes. Nothing is allocated after the start, so that a message can be kept
/// at any time.
struct Results {
    frames: Vec<u8>,
    /// Number of messages that were not kept.
    omitted: u64,
    /// Kinds of messages that found no room. No later message of such a kind is kept, so that the
    /// kept messages have no gaps.
    full: [bool; 3],
    page_ms: u32,
}

/// A kind of messages, with its own limit of bytes.
#[derive(Clone, Copy)]
enum Class {
    /// Output of programs, and the trace.
    Bulk,
    Result,
    End,
}

impl Class {
    fn of(message: &Message) -> Class {
        match message {
            Message::Output { .. } | Message::Trace { .. } => Class::Bulk,
            Message::Done { .. } | Message::Omitted { .. } => Class::End,
            _ => Class::Result,
        }
    }

    fn most(self) -> usize {
        match self {
            Class::Bulk => BULK_BYTES,
            Class::Result => KEPT_BYTES - END_BYTES,
            Class::End => KEPT_BYTES,
        }
    }
}

impl Results {
    fn keep(&mut self, message: &Message, frame: &[u8]) {
        let class = Class::of(message);
        if self.full[class as usize] || self.frames.len() + frame.len() > class.most() {
            self.full[class as usize] = true;
            self.omitted += 1;
        } else {
            self.frames.extend_from_slice(frame);
        }
    }
}

/// Shows the log on the framebuffer from now on. A framebuffer with unsupported pixels is not used.
pub fn init(framebuffer: FrameBuffer) {
    let start = framebuffer.buffer().as_ptr().addr() as u64;
    let pixels = start..start + framebuffer.buffer().len() as u64;
    let info = framebuffer.info();
    let layout = Layout {
        width: info.width,
        height: info.height,
        stride: info.stride,
        pixel_bytes: info.bytes_per_pixel,
    };
    if let Some(surface) = Surface::new(framebuffer.into_buffer(), layout) {
        CONSOLE.lock().open(surface);
        PIXELS.call_once(|| pixels);
    }
}

/// The addresses of the framebuffer, if one is in use.
pub fn pixels() -> Option<Range<u64>> {
    PIXELS.get().cloned()
}

/// Writes a line of the log, if there is a screen.
pub fn write_line(line: fmt::Arguments) {
    // Writing to a console cannot fail.
    let _ = writeln!(CONSOLE.lock(), "{line}");
}

/// Keeps the messages from now on and shows them at the end, if there is a screen: each page for
/// `page_ms` milliseconds, or [`PAGE_MS`].
pub fn show_results_at_end(page_ms: Option<u32>) {
    if CONSOLE.lock().surface().is_some() {
        *RESULTS.lock() = Some(Results {
            frames: Vec::with_capacity(KEPT_BYTES),
            omitted: 0,
            full: [false; 3],
            page_ms: page_ms.unwrap_or(PAGE_MS),
        });
    }
}

/// Returns whether results are shown at the end.
pub fn has_results() -> bool {
    RESULTS.lock().is_some()
}

/// Keeps a message, with `frame` as its encoded form, if results are shown and there is room.
pub fn keep(message: &Message, frame: &[u8]) {
    if let Some(results) = RESULTS.lock().as_mut() {
        results.keep(message, frame);
    }
}

/// Shows the pages of the log and of the results, for ever. The clock's speed must be known.
pub fn show_results() -> ! {
    let Some(mut results) = RESULTS.lock().take() else { unreachable!("results are kept") };
    if results.omitted > 0 {
        let omitted = Message::Omitted { messages: results.omitted };
        let mut buffer = [0; MAX_FRAME_BYTES];
        results.keep(&omitted, omitted.encode(&mut buffer).expect("it has no text"));
    }
    let wait = || clock::wait_us(u64::from(results.page_ms) * 1000);
    let parts = Parts::of(&results.frames).expect("what is kept fits into the codes");
    let mut console = CONSOLE.lock();
    let sheet = console.surface().and_then(|surface| Sheet::of(surface, &parts));
    let log_pages = console.pages();
    let pages = log_pages + sheet.map_or(0, |sheet| sheet.pages(&parts));
    loop {
        for page in 0..pages {
            let place = format_args!("page {} of {pages}", page + 1);
            match (page.checked_sub(log_pages), sheet, console.surface()) {
                (Some(page), Some(sheet), Some(surface)) => {
                    let footer = FixedText::<FOOTER_BYTES>::of(format_args!(
                        "{place}: photograph every page with codes, then `cargo xtask import PHOTOS`"
                    ));
                    sheet.draw(surface, &parts, page, footer.as_str());
                }
                _ => {
                    let footer = FixedText::<FOOTER_BYTES>::of(format_args!(
                        "{place}: the log; results follow as codes, each page for some seconds"
                    ));
                    console.draw_page(page, footer.as_str());
                }
            }
            wait();
        }
    }
}

/// Unlocks the screen, even if another CPU holds it: the kernel is about to stop.
pub fn unlock_for_panic() {
    // SAFETY: nothing but the panic handler runs on this CPU any more; another CPU that still
    // draws may garble a line, which is better than no report.
    unsafe {
        if CONSOLE.is_locked() {
            CONSOLE.force_unlock();
        }
        if RESULTS.is_locked() {
            RESULTS.force_unlock();
        }
    }
}
