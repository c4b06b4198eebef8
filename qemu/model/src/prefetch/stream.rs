//! The L2's streamer: ascending or descending requests inside a page.
//!
//! Intel's manual: the streamer monitors requests of the L1 caches for code and data and of
//! prefetchers; has up to 32 streams, one forward or backward stream for each page of 4 KiB; may
//! request two lines at each look-up, and runs up to 20 lines ahead. The manual does not say how
//! many requests make a stream: here a stream begins with the second step in one direction, the
//! third request. Two properties are not modelled: far lines go into the last level only, and the
//! streamer requests less when many requests are in flight.

use super::page::PAGE_LINES;

const STREAMS: usize = 32;
/// Maximum lines that a stream runs ahead.
const AHEAD: i64 = 20;

/// The requests inside a page.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    /// The page's number plus one; 0 for a free entry.
    page: u64,
    used: u64,
    /// The line of the last request, as an index in the page.
    last: i64,
    /// Direction of the stream: 1 or -1, or 0 before the second request.
    direction: i64,
    /// How far lines have been requested, in lines beyond the last request in the stream's
    /// direction.
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

    /// Handles a request for `line`; returns the lines to fetch.
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
    /// Handles a request for the line at index `place`; returns the distances of the lines to
    /// fetch.
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
        // The stream's end is nearer by this step.
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
