//! Files: a tree of folders in memory with the ramdisk's files and those that programs create,
//! which stay until the machine ends; and other things that programs open: devices, generated
//! texts, streams.

mod content;
pub mod epoll;
pub mod expiry;
pub mod inode;
pub mod location;
pub mod locks;
mod mapping;
mod names;
pub mod open;
mod pages;
pub mod ramdisk;
pub mod streams;
pub mod tree;

use spin::Once;

use self::tree::{Device, Node, Text};
pub use self::{content::Content, mapping::map_file};

/// Folders that programs expect.
const FOLDERS: [&str; 5] = ["tmp", "root", "var/tmp", "dev/shm", "proc/self"];
/// Devices and generated texts.
const SPECIAL: [(&str, Node); 21] = [
    ("dev/null", Node::Device(Device::Null)),
    ("dev/zero", Node::Device(Device::Zero)),
    ("dev/random", Node::Device(Device::Random)),
    ("dev/urandom", Node::Device(Device::Random)),
    ("dev/stdin", Node::Device(Device::Descriptor(0))),
    ("dev/stdout", Node::Device(Device::Descriptor(1))),
    ("dev/stderr", Node::Device(Device::Descriptor(2))),
    ("dev/fd/0", Node::Device(Device::Descriptor(0))),
    ("dev/fd/1", Node::Device(Device::Descriptor(1))),
    ("dev/fd/2", Node::Device(Device::Descriptor(2))),
    ("proc/self/exe", Node::Program),
    ("proc/self/maps", Node::Text(Text::Maps)),
    ("proc/self/stat", Node::Text(Text::Stat)),
    ("proc/self/statm", Node::Text(Text::Statm)),
    ("proc/self/status", Node::Text(Text::Status)),
    ("proc/self/cmdline", Node::Text(Text::CommandLine)),
    ("proc/self/environ", Node::Text(Text::Environment)),
    ("proc/self/comm", Node::Text(Text::Name)),
    ("proc/cpuinfo", Node::Text(Text::Processors)),
    ("proc/meminfo", Node::Text(Text::Memory)),
    ("proc/uptime", Node::Text(Text::Uptime)),
];
/// More generated texts.
const MORE: [(&str, Text); 4] = [
    ("proc/loadavg", Text::Load),
    ("proc/stat", Text::Machine),
    ("sys/devices/system/cpu/online", Text::Online),
    ("sys/devices/system/cpu/possible", Text::Possible),
];
/// The file systems: the tree.
const MOUNTS: &[u8] = b"tmpfs / tmpfs rw 0 0\n";
/// Files with a fixed text.
const TEXTS: [(&str, &[u8]); 7] = [
    ("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n"),
    ("etc/group", b"root:x:0:\n"),
    ("etc/hostname", b"tally\n"),
    ("proc/sys/vm/overcommit_memory", b"0\n"),
    ("proc/filesystems", b"nodev\ttmpfs\n"),
    ("proc/mounts", MOUNTS),
    ("proc/self/mounts", MOUNTS),
];

/// The highest inode number at boot.
static LAST_AT_BOOT: Once<u64> = Once::new();

/// Returns whether the node with this inode number existed at boot.
pub fn was_at_boot(number: u64) -> bool {
    LAST_AT_BOOT.get().is_some_and(|last| number <= *last)
}

/// Returns whether the file at `path`, given without a leading `/`, has its content from boot.
pub fn is_as_at_boot(path: &str, content: &Content) -> bool {
    let text = || TEXTS.iter().find(|(known, _)| *known == path).map(|(_, bytes)| *bytes);
    ramdisk::file(path).or_else(text).is_some_and(|bytes| content.is(bytes))
}

/// Makes the tree, of the ramdisk's files and of what programs expect.
pub fn init(ramdisk: Option<&'static [u8]>) {
    let add = |path: &str, bytes| tree::plant(path, Node::File(inode::Inode::of_ramdisk(bytes)));
    if let Some(archive) = ramdisk {
        ramdisk::init(archive, add);
    }
    FOLDERS.into_iter().for_each(tree::plant_folder);
    for (path, node) in SPECIAL {
        tree::plant(path, node);
    }
    for (path, text) in MORE {
        tree::plant(path, Node::Text(text));
    }
    for (path, bytes) in TEXTS {
        add(path, bytes);
    }
    LAST_AT_BOOT.call_once(inode::new_number);
}
