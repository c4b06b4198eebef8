//! Spans of time, each with a component.

use std::collections::VecDeque;

use super::component::Component;

/// Disjoint spans in the order of time: cycles from the first up to but not including the second.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans(VecDeque<(u64, u64, Component)>);

impl Spans {
    /// Adds a span after all others.
    pub(super) fn push(&mut self, from: u64, until: u64, component: Component) {
        match self.0.back_mut() {
            Some((_, end, same)) if *end == from && *same == component => *end = until,
            _ if until > from => self.0.push_back((from, until, component)),
            _ => {}
        }
    }

    /// Drops the spans before `cycle`, which are not queried any more.
    pub(super) fn drop_before(&mut self, cycle: u64) {
        while self.0.front().is_some_and(|(_, until, _)| *until <= cycle) {
            self.0.pop_front();
        }
    }

    /// The cycles from `from` up to `until` in pieces, each with its component, or `None` between
    /// spans.
    pub(super) fn over(
        &self,
        from: u64,
        until: u64,
    ) -> impl Iterator<Item = (u64, u64, Option<Component>)> {
        let mut at = from;
        let mut spans = self.0.iter().skip_while(move |(_, end, _)| *end <= from).peekable();
        std::iter::from_fn(move || {
            if at >= until {
                return None;
            }
            let begun = at;
            let component = match spans.peek() {
                Some((start, end, component)) if *start <= at => {
                    at = *end;
                    spans.next();
                    Some(*component)
                }
                Some((start, ..)) => {
                    at = *start;
                    None
                }
                None => {
                    at = until;
                    None
                }
            };
            at = at.min(until);
            Some((begun, at, component))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_every_cycle_once() {
        let mut spans = Spans::default();
        spans.push(10, 20, Component::L2d);
        spans.push(20, 25, Component::L2d);
        spans.push(25, 30, Component::Dtlb);
        spans.push(40, 40, Component::L1d);
        let pieces: Vec<_> = spans.over(5, 33).collect();
        let want = [
            (5, 10, None),
            (10, 25, Some(Component::L2d)),
            (25, 30, Some(Component::Dtlb)),
            (30, 33, None),
        ];
        assert_eq!(pieces, want);
        assert_eq!(spans.over(12, 14).collect::<Vec<_>>(), [(12, 14, Some(Component::L2d))]);
        assert_eq!(spans.over(7, 7).count(), 0);
        spans.drop_before(25);
        assert_eq!(spans.over(0, 30).count(), 2);
    }
}
