//! Compresses a file on several threads and decompresses it, by Zstandard: `zstd FILE` writes
//! `FILE.zst`.

use std::io::{Read, Write};

fn main() -> std::io::Result<()> {
    let name = std::env::args().nth(1).expect("usage: zstd FILE");
    let text = std::fs::read(&name)?;
    let mut encoder = zstd::Encoder::new(Vec::new(), 3)?;
    encoder.include_checksum(true)?;
    encoder.multithread(3)?;
    encoder.write_all(&text)?;
    let packed = encoder.finish()?;
    let mut back = Vec::new();
    zstd::Decoder::new(&packed[..])?.read_to_end(&mut back)?;
    println!("zstd: {} to {}, {}", text.len(), packed.len(), back == text);
    std::fs::write(name + ".zst", packed)
}
