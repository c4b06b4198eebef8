//! Messages from the kernel to the host, over the second UART.
//!
//! The stream is a sequence of frames. A frame is a [`Message`] in postcard's encoding, in COBS
//! encoding (which removes zero bytes), followed by a zero byte. After an error a reader continues
//! at the next zero byte.

use serde::{Deserialize, Serialize};

use crate::{
    Malformed, Mode, Reading, SessionConfig, SessionStats,
    boot::JobNumber,
    halt::{HaltTimer, Halts},
    registers::Registers,
    trace::SlicePlace,
};

/// The byte that the host sends on the wire to end all programs before their time, as Ctrl-C does:
/// their results up to then follow as after any end.
pub const END_REQUEST: u8 = 3;

/// Version of the messages. A build can read the messages of another build of the same version. A
/// change of [`Message`] or of its contents needs a new version.
pub const VERSION: u16 = 8;
/// Maximum bytes of a frame, including the zero byte at its end.
pub const MAX_FRAME_BYTES: usize = 2048;
/// Maximum bytes of text in one [`Message::Output`].
pub const MAX_OUTPUT_BYTES: usize = 1024;

/// The PMU that the kernel found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PmuInfo<'a> {
    /// The processor's vendor, as in CPUID, such as `GenuineIntel`.
    pub vendor: &'a str,
    /// The display family in CPUID.
    pub family: u16,
    /// The display model in CPUID.
    pub model: u8,
    /// The driver and its version, such as `Intel architectural performance monitoring, version 5`.
    pub name: &'a str,
    /// The processor's catalogue of events, such as `icelake-server`.
    pub catalogue: &'a str,
    /// General counters.
    pub general: u8,
    /// Pinned events.
    pub pinned: u8,
    /// Width of a counter, in bits.
    pub width_bits: u8,
}

/// A message from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Message<'a> {
    /// The kernel has booted and is about to load programs.
    Booted {
        /// CPUs that are online.
        cpus: u32,
        /// Memory that the kernel uses, in bytes: its image, tables, stacks, heap; not the ramdisk.
        memory_bytes: u64,
        /// The seed in use.
        seed: u64,
        /// Frequency of the time-stamp counter, in Hz, as the kernel calibrated it; 0 if it did
        /// not.
        tsc_hz: u64,
        /// The PMU, if the machine has one.
        #[serde(borrow)]
        pmu: Option<PmuInfo<'a>>,
    },
    /// Programs are loaded, and the first is about to run.
    Ready {
        /// Nanoseconds since the kernel's first instruction.
        boot_ns: u64,
    },
    /// A program wrote to descriptor 1 or 2.
    Output {
        /// The program's number.
        pid: u32,
        /// The descriptor.
        fd: u8,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// A session ended; its readings follow, then its [`Message::Stats`].
    Session {
        /// The session.
        session: u32,
        /// The program that it measured.
        pid: u32,
        /// The program's name.
        program: &'a str,
        /// The program's address space: CR3's page-table base, a physical address.
        address_space: u64,
        /// The session's configuration.
        config: SessionConfig,
        /// The measured thread, if the message is about an instance of a session that counts
        /// threads separately; `program` is the thread's name then.
        thread: Option<u32>,
    },
    /// The last value of one of a session's logical counters.
    Reading {
        /// The session.
        session: u32,
        /// The event: its name in the catalogue, its spelling in the list, or the name that the
        /// list gives it.
        event: &'a str,
        /// The event's name in the catalogue, if it has one.
        native: Option<&'a str>,
        /// The privileges at which it was counted.
        mode: Mode,
        /// Position of its counts in the trace's records of slices.
        place: SlicePlace,
        /// The counter's value.
        reading: Reading,
        /// Count of the counter unit, if the session counts on that too.
        unit: Option<u64>,
    },
    /// The engine's statistics of the session that just ended.
    Stats {
        /// The session.
        session: u32,
        /// The numbers.
        stats: SessionStats,
    },
    /// A piece of the trace ([`crate::trace`]), if the command line asks for a trace and the
    /// machine has no virtio port. The pieces up to one with `last` make a block: the number of the
    /// block's uncompressed bytes, in 4 bytes, then these bytes in LZ4's block format.
    Trace {
        /// The bytes.
        bytes: &'a [u8],
        /// Whether this piece ends a block.
        last: bool,
    },
    /// The state of a CPU's trace ring at the end: `written` = `read` + `lost`.
    Ring {
        /// The CPU.
        cpu: u16,
        /// Records that the kernel wrote, lost ones included.
        written: u64,
        /// Records that were sent to the host.
        read: u64,
        /// Records that were lost.
        lost: u64,
        /// Number of times that the CPU waited until the host had all records (`trace=halt`).
        waits: u64,
    },
    /// A program ended by itself.
    Exited {
        /// The program's number.
        pid: u32,
        /// The program's name.
        program: &'a str,
        /// The program's exit status.
        status: i32,
    },
    /// A program crashed and was ended.
    Faulted {
        /// The program's number.
        pid: u32,
        /// The program's name.
        program: &'a str,
        /// The kind of fault, such as `page fault: write to memory that is not mapped`.
        fault: &'a str,
        /// The accessed address, if the fault has one.
        address: Option<u64>,
        /// The address of the instruction.
        instruction: u64,
    },
    /// The kernel could not start a program, or the command line is wrong.
    Refused {
        /// The program's name.
        program: &'a str,
        /// An [`crate::ExitStatus`].
        status: u8,
        /// The reason, as a message for users.
        why: &'a str,
    },
    /// System calls of an ended program that the kernel refused because it does not know them or
    /// the operation that they ask for.
    RefusedCalls {
        /// The program's name.
        program: &'a str,
        /// The calls, their errors, and how often: a text for users.
        calls: &'a str,
    },
    /// A file that a program looked for in vain before it ended with a status other than 0.
    NotFound {
        /// The program's name.
        program: &'a str,
        /// The absolute path.
        path: &'a str,
    },
    /// A piece of the stack on which the kernel stopped, from the stack pointer up. The pieces
    /// precede [`Message::Panicked`].
    Stack {
        /// The address of the first byte.
        address: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The kernel stopped at an exception in ring 0 or a failed check.
    Panicked {
        /// The message, with file and line.
        message: &'a str,
        /// The processor at the exception, or in the panic handler.
        registers: Registers,
    },
    /// Begins a folder: the files and folders that programs created or changed in it follow, up to
    /// its [`Message::FolderEnds`]. The first folder is the root, without a name. The kernel sends
    /// folders and files when all programs have ended, if the command line asks for it.
    FolderBegins {
        /// The folder's name.
        name: &'a str,
        /// Whether a program made the folder. A folder that is not new may contain nothing that
        /// changed.
        is_new: bool,
    },
    /// A file, or a symbolic link.
    File {
        /// The file's name.
        name: &'a str,
        /// Inode number: entries with the same number are one file.
        number: u64,
        /// Whether it is a symbolic link, whose content is its target.
        is_link: bool,
        /// Bytes of its content, which follows the content of earlier files on the virtio port.
        bytes: u64,
    },
    /// Ends the folder that was begun last and has not ended.
    FolderEnds,
    /// The halts of all CPUs together, if the command line asks for halts.
    Halted {
        /// The configuration of the halts.
        halts: Halts,
        /// Behaviour of the scheduler's timer during the halts.
        timer: HaltTimer,
        /// Number of halts.
        count: u64,
        /// Core cycles of all halts, from the handler's beginning to its end; ticks of the TSC if
        /// the processor does not count core cycles.
        cycles: u64,
    },
    /// Every program has ended; the machine stops.
    Done {
        /// The first exit status other than 0, in the order in which programs ended; else 0.
        status: u8,
    },
    /// Messages of the run that were left out because they would be too many codes on the screen:
    /// output of programs, or pieces of the trace.
    Omitted {
        /// Their number.
        messages: u64,
    },
    /// Findings of a CPU's check of its counters, if the command line asks for a report of it.
    Checked {
        /// The CPU.
        cpu: u16,
        /// The failure, a text for users; `None` if the CPU passed.
        failure: Option<&'a str>,
        /// Instructions that the counter counts in ring 3 in excess of retired ones, for each
        /// interrupt.
        overcount: u64,
        /// Core cycles of an RDMSR and of a WRMSR of the PMU's registers, in hundredths; 0 if
        /// cycles are not counted.
        access_centicycles: [u64; 2],
    },
    /// A processor that did not start, or that stays offline.
    Offline {
        /// The processor's APIC ID.
        apic_id: u32,
        /// The reason, a text for users.
        why: &'a str,
    },
    /// Begins a job, if there are several. The messages up to the next such message belong to it.
    Job {
        /// The job's number and seed.
        job: JobNumber,
    },
    /// A program has ended; the processor counts its core cycles (IA32_APERF).
    Frequency {
        /// The program.
        pid: u32,
        /// Core cycles of its turns on CPUs, in every ring.
        core: u64,
        /// Cycles of the time-stamp counter's rate in these turns.
        reference: u64,
    },
}

impl<'a> Message<'a> {
    /// Encodes one frame into `buffer` and returns the bytes to send.
    ///
    /// # Errors
    /// The message does not fit into `buffer`. [`MAX_FRAME_BYTES`] are enough for every message
    /// whose texts have at most [`MAX_OUTPUT_BYTES`].
    pub fn encode<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b [u8], Malformed> {
        postcard::to_slice_cobs(self, buffer).map(|frame| &*frame).map_err(|_| Malformed)
    }

    /// Decodes one frame in place, with or without its ending zero.
    ///
    /// # Errors
    /// The frame is incomplete or of another version.
    pub fn decode(frame: &'a mut [u8]) -> Result<Self, Malformed> {
        postcard::from_bytes_cobs(frame).map_err(|_| Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Value, reading::Reason, registers::Frame};

    fn check(message: Message<'_>) {
        let mut buffer = [0; MAX_FRAME_BYTES];
        let length = message.encode(&mut buffer).unwrap().len();
        let frame = &mut buffer[..length];
        assert_eq!(frame.iter().position(|byte| *byte == 0), Some(length - 1));
        assert_eq!(Message::decode(frame), Ok(message));
    }

    #[test]
    fn frames_round_trip() {
        check(Message::Done { status: 0 });
        check(Message::Output { pid: 1, fd: 1, bytes: &[0; MAX_OUTPUT_BYTES] });
        check(Message::Stack { address: u64::MAX, bytes: &[0; MAX_OUTPUT_BYTES] });
        let frame = Frame { r15: u64::MAX, ss: 3, ..Frame::default() };
        let registers = Registers { frame, apic_id: 7, ..Registers::default() };
        check(Message::Panicked { message: "here", registers });
        check(Message::Booted { cpus: 1, memory_bytes: 0, seed: 0, tsc_hz: 0, pmu: None });
        let reading = Reading {
            value: Value::NotMeasured { reason: Reason::NotStarted },
            counted: 0,
            counted_cycles: 0,
            total_cycles: 0,
            slices: 0,
        };
        check(Message::Reading {
            session: 0,
            event: "cycles:k",
            native: Some("CPU_CLK_UNHALTED.THREAD_P"),
            mode: Mode::Kernel,
            place: SlicePlace::List { group: 1, index: 2 },
            reading,
            unit: Some(u64::MAX),
        });
    }

    /// A failure means that the format has changed: then [`VERSION`] must change, and then this
    /// test.
    #[test]
    fn the_version_is_that_of_the_format() {
        let length = |message: Message<'_>| {
            message.encode(&mut [0; MAX_FRAME_BYTES]).map(|frame| frame.len())
        };
        let stats = Message::Stats { session: 1, stats: crate::SessionStats::default() };
        let config = crate::SessionConfig::default();
        let (program, address_space, thread) = ("p", 0, None);
        let session =
            Message::Session { session: 1, pid: 1, program, address_space, config, thread };
        // The last message's number shows that no message was inserted before it.
        let last = Message::Job { job: JobNumber { number: 7, seed: 9 } };
        assert_eq!(last.encode(&mut [0; 8]), Ok(&[4, 23, 7, 9, 0][..]));
        assert_eq!((VERSION, length(stats), length(session)), (8, Ok(21), Ok(18)));
    }

    #[test]
    fn torn_frames_are_refused() {
        let mut buffer = [0; MAX_FRAME_BYTES];
        let message = Message::Panicked { message: "here", registers: Registers::default() };
        let length = message.encode(&mut buffer).unwrap().len();
        assert_eq!(Message::decode(&mut buffer[1..length]), Err(Malformed));
    }
}
