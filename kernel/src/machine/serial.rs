//! The two serial ports: a log for people, and messages for the host.
//!
//! Each port has a lock of its own; interrupts are off whenever one is held, so a CPU never waits
//! for itself. The overflow path sends nothing.

use core::fmt::{self, Write};

use spin::Mutex;
use tally_abi::{
    boot::{LOG_PORT, WIRE_PORT},
    wire::{MAX_FRAME_BYTES, Message},
};
use uart_16550::{Config, Uart16550, backend::PioBackend};

type Port = Uart16550<PioBackend>;

static LOG: Mutex<Option<Port>> = Mutex::new(None);
static WIRE: Mutex<Option<Port>> = Mutex::new(None);

struct Logger;

impl log::Log for Logger {
    fn enabled(&self, metadata: &log::Metadata) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &log::Record) {
        if self.enabled(record.metadata())
            && let Some(port) = LOG.lock().as_mut()
        {
            // A port that takes no more is no reason to stop.
            let _ = writeln!(Lines(port), "[{:5}] {}", record.level(), record.args());
        }
    }

    fn flush(&self) {}
}

/// Text with the line ends that terminals want.
struct Lines<'a>(&'a mut Port);

impl Write for Lines<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for line in text.split_inclusive('\n') {
            match line.strip_suffix('\n') {
                Some(line) => {
                    self.0.send_bytes_exact(line.as_bytes());
                    self.0.send_bytes_exact(b"\r\n");
                }
                None => self.0.send_bytes_exact(line.as_bytes()),
            }
        }
        Ok(())
    }
}

/// A port that answers, set up; a machine may have none.
fn open(number: u16) -> Option<Port> {
    // SAFETY: these port numbers belong to serial ports on a PC, and only this module uses them.
    let mut port = unsafe { Uart16550::new_port(number) }.ok()?;
    port.init(Config::default()).ok()?;
    Some(port)
}

/// Opens the log.
pub fn init_log() {
    *LOG.lock() = open(LOG_PORT);
    log::set_logger(&Logger).expect("no other logger is set");
    log::set_max_level(log::LevelFilter::Info);
}

/// Opens the way to the host.
pub fn init_wire() {
    *WIRE.lock() = open(WIRE_PORT);
    match WIRE.lock().as_mut() {
        // Firmware may have used the port as a console: what it said ends here, as a frame that
        // nobody can read.
        Some(port) => port.send_bytes_exact(&[0]),
        None => {
            log::warn!("messages for the host are asked for, but no second serial port is there")
        }
    }
}

/// Whether somebody at the host listens.
pub fn has_wire() -> bool {
    WIRE.lock().is_some()
}

/// Sends a message to the host, if it listens.
pub fn send(message: &Message) {
    let mut guard = WIRE.lock();
    let Some(port) = guard.as_mut() else { return };
    let mut buffer = [0; MAX_FRAME_BYTES];
    match message.encode(&mut buffer) {
        Ok(frame) => port.send_bytes_exact(frame),
        Err(_) => log::error!("a message is too long to send"),
    }
}

/// Frees both ports from whoever held them: the kernel is about to end.
pub fn unlock_for_panic() {
    for port in [&LOG, &WIRE] {
        if port.is_locked() {
            // SAFETY: nothing but the panic handler runs on this CPU any more; another CPU that
            // still writes may garble a line, which is better than silence.
            unsafe { port.force_unlock() };
        }
    }
}
