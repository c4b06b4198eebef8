//! The log as text, and messages to the host: on the serial ports and on the screen.
//!
//! Each port has its own lock. Interrupts are off while a CPU holds a lock, so a CPU never waits
//! for itself. The overflow path sends nothing.

use core::sync::atomic::{AtomicBool, Ordering};

use log::LevelFilter;
use spin::Mutex;
use tally_abi::{
    boot::{LogLevel, WIRE_PORT},
    wire::{END_REQUEST, MAX_FRAME_BYTES, Message},
};
use uart_16550::{Config, Uart16550, backend::PioBackend};

use super::{console, screen};

static WIRE: Mutex<Option<Uart16550<PioBackend>>> = Mutex::new(None);

struct Logger;

impl log::Log for Logger {
    fn enabled(&self, metadata: &log::Metadata) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &log::Record) {
        if !self.enabled(record.metadata()) {
            return;
        }
        console::write_line(format_args!("[{:5}] {}", record.level(), record.args()));
        screen::write_line(format_args!("[{:5}] {}", record.level(), record.args()));
    }

    fn flush(&self) {}
}

/// Opens the log.
pub fn init_log() {
    console::open_log();
    log::set_logger(&Logger).expect("no other logger is set");
    set_log_level(LogLevel::default());
}

/// Sets the least severe level of messages in the log.
pub fn set_log_level(level: LogLevel) {
    log::set_max_level(match level {
        LogLevel::Error => LevelFilter::Error,
        LogLevel::Warn => LevelFilter::Warn,
        LogLevel::Info => LevelFilter::Info,
        LogLevel::Debug => LevelFilter::Debug,
        LogLevel::Trace => LevelFilter::Trace,
    });
}

/// Opens the wire to the host.
pub fn init_wire() {
    *WIRE.lock() = console::open_port(WIRE_PORT, Config::default());
    match WIRE.lock().as_mut() {
        // Firmware may have used the port as a console: this ends its output, which becomes a
        // malformed frame.
        Some(port) => port.send_bytes_exact(&[0]),
        None => {
            log::warn!("no second serial port for messages to the host; none are sent")
        }
    }
}

/// Returns whether the host has asked to end all programs. A CPU that finds the wire in use does
/// not look, as the next tick does.
pub fn is_end_requested() -> bool {
    // Relaxed order is enough: the flag stands for itself.
    static REQUESTED: AtomicBool = AtomicBool::new(false);
    if let Some(mut wire) = WIRE.try_lock()
        && let Some(port) = wire.as_mut()
        && port.try_receive_byte() == Ok(END_REQUEST)
    {
        REQUESTED.store(true, Ordering::Relaxed);
    }
    REQUESTED.load(Ordering::Relaxed)
}

/// Returns whether there is a wire to the host.
pub fn has_wire() -> bool {
    WIRE.lock().is_some()
}

/// Sends a message to the host, if there is a wire, and keeps it for the screen, if the screen
/// shows results.
pub fn send(message: &Message) {
    if !has_wire() && !screen::has_results() {
        return;
    }
    let mut buffer = [0; MAX_FRAME_BYTES];
    let Ok(frame) = message.encode(&mut buffer) else {
        log::error!("message to the host too long; not sent");
        return;
    };
    if let Some(port) = WIRE.lock().as_mut() {
        port.send_bytes_exact(frame);
    }
    screen::keep(message, frame);
}

/// Unlocks both ports and the screen, even if another CPU holds them: the kernel is about to stop.
pub fn unlock_for_panic() {
    screen::unlock_for_panic();
    console::unlock_for_panic();
    // SAFETY: as for the ports of the log.
    unsafe { WIRE.force_unlock() };
}
