//! The default job: compresses a real text with a real library, decompresses it, checks the result,
//! and measures itself while it does.
//!
//! The text goes through block by block, as in a store that keeps blocks compressed, with buffers
//! that are made once.
//!
//! `deflate [--events LIST] [--slice CYCLES] [--file PATH] [--level 0..10]`

#![no_std]
#![no_main]

extern crate alloc;

use alloc::{format, string::String, vec, vec::Vec};

use miniz_oxide::{
    DataFormat,
    deflate::core::{CompressorOxide, TDEFLFlush, TDEFLStatus, compress},
    inflate::{
        TINFLStatus,
        core::{
            DecompressorOxide, decompress,
            inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF as WHOLE_OUTPUT,
        },
    },
};
use tally::{
    ExitStatus, Session, SessionConfig, Slice, eprintln, io::read_file, println, runtime::arguments,
};
use tally_programs::{default_events, options::Options};

tally::main!(main);

/// Bytes of text that are compressed at a time.
const BLOCK_BYTES: usize = 64 << 10;
/// The status when the text does not come back as it went.
const MISMATCH: i32 = 1;

fn main() -> i32 {
    match run() {
        Ok(()) => 0,
        Err((status, text)) => {
            eprintln!("deflate: {text}");
            status
        }
    }
}

type Failure = (i32, String);

fn status(status: ExitStatus) -> i32 {
    i32::from(u8::from(status))
}

fn run() -> Result<(), Failure> {
    let usage = |text: String| (status(ExitStatus::Usage), text);
    let options = Options::parse(arguments().skip(1)).map_err(usage)?;
    let path = options.file.unwrap_or("corpus.txt");
    let text = read_file(path).map_err(|e| {
        (status(ExitStatus::HostError), format!("cannot read {path}: error {}", e.0))
    })?;
    let config = SessionConfig {
        slice: options.slice.map_or(SessionConfig::default().slice, Slice::Cycles),
        ..SessionConfig::default()
    };
    let events = options.events.unwrap_or_else(default_events);
    let mut session = Session::open(events, config)
        .map_err(|refused| (status(refused.error.exit_status()), refused.detail))?;
    let failed = |error: tally::Error| (status(error.exit_status()), error.message().into());
    let mut store = Store::new(options.level.unwrap_or(6));
    session.start().map_err(failed)?;
    let packed_bytes = text.chunks(BLOCK_BYTES).map(|block| store.round_trip(block)).sum();
    session.stop().map_err(failed)?;
    let packed_bytes: Option<usize> = packed_bytes;
    let packed_bytes = packed_bytes.ok_or((MISMATCH, "the text came back changed".into()))?;
    println!("deflate: {} bytes became {packed_bytes}, and came back", text.len());
    Ok(())
}

/// A compressor and a decompressor with their buffers.
struct Store {
    compressor: CompressorOxide,
    decompressor: DecompressorOxide,
    packed: Vec<u8>,
    unpacked: Vec<u8>,
}

/// A compressor of the level, 0 to 10, that writes no header.
fn compressor(level: u8) -> CompressorOxide {
    let mut compressor = CompressorOxide::default();
    compressor.set_format_and_level(DataFormat::Raw, level);
    compressor
}

impl Store {
    fn new(level: u8) -> Self {
        Store {
            compressor: compressor(level),
            decompressor: DecompressorOxide::new(),
            // Text that does not compress grows a little.
            packed: vec![0; 2 * BLOCK_BYTES],
            unpacked: vec![0; BLOCK_BYTES],
        }
    }

    /// Compresses a block and decompresses it again: its compressed size, if it came back as it
    /// went.
    fn round_trip(&mut self, block: &[u8]) -> Option<usize> {
        self.compressor.reset();
        let finish = TDEFLFlush::Finish;
        let (status, _, packed) = compress(&mut self.compressor, block, &mut self.packed, finish);
        let packed = self.packed.get(..packed).filter(|_| status == TDEFLStatus::Done)?;
        self.decompressor.init();
        let (status, _, unpacked) =
            decompress(&mut self.decompressor, packed, &mut self.unpacked, 0, WHOLE_OUTPUT);
        let unpacked = self.unpacked.get(..unpacked).filter(|_| status == TINFLStatus::Done)?;
        (unpacked == block).then_some(packed.len())
    }
}
