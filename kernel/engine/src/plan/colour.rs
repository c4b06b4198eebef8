//! Edge colouring: divides events that need a register each into groups.
//!
//! Take counters and registers as the two sides of a graph, and each event as an edge between its
//! counter and its register. A group is then a colour: no two events of a group share a counter or
//! a register, so no two edges of a colour meet. By König's theorem a bipartite graph needs no more
//! colours than its busiest vertex has edges. The proof is the algorithm: if a colour is free at
//! one end of an edge and taken at the other, colours are exchanged along a path of two alternating
//! colours.

use alloc::{vec, vec::Vec};

use crate::demand::{MAX_EXTRA, MAX_GENERAL};

/// An event's counter and register.
pub(super) type Edge = (usize, usize);

/// A group for each edge, among `groups` groups; `groups` is at least the number of edges at any
/// counter or register.
pub(super) fn colour(edges: &[Edge], groups: usize) -> Vec<usize> {
    let mut at = Table {
        counters: vec![[None; MAX_GENERAL]; groups],
        registers: vec![[None; MAX_EXTRA]; groups],
    };
    let mut colours = vec![0; edges.len()];
    for (edge, &(counter, register)) in edges.iter().enumerate() {
        let free = |taken: &dyn Fn(usize) -> bool| (0..groups).find(|group| !taken(*group));
        let here = free(&|group| at.counters[group][counter].is_some());
        let there = free(&|group| at.registers[group][register].is_some());
        let (Some(here), Some(there)) = (here, there) else {
            unreachable!("a counter or register has more edges than there are groups")
        };
        if at.registers[here][register].is_some() {
            at.exchange(register, here, there, edges, &mut colours);
        }
        at.put(edge, edges[edge], here);
        colours[edge] = here;
    }
    colours
}

/// The edge of each colour at each vertex.
struct Table {
    counters: Vec<[Option<usize>; MAX_GENERAL]>,
    registers: Vec<[Option<usize>; MAX_EXTRA]>,
}

impl Table {
    fn put(&mut self, edge: usize, (counter, register): Edge, group: usize) {
        self.counters[group][counter] = Some(edge);
        self.registers[group][register] = Some(edge);
    }

    /// Exchanges colours `a` and `b` along the alternating path that begins at `register`, where
    /// `b` is free. The path never reaches a counter at which `a` is free: it enters counters by
    /// `a`.
    fn exchange(&mut self, register: usize, a: usize, b: usize, edges: &[Edge], of: &mut [usize]) {
        let mut path = Vec::new();
        let (mut vertex, mut colour, mut at_register) = (register, a, true);
        loop {
            let next = if at_register {
                self.registers[colour][vertex]
            } else {
                self.counters[colour][vertex]
            };
            let Some(edge) = next else { break };
            path.push(edge);
            vertex = if at_register { edges[edge].0 } else { edges[edge].1 };
            at_register = !at_register;
            colour = if colour == a { b } else { a };
        }
        for edge in &path {
            let (counter, register) = edges[*edge];
            self.counters[of[*edge]][counter] = None;
            self.registers[of[*edge]][register] = None;
        }
        for edge in path {
            of[edge] = if of[edge] == a { b } else { a };
            self.put(edge, edges[edge], of[edge]);
        }
    }
}
