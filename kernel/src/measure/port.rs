//! The transport through a virtio port, which sends the trace while programs run.
//!
//! If the host stops reading, records stay in their rings. The kernel waits for pages only at the
//! end.

use super::transport::{Load, RecordPage, Transport};
use crate::machine::{port::PagePort, virtio::PortNumber};

/// The port; a page's label describes its contents.
pub(super) struct PortTransport(PagePort<Load>);

impl PortTransport {
    /// Finds the transport's port; `None` if this machine lacks it.
    pub(super) fn find() -> Option<PortTransport> {
        PagePort::find(PortNumber::Trace).map(PortTransport)
    }
}

impl Transport for PortTransport {
    fn page(&mut self) -> Option<&mut RecordPage> {
        self.0.page()
    }

    fn last_page(&mut self) -> Option<&mut RecordPage> {
        self.0.wait_for_page().then_some(())?;
        self.0.page()
    }

    fn send(&mut self, load: Load) {
        self.0.send(load.bytes, load);
    }

    fn wait_for_page(&mut self) -> bool {
        self.0.wait_for_page()
    }

    fn wait_for_all(&mut self) -> bool {
        self.0.wait_for_all()
    }

    fn in_flight(&self, cpu: u16) -> u64 {
        self.0.in_flight().filter(|load| load.cpu == cpu).map(|load| load.records).sum()
    }

    fn finish(&mut self) {
        self.0.wait_for_all();
    }
}
