//! The functions that two traces have in common. Their names do not tell: a trace adds the source
//! file or the address to the name of a function if its build has another one of that name.

use std::{collections::BTreeMap, path::Path};

use crate::{recording::Identity, symbols::Mark};

/// A program's name, empty if there is only one, and a function.
pub(super) type Key = (String, String);
/// The functions of a trace.
pub(super) type Identities = BTreeMap<Key, Identity>;

/// For functions of both traces with another name in each: the name for both, by the name in the
/// first trace and by that in the second.
pub(super) fn common_names(a: &Identities, b: &Identities) -> [BTreeMap<Key, Key>; 2] {
    let mut names = [BTreeMap::new(), BTreeMap::new()];
    for (in_a, of_a) in a {
        let Some((in_b, of_b)) = best(in_a, of_a, b) else { continue };
        if in_a == in_b || best(in_b, of_b, a).is_none_or(|(back, _)| back != in_a) {
            continue;
        }
        // The longer name has the source file, or both have addresses.
        let name = if of_a.mark == Mark::None { in_b } else { in_a };
        names[0].insert(in_a.clone(), name.clone());
        names[1].insert(in_b.clone(), name.clone());
    }
    names
}

/// The function that is most alike, if none is as much alike.
fn best<'a>(key: &Key, of: &Identity, others: &'a Identities) -> Option<(&'a Key, &'a Identity)> {
    let of_program = others.iter().filter(|((program, _), _)| *program == key.0);
    let alike: Vec<_> =
        of_program.filter_map(|other| Some((likeness(of, other.1)?, other))).collect();
    let most = alike.iter().map(|(likeness, _)| *likeness).max()?;
    let mut best = alike.into_iter().filter(|(likeness, _)| *likeness == most);
    let (_, first) = best.next()?;
    best.next().is_none().then_some(first)
}

/// How much alike the origins of two functions of one name are; `None` if they are different ones.
fn likeness(a: &Identity, b: &Identity) -> Option<usize> {
    if a.name != b.name || a.object.as_ref().zip(b.object.as_ref()).is_some_and(|(a, b)| a != b) {
        return None;
    }
    match (a.mark, b.mark) {
        (Mark::None, Mark::None) => Some(1),
        (Mark::Rank { .. }, _) | (_, Mark::Rank { .. }) => (a.mark == b.mark).then_some(1),
        _ => {
            let [a_path, b_path] = [a, b].map(|of| of.source.as_deref().map(Path::new));
            let (a_path, b_path) = a_path.zip(b_path)?;
            let parts = a_path.components().rev().zip(b_path.components().rev());
            let equal = parts.take_while(|(a, b)| a == b).count();
            // Files of one name in several folders: the folder counts, too.
            let needed = if a.mark == Mark::Path && b.mark == Mark::Path { 2 } else { 1 };
            (equal >= needed).then_some(equal)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identities(all: &[(&str, &str, Mark)]) -> Identities {
        let identity = |(shown, source, mark): &(&str, &str, Mark)| {
            let source = (!source.is_empty()).then(|| (*source).to_owned());
            let identity = Identity { name: "helper".into(), source, mark: *mark, object: None };
            ((String::new(), (*shown).to_owned()), identity)
        };
        all.iter().map(identity).collect()
    }

    fn pairs(a: &Identities, b: &Identities) -> Vec<[String; 3]> {
        let [of_a, of_b] = common_names(a, b);
        let pair = |((_, in_b), name): (&Key, &Key)| {
            let in_a = of_a.iter().find(|(_, of)| *of == name).map(|((_, in_a), _)| in_a.clone());
            [in_a.unwrap_or_default(), in_b.clone(), name.1.clone()]
        };
        of_b.iter().map(pair).collect()
    }

    #[test]
    fn a_name_that_one_build_has_once_is_that_of_the_same_source_file() {
        let a = identities(&[("helper", "old/a.c", Mark::None)]);
        let b = [("helper (a.c)", "new/a.c", Mark::Source), ("helper (b.c)", "b.c", Mark::Source)];
        assert_eq!(pairs(&a, &identities(&b)), [["helper", "helper (a.c)", "helper (a.c)"]]);
        assert!(pairs(&a, &identities(&b[1..])).is_empty(), "another file's");
        let [one, other] = ["helper (d1/u.c)", "helper (d2/u.c)"];
        let a = identities(&[(one, "x/d1/u.c", Mark::Path)]);
        let b = [(other, "y/d2/u.c", Mark::Path), ("helper (y/d1/u.c)", "y/d1/u.c", Mark::Path)];
        assert_eq!(pairs(&a, &identities(&b)), [[one, "helper (y/d1/u.c)", one]]);
        assert!(pairs(&a, &identities(&b[..1])).is_empty(), "another folder's");
    }

    #[test]
    fn without_sources_equal_numbers_match_by_the_order_of_addresses() {
        let rank = |at, of| Mark::Rank { at, of };
        let a = identities(&[("helper@0x1", "", rank(0, 2)), ("helper@0x2", "", rank(1, 2))]);
        let b = identities(&[("helper@0x5", "", rank(0, 2)), ("helper@0x6", "", rank(1, 2))]);
        let expected = [
            ["helper@0x1", "helper@0x5", "helper@0x1"],
            ["helper@0x2", "helper@0x6", "helper@0x2"],
        ];
        assert_eq!(pairs(&a, &b), expected);
        let b = identities(&[("helper@0x5", "", rank(0, 3)), ("helper@0x6", "", rank(2, 3))]);
        assert!(pairs(&a, &b).is_empty());
    }
}
