//! Circles in a graph: its strongly connected components of more than one node.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

/// Files that each file imports from.
pub type Graph = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// All circles, each with all of its files.
pub fn circles(graph: &Graph) -> Vec<BTreeSet<PathBuf>> {
    let reached: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> =
        graph.keys().map(|file| (file, reach(graph, file))).collect();
    let mut circles: Vec<BTreeSet<PathBuf>> = Vec::new();
    for (file, others) in &reached {
        let circle: BTreeSet<PathBuf> = others
            .iter()
            .filter(|other| reached.get(*other).is_some_and(|back| back.contains(file)))
            .map(|other| (*other).clone())
            .collect();
        if circle.len() > 1 && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles
}

/// All files that imports lead to from `file`; `file` itself only if they lead back.
fn reach<'a>(graph: &'a Graph, file: &PathBuf) -> BTreeSet<&'a PathBuf> {
    let mut reached = BTreeSet::new();
    let mut left: Vec<&PathBuf> = graph.get(file).into_iter().flatten().collect();
    while let Some(next) = left.pop() {
        if reached.insert(next) {
            left.extend(graph.get(next).into_iter().flatten());
        }
    }
    reached
}
