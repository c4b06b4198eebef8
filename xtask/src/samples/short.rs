//! Names of functions in a limited number of columns.

use crate::recording::KERNEL_MARK;

/// Text between a type and its trait.
const AS: &str = " as ";

/// A function's name in at most `columns` columns: of a longer one the parameters are left out,
/// then the arguments of templates and generic types, then the paths of a Rust method's type and
/// trait, then the trait, and at last the beginning. The mark of the kernel's functions stays.
pub(crate) fn short_function(name: &str, columns: usize) -> String {
    if let Some(name) = name.strip_prefix(KERNEL_MARK) {
        let left = columns.saturating_sub(KERNEL_MARK.len());
        return format!("{KERNEL_MARK}{}", short_function(name, left));
    }
    let fits = |name: &str| name.chars().count() <= columns;
    if fits(name) {
        return name.to_owned();
    }
    if name.starts_with('[') && name.ends_with(']') {
        return without_middle(name, columns);
    }
    let mut short = without_parameters(name).to_owned();
    let steps: [fn(&str) -> String; 3] = [without_arguments, without_paths, without_trait];
    for shorten in steps {
        if fits(&short) {
            break;
        }
        short = shorten(&short);
    }
    last_columns(&short, columns)
}

/// The names in at most `columns` columns each, as [`short_function`]; those that would look alike
/// from where they differ on.
pub(crate) fn short_functions(names: &[&str], columns: usize) -> Vec<String> {
    let short: Vec<String> = names.iter().map(|name| short_function(name, columns)).collect();
    let distinct = |(at, name): (usize, &&str)| {
        let others = names.iter().enumerate();
        let alike = others.filter(|(other, of)| short[*other] == short[at] && *of != name);
        match alike.map(|(_, other)| equal_letters(name, other)).max() {
            Some(equal) => from_letter(name, equal, columns),
            None => short[at].clone(),
        }
    };
    names.iter().enumerate().map(distinct).collect()
}

/// The number of letters with which both begin.
fn equal_letters(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
}

/// The part of a name from a letter on and the function's own name, in at most `columns` columns.
/// The mark of the kernel's functions stays.
fn from_letter(name: &str, letter: usize, columns: usize) -> String {
    if let Some(name) = name.strip_prefix(KERNEL_MARK) {
        let mark = KERNEL_MARK.chars().count();
        let part = from_letter(name, letter.saturating_sub(mark), columns.saturating_sub(mark));
        return format!("{KERNEL_MARK}{part}");
    }
    let whole: Vec<char> = name.chars().collect();
    let of = |range: std::ops::Range<usize>| whole[range].iter().collect::<String>();
    let own = own_name(name);
    let own_start = name[..own.start].chars().count();
    let own_length = name[own].chars().count();
    // Letters before it that show where in the name it is.
    let start = letter.saturating_sub(columns / 4);
    let before = if start == 0 { "" } else { "…" };
    // As much as fits from there on.
    let part = |columns: usize| match whole.len() - start {
        rest if rest <= columns => of(start..whole.len()),
        _ => of(start..start + columns.saturating_sub(1)) + "…",
    };
    let left = columns.saturating_sub(before.chars().count());
    let own = of(own_start..own_start + own_length.min(columns / 3));
    let beside = left.saturating_sub(own.chars().count());
    if own_start + own_length <= start {
        // The arguments differ, behind the function's name.
        return format!("{own}{before}{}", part(beside));
    }
    if start + beside <= own_start {
        return format!("{before}{}{own}", part(beside));
    }
    format!("{before}{}", part(left))
}

/// The place of a function's own name: the last part of its path, without arguments.
fn own_name(name: &str) -> std::ops::Range<usize> {
    let path = without_parameters(name);
    let (mut depth, mut start, mut end) = (0_u32, 0, path.len());
    for (at, letter, bracket) in letters(path) {
        match (bracket, letter) {
            (Some(Bracket::Opens), _) => {
                end = if depth == 0 { at } else { end };
                depth += 1;
            }
            (Some(Bracket::Closes), _) => depth = depth.saturating_sub(1),
            (None, ':' | ' ') if depth == 0 => (start, end) = (at + 1, path.len()),
            _ => (),
        }
    }
    start..end.max(start)
}

/// A function's name without parameters and the arguments of templates and generic types.
pub(super) fn bare(name: &str) -> String {
    without_arguments(without_parameters(name)).replace("<…>", "")
}

/// The name of a Rust method, `<path::Type as path::Trait>::method`, without the paths.
fn without_paths(name: &str) -> String {
    let Some(of) = bracketed(name) else { return name.to_owned() };
    let parts: Vec<String> = of.split(AS).map(last_part).collect();
    format!("<{}>{}", parts.join(AS), &name[of.len() + 2..])
}

/// The name of a Rust method without its trait.
fn without_trait(name: &str) -> String {
    let Some((of, (receiver, _))) = bracketed(name).and_then(|of| Some((of, of.split_once(AS)?)))
    else {
        return name.to_owned();
    };
    format!("<{receiver}>{}", &name[of.len() + 2..])
}

/// The text in the brackets with which the name of a Rust method begins.
fn bracketed(name: &str) -> Option<&str> {
    let inside = name.strip_prefix('<')?;
    let mut depth = 1_u32;
    for (at, _, bracket) in letters(inside) {
        depth += u32::from(bracket == Some(Bracket::Opens));
        depth -= u32::from(bracket == Some(Bracket::Closes));
        if depth == 0 {
            return Some(&inside[..at]);
        }
    }
    None
}

/// An angle bracket of the arguments of a template or generic type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bracket {
    Opens,
    Closes,
}

/// The letters of a name with their places. The arrow of a return type and the sign of an operator,
/// `operator<<`, are no brackets.
fn letters(name: &str) -> impl Iterator<Item = (usize, char, Option<Bracket>)> {
    name.char_indices().map(move |(at, letter)| {
        let bracket = match letter {
            '<' => Some(Bracket::Opens),
            '>' if !name[..at].ends_with('-') => Some(Bracket::Closes),
            _ => None,
        };
        (at, letter, bracket.filter(|_| !is_of_operator(&name[..at])))
    })
}

/// Returns whether a letter behind this part of a name belongs to the sign of an operator.
fn is_of_operator(before: &str) -> bool {
    let word = before.trim_end_matches(['<', '>', '=', '-']).strip_suffix("operator");
    word.is_some_and(|of| !of.ends_with(|last: char| last.is_alphanumeric() || last == '_'))
}

/// A type without its path: `&[Item]` of `&[path::Item]`.
fn last_part(name: &str) -> String {
    let start = name.find(|letter: char| letter.is_alphanumeric() || letter == '_');
    let (signs, path) = name.split_at(start.unwrap_or_default());
    format!("{signs}{}", path.rsplit("::").next().unwrap_or_default())
}

/// A C++ function's name without its parameters and what follows them.
fn without_parameters(name: &str) -> &str {
    // Only qualifiers follow parameters. In the arguments of a generic type a bracket follows, and
    // a Go method's receiver has its name behind it: `main.(*Tree).insert`.
    let is_last = |rest: &str| !rest.contains('>') && (rest.is_empty() || rest.starts_with(' '));
    let Some(end) = name.rfind(')').filter(|end| is_last(&name[end + 1..])) else { return name };
    let mut depth = 0;
    for (at, letter) in name[..=end].char_indices().rev() {
        match letter {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => (),
        }
        let is_anonymous = name[at..].starts_with("(anonymous namespace)");
        // The parentheses belong to a part of the name: `operator()`, `(anonymous namespace)`.
        if depth == 0 && !is_anonymous && !name[..at].ends_with("operator") {
            return if at == 0 { name } else { name[..at].trim_end() };
        }
        if depth == 0 {
            return name;
        }
    }
    name
}

/// A name with `…` for the arguments in brackets. The brackets with which the name of a Rust method
/// begins have its type, which stays.
fn without_arguments(name: &str) -> String {
    let Some(of) = bracketed(name) else { return elided(name) };
    format!("<{}>{}", elided(of), elided(&name[of.len() + 2..]))
}

/// A text with `…` for the contents of its outermost angle brackets.
fn elided(text: &str) -> String {
    let (mut depth, mut short) = (0_u32, String::new());
    for (_, letter, bracket) in letters(text) {
        if bracket == Some(Bracket::Closes) {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            short.push(letter);
        }
        if bracket == Some(Bracket::Opens) {
            if depth == 0 {
                short.push('…');
            }
            depth += 1;
        }
    }
    short
}

/// The beginning and the end of the name of a file, `[libm.so.6]`, that is longer than `columns`
/// columns: the version and the machine are in the middle.
fn without_middle(name: &str, columns: usize) -> String {
    let kept = columns.saturating_sub(1);
    let end: String = last_columns(name, kept / 3 + 1);
    name.chars().take(kept - kept / 3).chain(end.chars()).collect()
}

/// The end of a name that is longer than `columns` columns: a path's last parts are the most
/// informative.
pub(super) fn last_columns(name: &str, columns: usize) -> String {
    let length = name.chars().count();
    if length <= columns {
        return name.to_owned();
    }
    let kept = name.chars().skip(length + 1 - columns.max(1));
    std::iter::once('…').chain(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_functions_lose_their_parameters_first() {
        let vector = "std::vector<int, std::allocator<int> >";
        let name = format!("double geo::norm<double>({vector} const&, int) const");
        assert_eq!(short_function(&name, 200), name);
        assert_eq!(short_function(&name, 40), "double geo::norm<double>");
        assert_eq!(short_function(&name, 22), "double geo::norm<…>");
        assert_eq!(short_function(&name, 10), "…::norm<…>");
        let called = format!("Less::operator()({vector}) const");
        assert_eq!(short_function(&called, 20), "Less::operator()");
        let hidden = "(anonymous namespace)::Parser::value(char const*, unsigned long)";
        assert_eq!(short_function(hidden, 40), "(anonymous namespace)::Parser::value");
        let rust = "<alloc::vec::Vec<T> as core::ops::Index<I>>::index";
        assert_eq!(short_function(rust, 30), "<Vec<…> as Index<…>>::index");
        assert_eq!(short_function(rust, 20), "<Vec<…>>::index");
        let called = "<alloc::Function as core::ops::FnOnce<(u8,)>>::call_once";
        assert_eq!(short_function(called, 40), "<Function as FnOnce<…>>::call_once");
        let kernel = "[k] <tally_kernel::files::streams::Stream>::read::<u8>";
        assert_eq!(short_function(kernel, 24), "[k] <Stream>::read::<…>");
        assert_eq!(short_function("<[a::b::Item] as c::Sort>::sort", 15), "<[Item]>::sort");
    }

    #[test]
    fn a_go_method_keeps_its_receiver() {
        for name in ["main.(*sieve[go.shape.int64_0]).above", "runtime.(*pageAlloc).grow.func1"] {
            assert_eq!(without_parameters(name), name);
        }
        assert_eq!(short_function("runtime.(*pageAlloc).grow.func1", 20), "…geAlloc).grow.func1");
    }

    #[test]
    fn the_sign_of_an_operator_is_no_bracket() {
        let less = "bool operator< <geo::Point<int>>(geo::Point<int> const&)";
        assert_eq!(short_function(less, 24), "bool operator< <…>");
        let shift = "std::ostream& operator<<(std::ostream&, geo::Point const&)";
        assert_eq!(short_function(shift, 30), "std::ostream& operator<<");
        assert_eq!(short_function(shift, 10), "…perator<<");
        assert_eq!(&shift[own_name(shift)], "operator<<");
        assert_eq!(bare("geo::operator>=(geo::Point<int>)"), "geo::operator>=");
        assert_eq!(elided("my_operator<int>::f"), "my_operator<…>::f");
    }

    #[test]
    fn names_that_would_look_alike_show_where_they_differ() {
        let names = ["space::Reader<First>::a_long_method", "space::Reader<Second>::a_long_method"];
        assert_eq!(short_function(names[0], 20), short_function(names[1], 20));
        let short = short_functions(&[names[0], "main", names[1], names[0]], 20);
        assert_eq!(
            short,
            ["…ader<First>:…a_long", "main", "…ader<Second>…a_long", "…ader<First>:…a_long"]
                .map(|name| name.to_owned())
        );
        assert!(short.iter().all(|name| name.chars().count() <= 20), "{short:?}");
        assert_eq!(short_functions(&["f(int)", "f(long)"], 20), ["f(int)", "f(long)"]);
        let names = ["int", "long"].map(|of| format!("[k] list::insert<a::key, std::pair<{of}>>"));
        let short = short_functions(&[&names[0], &names[1]], 28);
        assert_eq!(short, ["[k] insert…:pair<int>>", "[k] insert…:pair<long>>"]);
        assert_eq!(bare("doc::Parser<a<b>, c>::value(int) const"), "doc::Parser::value");
    }

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(last_columns("core::fmt::write", 16), "core::fmt::write");
        assert_eq!(last_columns("core::fmt::write", 10), "…mt::write");
        assert_eq!(last_columns("überlänge", 4), "…nge");
        let library = "[_multiarray.cpython-311-x86_64-linux-gnu.so]";
        assert_eq!(short_function(library, 30), "[_multiarray.cpython…x-gnu.so]");
    }
}
