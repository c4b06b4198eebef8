//! Sends the files that programs created or changed to the host, when all programs have ended: the
//! tree as messages, the contents through a virtio port.

use alloc::{string::String, sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicBool, Ordering};

use tally_abi::wire::Message;

use crate::{
    files::{
        self, Content,
        inode::Inode,
        location::Base,
        tree::{Folder, Node},
    },
    machine::{
        port::{PAGE_WORDS, PagePort, fill},
        serial,
        virtio::PortNumber,
    },
};

/// Whether files are sent. Relaxed order is enough: only the first CPU writes it, at boot.
static IS_ASKED: AtomicBool = AtomicBool::new(false);

/// Sets whether files are sent when all programs have ended.
pub fn send_files_at_end(is_asked: bool) {
    IS_ASKED.store(is_asked, Ordering::Relaxed);
}

/// Sends the files that programs created or changed, if the command line asks for it. No program is
/// left.
pub(super) fn send() {
    if !IS_ASKED.load(Ordering::Relaxed) {
        return;
    }
    let Some(mut port) = PagePort::<()>::find(PortNumber::Files) else {
        return log::error!("the machine has no port for files; none are sent");
    };
    if send_tree(&mut port).is_none() || !port.wait_for_all() {
        log::error!("the host stopped reading; not all files are sent");
    }
}

/// A folder on the walk: itself, its name, and its entry that was sent last.
type Step = (Arc<Folder>, String, String);

/// Sends the tree. `None` if the host has stopped reading.
fn send_tree(port: &mut PagePort<()>) -> Option<()> {
    serial::send(&Message::FolderBegins { name: "", is_new: false });
    let mut way: Vec<Step> = Vec::from([(Base::root().folder, String::new(), String::new())]);
    while let Some((folder, _, last)) = way.last_mut() {
        let Some((name, node)) = folder.next(last) else {
            serial::send(&Message::FolderEnds);
            way.pop();
            continue;
        };
        last.clone_from(&name);
        match node {
            Node::Folder(inner) => {
                let is_new = !files::was_at_boot(inner.number);
                serial::send(&Message::FolderBegins { name: &name, is_new });
                way.push((inner, name, String::new()));
            }
            Node::File(file) => send_file(port, &way, &name, &file)?,
            Node::Link(number, target) => {
                let bytes = target.len() as u64;
                serial::send(&Message::File { name: &name, number, is_link: true, bytes });
                put(port, target.as_bytes())?;
            }
            Node::Program | Node::Device(_) | Node::Text(_) => {}
        }
    }
    Some(())
}

/// Sends the file `name` of the last folder on the walk, unless it is unchanged since boot.
fn send_file(port: &mut PagePort<()>, way: &[Step], name: &str, file: &Inode) -> Option<()> {
    let folders = way[1..].iter().map(|(_, name, _)| name.as_str());
    let path = folders.chain([name]).collect::<Vec<_>>().join("/");
    let content = file.lock();
    if files::is_as_at_boot(&path, &content) {
        return Some(());
    }
    let (number, bytes) = (file.number, content.len());
    serial::send(&Message::File { name, number, is_link: false, bytes });
    put_content(port, &content)
}

fn put_content(port: &mut PagePort<()>, content: &Content) -> Option<()> {
    let mut at = 0;
    while at < content.len() {
        let piece = content.piece(at);
        // An empty piece before the end would be a defect: the host would miss bytes.
        (!piece.is_empty()).then_some(())?;
        put(port, piece)?;
        at += piece.len() as u64;
    }
    Some(())
}

/// Sends bytes through the port.
fn put(port: &mut PagePort<()>, bytes: &[u8]) -> Option<()> {
    for piece in bytes.chunks(8 * PAGE_WORDS) {
        port.wait_for_page().then_some(())?;
        fill(port.page()?, piece);
        port.send(piece.len(), ());
    }
    Some(())
}
