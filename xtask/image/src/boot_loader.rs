//! The boot loader as included in `tally-efi`: laid out as in memory, so that the executable format
//! needs no processing at boot.

use std::fs;

use object::{
    LittleEndian as LE,
    pe::{IMAGE_REL_BASED_ABSOLUTE, IMAGE_REL_BASED_DIR64},
    read::pe::{ImageNtHeaders, ImageOptionalHeader, PeFile64},
};

/// Result with an error for the reader of a build's log.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Bytes of the boot loader's file, in the format of `kernel/efi/src/boot_loader.rs`.
pub fn laid_out() -> Result<Vec<u8>> {
    // The crate provides the file only in a folder for TFTP.
    let folder = tempfile::tempdir()?;
    bootloader::DiskImageBuilder::empty().create_uefi_tftp_folder(folder.path())?;
    let file = fs::read(folder.path().join("bootloader"))?;
    let pe = PeFile64::parse(&*file)?;
    let header = pe.nt_headers().optional_header();
    let mut memory = memory(&pe, &file).ok_or("a section of the boot loader is damaged")?;
    let relocations = relocations(&pe, &file)?;
    for offset in &relocations {
        let at = memory.get_mut(*offset as usize..).and_then(|rest| rest.first_chunk_mut());
        let at = at.ok_or("a relocation of the boot loader is outside of it")?;
        *at = u64::from_le_bytes(*at).wrapping_sub(header.image_base()).to_le_bytes();
    }
    let entry = u64::from(header.address_of_entry_point());
    let words = [entry, relocations.len() as u64].into_iter().chain(relocations);
    Ok(words.flat_map(u64::to_le_bytes).chain(memory).collect())
}

/// Memory contents after the application has been loaded.
fn memory(pe: &PeFile64<'_>, file: &[u8]) -> Option<Vec<u8>> {
    let header = pe.nt_headers().optional_header();
    let mut memory = vec![0; header.size_of_image() as usize];
    let headers = header.size_of_headers() as usize;
    memory.get_mut(..headers)?.copy_from_slice(file.get(..headers)?);
    for section in pe.section_table().iter() {
        let (offset, bytes) = section.pe_file_range();
        let from = file.get(offset as usize..)?.get(..bytes as usize)?;
        let to = section.virtual_address.get(LE) as usize;
        memory.get_mut(to..)?.get_mut(..from.len())?.copy_from_slice(from);
    }
    Some(memory)
}

/// Offsets of the 64-bit words that hold addresses of the application.
fn relocations(pe: &PeFile64<'_>, file: &[u8]) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    let sections = pe.section_table();
    let Some(mut blocks) = pe.data_directories().relocation_blocks(file, &sections)? else {
        return Ok(found);
    };
    while let Some(block) = blocks.next()? {
        for relocation in block {
            match relocation.typ {
                IMAGE_REL_BASED_ABSOLUTE => {}
                IMAGE_REL_BASED_DIR64 => found.push(relocation.virtual_address.into()),
                other => return Err(format!("the boot loader has a relocation {other}").into()),
            }
        }
    }
    Ok(found)
}
