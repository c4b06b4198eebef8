//! Imports of one crate: the files that use names defined in other files.
//!
//! A crate's modules are read from its root. A `use`, and a path of two or more segments anywhere
//! in the code, including arguments of macros, is an import from the file that defines the name.
//! Re-exports are followed. A re-export is an import of its own file only if the code there uses
//! the name. An import of a module alone does not count; the names used through it do. Code under
//! `#[cfg(test)]` and `pub(in …)` paths are left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Item, ItemMod, ItemUse, UseTree, parse::Parser};

/// Sources by path.
pub type Sources = BTreeMap<PathBuf, String>;
/// For each pair of files, the names that the first uses of the second.
pub type Imports = BTreeMap<(PathBuf, PathBuf), BTreeSet<String>>;

type Segments = Vec<String>;
/// Paths already looked up, with their modules: re-exports may form circles, or, as with `use a::a`
/// of another crate, be endless.
type Seen = BTreeSet<(usize, Segments)>;

/// Maximum of look-ups for one path.
const MOST_STEPS: usize = 64;

#[derive(Default)]
struct Module {
    file: PathBuf,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// Names bound by `use`, with their paths.
    bound: BTreeMap<String, Segments>,
    globs: Vec<Segments>,
    defined: BTreeSet<String>,
    /// All paths in the code, including those of private `use`.
    paths: Vec<Segments>,
    /// Names bound by `pub use`, with their paths.
    re_exported: Vec<(String, Segments)>,
    /// All names in the code except those of `use`.
    words: BTreeSet<String>,
}

struct Crate<'a> {
    sources: &'a Sources,
    modules: Vec<Module>,
}

/// All imports between different files of the crate with this root.
pub fn imports(sources: &Sources, root: &Path) -> Imports {
    let mut found = Crate { sources, modules: Vec::new() };
    let folder = root.parent().unwrap_or(Path::new(""));
    found.add_file(root, folder, None);
    let mut imports = Imports::new();
    for (index, module) in found.modules.iter().enumerate() {
        let re_exported = module.re_exported.iter().filter(|(name, _)| module.words.contains(name));
        for path in module.paths.iter().chain(re_exported.map(|(_, path)| path)) {
            if let Some(file) =
                found.definition(index, path, &mut Seen::new()).filter(|to| *to != module.file)
            {
                let name = path.last().cloned().unwrap_or_default();
                imports.entry((module.file.clone(), file)).or_default().insert(name);
            }
        }
    }
    imports
}

impl Crate<'_> {
    /// Reads the module in `file`, whose children lie in `folder`.
    fn add_file(&mut self, file: &Path, folder: &Path, parent: Option<usize>) -> usize {
        let text = self.sources.get(file).unwrap_or_else(|| panic!("no {}", file.display()));
        let parsed = syn::parse_file(text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let module = Module { file: file.to_owned(), parent, ..Module::default() };
        self.add(module, folder, &parsed.items)
    }

    fn add(&mut self, module: Module, folder: &Path, items: &[Item]) -> usize {
        let index = self.modules.len();
        self.modules.push(module);
        for item in items {
            let tokens = item.to_token_stream();
            match item {
                _ if starts_test(&tokens) => {}
                Item::Mod(child) => self.add_child(index, folder, child),
                _ => {
                    self.modules[index].defined.extend(defined(item));
                    self.modules[index].scan(tokens);
                }
            }
        }
        index
    }

    fn add_child(&mut self, parent: usize, folder: &Path, child: &ItemMod) {
        let name = child.ident.to_string();
        let inner = folder.join(&name);
        let index = match &child.content {
            Some((_, items)) => {
                let file = self.modules[parent].file.clone();
                let module = Module { file, parent: Some(parent), ..Module::default() };
                self.add(module, &inner, items)
            }
            None => match given_path(child) {
                Some(path) => {
                    let file = self.modules[parent].file.with_file_name(path);
                    let folder = file.parent().expect("a file has a folder").to_owned();
                    self.add_file(&file, &folder, Some(parent))
                }
                None => {
                    let [flat, deep] = [inner.with_extension("rs"), inner.join("mod.rs")];
                    let file = if self.sources.contains_key(&flat) { flat } else { deep };
                    self.add_file(&file, &inner, Some(parent))
                }
            },
        };
        self.modules[parent].children.insert(name, index);
    }

    /// File that defines the item named by `path` in `module`; `None` if another crate defines it,
    /// or if the item is a module.
    fn definition(&self, module: usize, path: &[String], seen: &mut Seen) -> Option<PathBuf> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.within(0, rest, seen),
            "self" => self.within(module, rest, seen),
            "super" => self.within_parent(self.modules[module].parent?, rest, seen),
            _ => self.lookup(module, path, seen),
        }
    }

    fn within_parent(&self, module: usize, path: &[String], seen: &mut Seen) -> Option<PathBuf> {
        match path.split_first() {
            Some((first, rest)) if first == "super" => {
                self.within_parent(self.modules[module].parent?, rest, seen)
            }
            _ => self.within(module, path, seen),
        }
    }

    /// Same as [`Self::definition`], for a path that starts at `module`. A name without a
    /// definition there is taken as defined by a macro of the module.
    fn within(&self, module: usize, path: &[String], seen: &mut Seen) -> Option<PathBuf> {
        let first = path.first()?;
        let own = || self.modules[module].file.clone();
        if self.modules[module].names(first) {
            self.lookup(module, path, seen)
        } else {
            Some(self.lookup(module, path, seen).unwrap_or_else(own))
        }
    }

    /// Same as [`Self::definition`], for a path whose first segment is a name in `module`.
    fn lookup(&self, index: usize, path: &[String], seen: &mut Seen) -> Option<PathBuf> {
        let (first, rest) = path.split_first()?;
        if seen.len() == MOST_STEPS || !seen.insert((index, path.to_vec())) {
            return None;
        }
        let module = &self.modules[index];
        if let Some(child) = module.children.get(first) {
            return self.within(*child, rest, seen);
        }
        if let Some(stands_for) = module.bound.get(first) {
            let whole = [stands_for, rest].concat();
            // `use a::{self}` next to a crate `a` names itself.
            return (whole != path).then(|| self.definition(index, &whole, seen))?;
        }
        if module.defined.contains(first) {
            return Some(module.file.clone());
        }
        let through = |glob: &Segments| {
            let whole = [&glob[..], path].concat();
            self.definition(index, &whole, seen)
        };
        module.globs.iter().find_map(through)
    }
}

impl Module {
    fn names(&self, name: &str) -> bool {
        self.children.contains_key(name)
            || self.bound.contains_key(name)
            || self.defined.contains(name)
    }

    /// Collects the paths and bindings of some code.
    fn scan(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += match token {
                _ if is_test(&tokens[at..]) => item_length(&tokens[at..]),
                TokenTree::Ident(word) if word == "use" => self.scan_use(&tokens, at),
                TokenTree::Ident(_) => {
                    let path = path(&tokens[at..]);
                    self.words.extend(path.iter().cloned());
                    let length = path.len() * 3 - 2;
                    let follows = at > 0 && is_colon(tokens.get(at - 1));
                    if path.len() > 1 && !follows {
                        self.paths.push(path);
                    }
                    length
                }
                TokenTree::Group(group) => {
                    if !is_visibility(group) {
                        self.scan(group.stream());
                    }
                    1
                }
                _ => 1,
            }
        }
    }

    /// Collects the `use` at `at`. Returns the number of its tokens.
    fn scan_use(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let is_pub = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word == "pub");
        // `pub use`, or `pub(crate) use`.
        let is_public = at > 0 && is_pub(&tokens[at - 1])
            || at > 1 && is_pub(&tokens[at - 2]) && matches!(tokens[at - 1], TokenTree::Group(_));
        let tokens = &tokens[at..];
        let end = tokens.iter().position(is_semicolon).map_or(tokens.len(), |end| end + 1);
        let item: TokenStream = tokens[..end].iter().cloned().collect();
        let parse = |input: syn::parse::ParseStream<'_>| input.parse::<ItemUse>();
        // `use<'a>` of a bound, or a macro's pattern.
        let Ok(item) = parse.parse2(item) else { return 1 };
        self.bind(Vec::new(), &item.tree, is_public);
        end
    }

    fn bind(&mut self, before: Segments, tree: &UseTree, is_public: bool) {
        let with = |name: &syn::Ident| [&before[..], &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.bind(with(&path.ident), &path.tree, is_public),
            UseTree::Name(name) if name.ident == "self" => {
                let binding = before.last().cloned().unwrap_or_default();
                self.bound.insert(binding, before);
            }
            UseTree::Name(name) => {
                self.bind_name(name.ident.to_string(), with(&name.ident), is_public);
            }
            UseTree::Rename(name) => {
                let path = if name.ident == "self" { before } else { with(&name.ident) };
                self.bind_name(name.rename.to_string(), path, is_public);
            }
            UseTree::Glob(_) => {
                if !is_public {
                    self.paths.push([&before[..], &["*".to_owned()]].concat());
                }
                self.globs.push(before);
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.bind(before.clone(), tree, is_public));
            }
        }
    }

    fn bind_name(&mut self, name: String, path: Segments, is_public: bool) {
        self.bound.insert(name.clone(), path.clone());
        if is_public { self.re_exported.push((name, path)) } else { self.paths.push(path) }
    }
}

/// Name that an item defines in its module.
fn defined(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// Path given by `#[path = "…"]`.
fn given_path(module: &ItemMod) -> Option<String> {
    let attribute = module.attrs.iter().find(|attribute| attribute.path().is_ident("path"))?;
    let syn::Expr::Lit(literal) = &attribute.meta.require_name_value().ok()?.value else {
        return None;
    };
    match &literal.lit {
        syn::Lit::Str(path) => Some(path.value()),
        _ => None,
    }
}

/// Path at the beginning of `tokens`: names separated by `::`.
fn path(tokens: &[TokenTree]) -> Segments {
    let mut segments = Vec::new();
    let mut rest = tokens;
    while let Some(TokenTree::Ident(name)) = rest.first() {
        segments.push(name.to_string());
        match rest {
            [_, a, b, next @ ..] if is_colon(Some(a)) && is_colon(Some(b)) => rest = next,
            _ => break,
        }
    }
    segments
}

fn is_colon(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == ':')
}

fn is_semicolon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';')
}

/// Returns whether a group is the `(in path)` of a visibility.
fn is_visibility(group: &proc_macro2::Group) -> bool {
    let first = group.stream().into_iter().next();
    group.delimiter() == Delimiter::Parenthesis
        && matches!(first, Some(TokenTree::Ident(word)) if word == "in")
}

fn starts_test(tokens: &TokenStream) -> bool {
    // Other attributes, such as documentation, may stand before.
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut at = 0;
    while matches!(&tokens[at..], [TokenTree::Punct(hash), ..] if hash.as_char() == '#') {
        if is_test(&tokens[at..]) {
            return true;
        }
        at += 2;
    }
    false
}

/// Returns whether `tokens` begin with `#[cfg(test)]` or `#[cfg(all(test, …))]`.
fn is_test(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Punct(hash), TokenTree::Group(attribute), ..] = tokens else { return false };
    let text = attribute.stream().to_string().replace(' ', "");
    hash.as_char() == '#' && (text == "cfg(test)" || text.starts_with("cfg(all(test,"))
}

/// Number of tokens up to the end of the item or field at their beginning.
fn item_length(tokens: &[TokenTree]) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Punct(punct) => matches!(punct.as_char(), ';' | ','),
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Ident(_) | TokenTree::Literal(_) => false,
    };
    tokens.iter().position(ends).map_or(tokens.len(), |end| end + 1)
}
