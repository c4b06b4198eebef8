//! The functions that a text names: by their whole names, or else by parts of these.

use std::borrow::Cow;

use super::short::bare;

/// A function to choose from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    /// The name that is shown.
    pub(super) name: &'a str,
    /// All names of its address.
    pub(super) aliases: &'a [String],
}

/// The places of the functions that `text` names best: a name that is equal counts more than one
/// that has the text as a part.
pub(super) fn named(functions: &[Named<'_>], text: &str) -> Vec<usize> {
    let ranks: [&dyn Fn(&Named<'_>) -> bool; 6] = [
        &|of| of.name == text || typed(of.name) == text || of.aliases.iter().any(|it| it == text),
        &|of| uncloned(of.name) == uncloned(text),
        &|of| typed(of.name).strip_suffix(text).is_some_and(|front| front.ends_with('/')),
        &|of| {
            let name = bare(of.name);
            name.strip_suffix(text)
                .is_some_and(|path| path.is_empty() || path.ends_with([':', ' ']))
        },
        &|of| of.name.contains(text),
        &|of| bare(of.name).contains(text),
    ];
    let of_rank = |is_it: &&dyn Fn(&Named<'_>) -> bool| -> Vec<usize> {
        let all = functions.iter().enumerate();
        all.filter(|(_, of)| is_it(of)).map(|(place, _)| place).collect()
    };
    ranks.iter().map(of_rank).find(|found| !found.is_empty()).unwrap_or_default()
}

/// A name without the remark of `c++filt` that it is a compiler's copy: `f(int) [clone .isra.0]`.
fn uncloned(name: &str) -> &str {
    name.split(" [clone ").next().unwrap_or_default()
}

/// A function's name as it is typed most easily: `a.c:helper` for `helper (a.c)`.
pub(super) fn typed(function: &str) -> Cow<'_, str> {
    let parts = function.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
    match parts.filter(|(_, file)| !file.contains(['(', ')'])) {
        Some((name, file)) => format!("{file}:{name}").into(),
        None => function.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_several_files_can_be_typed() {
        for (function, expected) in [
            ("helper (same_a.c)", "same_a.c:helper"),
            ("helper(int) (a.cc)", "a.cc:helper(int)"),
            ("takes(void (*)(int, char), int)", "takes(void (*)(int, char), int)"),
            ("Op::operator()(int) const", "Op::operator()(int) const"),
        ] {
            assert_eq!(typed(function), expected);
        }
    }

    #[test]
    fn whole_names_count_more_than_parts_of_names() {
        let aliases = ["__libc_malloc".to_owned(), "malloc".to_owned()];
        let names = [
            ("_int_malloc", &[][..]),
            ("__GI___libc_malloc", &aliases),
            ("malloc_consolidate", &[]),
            ("helper (/x/d1/util.c)", &[]),
            ("helper (/x/d2/util.c)", &[]),
            ("unsigned long geo::chase<int>(int)", &[]),
            ("geo::chaser(int)", &[]),
        ];
        let functions = names.map(|(name, aliases)| Named { name, aliases });
        for (text, expected) in [
            ("malloc", &[1][..]),
            ("__libc_malloc", &[1]),
            ("mallo", &[0, 1, 2]),
            ("/x/d2/util.c:helper", &[4]),
            ("d2/util.c:helper", &[4]),
            ("2/util.c:helper", &[]),
            ("util.c:helper", &[3, 4]),
            ("chase", &[5]),
            ("geo::chas", &[5, 6]),
            ("geo::chaser(int) [clone .isra.0]", &[6]),
        ] {
            assert_eq!(named(&functions, text), expected, "{text}");
        }
    }
}
