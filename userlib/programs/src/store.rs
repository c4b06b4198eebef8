//! Store of compressed blocks: a library's compressor and decompressor with buffers that are
//! allocated once.

use alloc::{vec, vec::Vec};

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

/// Bytes of text per block.
const BLOCK_BYTES: usize = 64 << 10;

/// Compressor and decompressor with their buffers.
pub struct Store {
    compressor: CompressorOxide,
    decompressor: DecompressorOxide,
    packed: Vec<u8>,
    unpacked: Vec<u8>,
}

/// Makes a compressor of level 0 to 10 without a header.
fn compressor(level: u8) -> CompressorOxide {
    let mut compressor = CompressorOxide::default();
    compressor.set_format_and_level(DataFormat::Raw, level);
    compressor
}

impl Store {
    /// Makes a store with this compression level, 0 (none) to 10 (smallest).
    pub fn new(level: u8) -> Self {
        Store {
            compressor: compressor(level),
            decompressor: DecompressorOxide::new(),
            // Incompressible text becomes slightly larger.
            packed: vec![0; 2 * BLOCK_BYTES],
            unpacked: vec![0; BLOCK_BYTES],
        }
    }

    /// Compresses and decompresses a text, block by block. Returns its compressed size in bytes, or
    /// `None` if the result differs from the text.
    pub fn round_trip(&mut self, text: &[u8]) -> Option<usize> {
        text.chunks(BLOCK_BYTES).map(|block| self.round_trip_block(block)).sum()
    }

    fn round_trip_block(&mut self, block: &[u8]) -> Option<usize> {
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
