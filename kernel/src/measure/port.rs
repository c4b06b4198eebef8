//! The transport by a virtio port, which sends the trace while programs run.
//!
//! The device owns a page that was sent until it returns it. If the host stops reading, no page
//! returns, and records stay in their rings. The kernel waits for pages at the end alone, and only
//! as long as some return.

use tally_abi::boot::MAX_CPUS;
use x86_64::structures::paging::PhysFrame;

use super::transport::{Load, RecordPage, Transport};
use crate::{
    machine::virtio::{QUEUE, VirtioTracePort},
    memory::frames::{self, FRAME_BYTES, kernel_view},
};

/// Polls of the device without a page returned after which the host counts as gone: a fraction of a
/// second.
const MAX_POLLS: u32 = 4_000_000;

/// The port, and a page for each of its buffers.
pub(super) struct PortTransport {
    port: VirtioTracePort,
    pages: [Sent; QUEUE],
    /// The page that is being filled.
    filling: usize,
    /// Polls left; 0 once the host counts as gone.
    polls_left: u32,
    /// Records that the host does not have yet, by CPU.
    in_flight: [u64; MAX_CPUS],
}

/// A page, which the device owns while it has a token.
#[derive(Clone, Copy)]
struct Sent {
    frame: PhysFrame,
    load: Load,
    /// The device's token for the page.
    token: Option<u16>,
}

impl Sent {
    fn bytes(&self) -> &'static [u8] {
        let start = kernel_view(self.frame.start_address()).as_ptr::<u8>();
        // SAFETY: the frame is never freed, and as long as a page; `PortTransport::page` lends it
        // for writing only while the device does not own it.
        unsafe { core::slice::from_raw_parts(start, self.load.bytes.min(FRAME_BYTES as usize)) }
    }
}

impl PortTransport {
    /// The transport, if this machine has a port for it.
    pub(super) fn find() -> Option<PortTransport> {
        let port = VirtioTracePort::find()?;
        let none = Sent { frame: frames::allocate().ok()?, load: Load::default(), token: None };
        let mut pages = [none; QUEUE];
        for page in &mut pages[1..] {
            page.frame = frames::allocate().ok()?;
        }
        Some(PortTransport {
            port,
            pages,
            filling: 0,
            polls_left: MAX_POLLS,
            in_flight: [0; MAX_CPUS],
        })
    }

    /// Takes back the pages that the device returns. Returns whether there were any.
    fn collect(&mut self) -> bool {
        let mut any = false;
        loop {
            let pages = &self.pages;
            let of = |token| pages.iter().find(|page| page.token == Some(token));
            let bytes = |token| of(token).map_or(&[][..], Sent::bytes);
            // SAFETY: a page keeps its token and load while the device owns it.
            let Some(token) = (unsafe { self.port.take_back(bytes) }) else { return any };
            any = true;
            if let Some(page) = self.pages.iter_mut().find(|page| page.token == Some(token)) {
                page.token = None;
                if let Some(records) = self.in_flight.get_mut(usize::from(page.load.cpu)) {
                    *records -= page.load.records;
                }
            }
        }
    }

    /// Waits for a condition, as long as pages return. Returns whether it holds.
    fn wait(&mut self, condition: impl Fn(&Self) -> bool) -> bool {
        loop {
            let any = self.collect();
            if condition(self) {
                return true;
            }
            self.polls_left = if any { MAX_POLLS } else { self.polls_left.saturating_sub(1) };
            if self.polls_left == 0 {
                return false;
            }
            core::hint::spin_loop();
        }
    }
}

impl Transport for PortTransport {
    fn page(&mut self) -> Option<&mut RecordPage> {
        self.collect();
        self.filling = self.pages.iter().position(|page| page.token.is_none())?;
        let start = kernel_view(self.pages[self.filling].frame.start_address());
        // SAFETY: (1) the frame is this value's, as long as a page and all of it words; (2) the
        // device does not own it; (3) the result borrows this value.
        Some(unsafe { &mut *start.as_mut_ptr::<RecordPage>() })
    }

    fn last_page(&mut self) -> Option<&mut RecordPage> {
        self.wait_for_page().then_some(())?;
        self.page()
    }

    fn send(&mut self, load: Load) {
        let page = &mut self.pages[self.filling];
        page.load = load;
        // SAFETY: the page is not written to before `collect` clears its token.
        page.token = unsafe { self.port.send(page.bytes()) };
        if page.token.is_some()
            && let Some(records) = self.in_flight.get_mut(usize::from(load.cpu))
        {
            *records += load.records;
        }
    }

    fn wait_for_page(&mut self) -> bool {
        self.wait(|this| this.pages.iter().any(|page| page.token.is_none()))
    }

    fn wait_for_all(&mut self) -> bool {
        self.wait(|this| this.pages.iter().all(|page| page.token.is_none()))
    }

    fn in_flight(&self, cpu: u16) -> u64 {
        self.in_flight.get(usize::from(cpu)).copied().unwrap_or_default()
    }

    fn finish(&mut self) {
        self.wait_for_all();
    }
}
