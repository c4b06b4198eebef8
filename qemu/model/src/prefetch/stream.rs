//! The L2's streamer: ascending or descending requests inside a page.
//!
//! Intel's manual: it monitors requests of the L1 caches, for code and data and of prefetchers; has
//! up to 32 streams, one forward or backward stream for each page of 4 KiB; may ask for two lines
//! at each look-up, and runs up to 20 lines ahead. From how many requests on a stream is one, it
//! does not say: here from the second step in one direction on, which is the third request. That
//! far lines go into the last level only, and that it moderates when many requests are in flight,
//! is not modelled.

use super::page::PAGE_LINES;

const STREAMS: usize = 32;
/// Lines that it runs ahead at most.
const AHEAD: i64 = 20;

/// The requests inside a page.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    /// Its number plus one; 0 for none.
    page: u64,
    used: u64,
    /// The line of the last request, by its place in the page.
    last: i64,
    /// 1 or -1, or 0 before the second request.
    direction: i64,
    /// How far the stream was asked for, in lines in its direction behind the last request.
    ahead: i64,
    is_stream: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Streams {
    pages: Box<[Page; STREAMS]>,
    requests: u64,
}

impl Streams {
    pub(super) fn new() -> Streams {
        Streams { pages: Box::new([Page::default(); STREAMS]), requests: 0 }
    }

    /// A request for `line`: what it asks for.
    pub(super) fn request(&mut self, line: u64) -> [Option<u64>; 2] {
        self.requests += 1;
        let (page, place) = (line / PAGE_LINES + 1, (line % PAGE_LINES) as i64);
        let Some(known) = self.pages.iter_mut().find(|known| known.page == page) else {
            let oldest = self.pages.iter_mut().min_by_key(|known| known.used);
            if let Some(oldest) = oldest {
                *oldest = Page { page, used: self.requests, last: place, ..Page::default() };
            }
            return [None; 2];
        };
        known.used = self.requests;
        known.request(place).map(|ahead| Some(line.wrapping_add_signed(ahead?)))
    }
}

impl Page {
    /// A request for the line at `place`: lines to ask for, by their distance from it.
    fn request(&mut self, place: i64) -> [Option<i64>; 2] {
        let step = place - self.last;
        if step == 0 {
            return [None; 2];
        }
        self.last = place;
        if step.signum() != self.direction {
            (self.direction, self.is_stream, self.ahead) = (step.signum(), false, 0);
            return [None; 2];
        }
        // What was asked for is nearer now.
        self.ahead = (self.ahead - step.abs()).max(0);
        self.is_stream = true;
        [(); 2].map(|()| {
            let further = self.ahead + 1;
            let last = if self.direction > 0 { PAGE_LINES as i64 - 1 - place } else { place };
            (further <= AHEAD.min(last)).then(|| {
                self.ahead = further;
                further * self.direction
            })
        })
    }
}
