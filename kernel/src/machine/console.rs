//! Serial ports of the log: COM1, and the one that firmware uses as its console (Microsoft, "Serial
//! Port Console Redirection Table"), which a server's management controller passes on.

use core::{
    fmt::{self, Write},
    ptr::NonNull,
    sync::atomic::{AtomicU16, Ordering},
};

use spin::Mutex;
use tally_abi::boot::LOG_PORT;
use uart_16550::{
    BaudRate, Config, Uart16550,
    backend::{Backend, MmioBackend, PioBackend},
};

use crate::memory::frames;

/// Registers of a port.
const REGISTERS: u64 = 8;
/// Clock cycles of a bit for each unit of the divisor.
const CYCLES: u32 = 16;

static LOG: Mutex<Option<Uart16550<PioBackend>>> = Mutex::new(None);
static CONSOLE: Mutex<Option<Console>> = Mutex::new(None);
/// Divisor of COM1's clock as firmware left it. Relaxed order is enough: it stands for itself.
static LEFT_DIVISOR: AtomicU16 = AtomicU16::new(0);

/// Place of a port's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The first I/O port.
    Port(u16),
    /// The physical address of the first register, and the bytes from one to the next.
    Memory {
        /// Physical address of the first register.
        address: u64,
        /// Bytes from one register to the next.
        stride: u8,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Port(port) => write!(f, "I/O port {port:#x}"),
            Place::Memory { address, .. } => write!(f, "address {address:#x}"),
        }
    }
}

/// Firmware's console.
enum Console {
    Port(Uart16550<PioBackend>),
    Memory(Uart16550<MmioBackend>),
}

/// Initializes a port that nothing else uses; `None` if the machine lacks it.
pub(super) fn open_port(number: u16, config: Config) -> Option<Uart16550<PioBackend>> {
    // SAFETY: the numbers are serial ports' on a PC, or firmware's tables have a serial port there;
    // each has one user.
    let mut port = unsafe { Uart16550::new_port(number) }.ok()?;
    port.init(config).ok()?;
    Some(port)
}

/// Configuration with this divisor of the clock; the default one's if it is 0.
fn with_divisor(divisor: u16) -> Config {
    match divisor {
        0 => Config::default(),
        // The product is the clock's frequency if the port has the usual clock. Another clock's is
        // not known, and the divisor is right for it.
        _ => Config {
            frequency: CYCLES * BaudRate::Baud9600.to_integer() * u32::from(divisor),
            baud_rate: BaudRate::Baud9600,
            ..Config::default()
        },
    }
}

/// Divisor of a port's clock.
fn divisor_of(port: &mut Uart16550<impl Backend>) -> u16 {
    let (low, high) = port.dll_dlm();
    u16::from_le_bytes([low, high])
}

/// Initializes a port at the speed that firmware gave it; `None` if the machine lacks it.
fn keep_speed<B: Backend>(mut port: Uart16550<B>) -> Option<Uart16550<B>> {
    let config = with_divisor(divisor_of(&mut port));
    port.init(config).ok()?;
    Some(port)
}

/// Opens COM1 for the log.
pub(super) fn open_log() {
    // SAFETY: as in `open_port`.
    if let Ok(mut port) = unsafe { Uart16550::new_port(LOG_PORT) } {
        LEFT_DIVISOR.store(divisor_of(&mut port), Ordering::Relaxed);
    }
    *LOG.lock() = open_port(LOG_PORT, Config::default());
}

/// Writes the log to firmware's console too. COM1 gets the speed that firmware gave it.
pub fn follow(place: Place) {
    let opened = match place {
        Place::Port(LOG_PORT) => {
            let config = with_divisor(LEFT_DIVISOR.load(Ordering::Relaxed));
            *LOG.lock() = open_port(LOG_PORT, config);
            log::info!("the log is on the firmware's console, {place}, at its speed");
            return;
        }
        Place::Port(port) => {
            // SAFETY: firmware's tables have a serial port there, and nothing else uses it.
            let port = unsafe { Uart16550::new_port(port) }.ok();
            port.and_then(keep_speed).map(Console::Port)
        }
        Place::Memory { address, stride } => {
            let view = frames::viewed(address, REGISTERS * u64::from(stride));
            let start = view.and_then(|view| NonNull::new(view.as_mut_ptr()));
            // SAFETY: firmware's tables have a serial port there, the kernel's view has all of its
            // registers, and nothing else uses it.
            let port = start.and_then(|start| unsafe { Uart16550::new_mmio(start, stride) }.ok());
            port.and_then(keep_speed).map(Console::Memory)
        }
    };
    let is_open = opened.is_some();
    *CONSOLE.lock() = opened;
    if is_open {
        log::info!("the log is on the firmware's console too, {place}, at its speed");
    }
}

/// Writes a line to the log's ports.
pub(super) fn write_line(line: fmt::Arguments<'_>) {
    // A failing port must not stop the kernel.
    if let Some(port) = LOG.lock().as_mut() {
        let _ = writeln!(CrLf(port), "{line}");
    }
    let _ = match CONSOLE.lock().as_mut() {
        Some(Console::Port(port)) => writeln!(CrLf(port), "{line}"),
        Some(Console::Memory(port)) => writeln!(CrLf(port), "{line}"),
        None => Ok(()),
    };
}

/// Unlocks the ports, even if another CPU holds them: the kernel is about to stop.
pub(super) fn unlock_for_panic() {
    // SAFETY: nothing but the panic handler runs on this CPU any more; another CPU that still
    // writes may garble a line, which is better than no report.
    unsafe {
        LOG.force_unlock();
        CONSOLE.force_unlock();
    }
}

/// Writes text with CR LF line ends.
struct CrLf<'a, B: Backend>(&'a mut Uart16550<B>);

impl<B: Backend> Write for CrLf<'_, B> {
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
