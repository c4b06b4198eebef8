//! A trace that goes to the host while programs run, by a virtio port.
//!
//! A page that was sent is the host's until the device gives it back. If the host reads no more, none comes
//! back, and records stay in their rings: nobody waits while programs run, and at the end only as long as pages
//! come back.

use tally_abi::boot::MAX_CPUS;
use x86_64::structures::paging::PhysFrame;

use super::transport::{Load, Page, Transport};
use crate::{
    machine::virtio::{QUEUE, TracePort},
    memory::frames::{self, FRAME_BYTES, kernel_view},
};

/// How often the device is asked for a page, without one, before the host counts as gone: a fraction of a
/// second.
const PATIENCE: u32 = 4_000_000;

/// Pages, and the way that they go.
pub(super) struct PortTransport {
    port: TracePort,
    pages: [Sent; QUEUE],
    /// The page that is being filled.
    filling: usize,
    /// How often a page will be waited for yet; 0 once the host counts as gone.
    patience: u32,
    /// Records that the host does not have yet, CPU by CPU.
    in_flight: [u64; MAX_CPUS],
}

/// A page, and what became of it.
#[derive(Clone, Copy)]
struct Sent {
    frame: PhysFrame,
    load: Load,
    /// While it is the host's.
    token: Option<u16>,
}

impl Sent {
    fn bytes(&self) -> &'static [u8] {
        let start = kernel_view(self.frame.start_address()).as_ptr::<u8>();
        // SAFETY: the frame is never given back, and as long as a page; it is written to only where nobody has
        // this, as `PortTransport::page` sees to.
        unsafe { core::slice::from_raw_parts(start, self.load.bytes.min(FRAME_BYTES as usize)) }
    }
}

impl PortTransport {
    /// The way, if this machine has it.
    pub(super) fn find() -> Option<PortTransport> {
        let port = TracePort::find()?;
        let none = Sent { frame: frames::allocate().ok()?, load: Load::default(), token: None };
        let mut pages = [none; QUEUE];
        for page in &mut pages[1..] {
            page.frame = frames::allocate().ok()?;
        }
        Some(PortTransport {
            port,
            pages,
            filling: 0,
            patience: PATIENCE,
            in_flight: [0; MAX_CPUS],
        })
    }

    /// Takes back what the host has: whether it was anything.
    fn collect(&mut self) -> bool {
        let mut any = false;
        loop {
            let pages = &self.pages;
            let of = |token| pages.iter().find(|page| page.token == Some(token));
            let bytes = |token| of(token).map_or(&[][..], Sent::bytes);
            // SAFETY: each page keeps its token and load while it is the host's.
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

    /// Waits until `is_so`, as long as pages come back: whether it became so.
    fn wait(&mut self, is_so: impl Fn(&Self) -> bool) -> bool {
        loop {
            let came = self.collect();
            if is_so(self) {
                return true;
            }
            self.patience = if came { PATIENCE } else { self.patience.saturating_sub(1) };
            if self.patience == 0 {
                return false;
            }
            core::hint::spin_loop();
        }
    }
}

impl Transport for PortTransport {
    fn page(&mut self) -> Option<&mut Page> {
        self.collect();
        self.filling = self.pages.iter().position(|page| page.token.is_none())?;
        let start = kernel_view(self.pages[self.filling].frame.start_address());
        // SAFETY: (1) the frame is this value's, as long as a page and all of it words; (2) the host does not have
        // it; (3) the result borrows this value.
        Some(unsafe { &mut *start.as_mut_ptr::<Page>() })
    }

    fn last_page(&mut self) -> Option<&mut Page> {
        self.wait_for_page().then_some(())?;
        self.page()
    }

    fn send(&mut self, load: Load) {
        let page = &mut self.pages[self.filling];
        page.load = load;
        // SAFETY: the page is not written to before its token is gone, in `collect`.
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
