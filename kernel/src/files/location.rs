//! Locations in the tree of files: walking along paths, and changes of names.

use alloc::{collections::VecDeque, string::String, sync::Arc, vec::Vec};

use super::{
    inode::{Inode, new_number},
    tree::{Folder, Node, PathError, lock, root},
};

/// Maximum bytes of a name.
const MAX_NAME_BYTES: usize = 255;
/// Maximum bytes of a path.
pub const MAX_PATH_BYTES: usize = 4095;
/// Maximum number of links in a path.
const MAX_LINKS: u32 = 40;

/// A folder to which paths are relative.
#[derive(Clone)]
pub struct Base {
    /// The folder's path when it was found: absolute, without links.
    pub path: String,
    /// The folder.
    pub folder: Arc<Folder>,
}

impl Base {
    /// The root.
    pub fn root() -> Base {
        Base { path: String::from("/"), folder: root().clone() }
    }

    /// The folders from the root to this one; only itself if it has moved since.
    fn folders(&self) -> Vec<(String, Arc<Folder>)> {
        let mut folders: Vec<(String, Arc<Folder>)> = Vec::new();
        for part in self.path.split('/').filter(|part| !part.is_empty()) {
            let here = folders.last().map_or_else(|| root().clone(), |(_, folder)| folder.clone());
            match here.get(part) {
                Some(Node::Folder(folder)) => folders.push((part.into(), folder)),
                _ => break,
            }
        }
        let found = folders.last().map_or_else(|| root().clone(), |(_, folder)| folder.clone());
        if !Arc::ptr_eq(&found, &self.folder) {
            folders = Vec::from([(self.path.clone(), self.folder.clone())]);
        }
        folders
    }

    /// Returns whether the folder still has its path.
    pub fn is_there(&self) -> bool {
        let found = locate(&Base::root(), &self.path, false).and_then(Location::existing);
        matches!(found, Ok(Node::Folder(folder)) if Arc::ptr_eq(&folder, &self.folder))
    }
}

/// A location in the tree, which may be empty.
pub struct Location {
    /// The folder that contains it. `None` for the root, and for a program's folder that was moved
    /// or removed since, whose name is unknown.
    parent: Option<Arc<Folder>>,
    name: String,
    /// The folders from the root to `parent`; for a folder, to itself.
    folders: Vec<(String, Arc<Folder>)>,
    /// The node at the location.
    pub node: Option<Node>,
    /// Whether the path ended with `/`, so that it must name a folder.
    wants_folder: bool,
}

/// Finds the location of `path`, relative to the folder `base`. A link at its end is followed if
/// `follows` is set.
///
/// # Errors
/// A folder on the path is missing or not a folder, or there are too many links.
pub fn locate(base: &Base, path: &str, follows: bool) -> Result<Location, PathError> {
    if path.is_empty() {
        return Err(PathError::Missing);
    }
    if path.len() > MAX_PATH_BYTES {
        return Err(PathError::TooLong);
    }
    let _tree = lock();
    let folders = if path.starts_with('/') { Vec::new() } else { base.folders() };
    let wants_folder = path.ends_with('/') || path.ends_with("/.");
    let mut walk = Walk { folders, rest: parts(path), links: 0 };
    while let Some(part) = walk.rest.pop_front() {
        if let Some((parent, node)) = walk.step(&part, follows || wants_folder)? {
            let (parent, folders) = (Some(parent), walk.folders);
            return Ok(Location { parent, name: part, folders, node, wants_folder });
        }
    }
    let mut above = walk.folders.iter().rev();
    let Some((name, itself)) = above.next().cloned() else { return Ok(Location::of_root()) };
    let parent = above.next().map_or_else(|| root().clone(), |(_, folder)| folder.clone());
    let is_there = parent.get(&name).is_some_and(|node| node.is(&Node::Folder(itself.clone())));
    let (parent, node) = (is_there.then_some(parent), Some(Node::Folder(itself)));
    Ok(Location { parent, name, folders: walk.folders, node, wants_folder })
}

/// The parts of a path.
fn parts(path: &str) -> VecDeque<String> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").map(String::from).collect()
}

/// End of a walk: the folder, and the node in it.
type WalkEnd = (Arc<Folder>, Option<Node>);

/// A walk along a path.
struct Walk {
    /// The folders so far, from the root on.
    folders: Vec<(String, Arc<Folder>)>,
    /// The remaining parts.
    rest: VecDeque<String>,
    /// Number of links followed.
    links: u32,
}

impl Walk {
    /// Walks to the next part. Returns the folder and the node if the walk ends there: at the last
    /// part, if it is not a folder.
    fn step(&mut self, part: &str, follows: bool) -> Result<Option<WalkEnd>, PathError> {
        if part == ".." {
            self.folders.pop();
            return Ok(None);
        }
        if part.len() > MAX_NAME_BYTES {
            return Err(PathError::TooLong);
        }
        let here = self.folders.last().map_or_else(|| root().clone(), |(_, folder)| folder.clone());
        let is_last = self.rest.is_empty();
        match here.get(part) {
            Some(Node::Folder(folder)) => self.folders.push((part.into(), folder)),
            Some(Node::Link(_, target)) if !is_last || follows => self.follow(&target)?,
            Some(_) if !is_last => return Err(PathError::NotFolder),
            None if !is_last => return Err(PathError::Missing),
            node => return Ok(Some((here, node))),
        }
        Ok(None)
    }

    /// Puts the parts of a link's target before the rest.
    fn follow(&mut self, target: &str) -> Result<(), PathError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(PathError::Links);
        }
        if target.starts_with('/') {
            self.folders.clear();
        }
        parts(target).into_iter().rev().for_each(|part| self.rest.push_front(part));
        Ok(())
    }
}

impl Location {
    fn of_root() -> Location {
        let node = Some(Node::Folder(root().clone()));
        Location {
            parent: None,
            name: String::new(),
            folders: Vec::new(),
            node,
            wants_folder: true,
        }
    }

    /// The node.
    ///
    /// # Errors
    /// There is no node, or it is not a folder and the path requires one.
    pub fn existing(self) -> Result<Node, PathError> {
        match self.node {
            None => Err(PathError::Missing),
            Some(Node::Folder(folder)) => Ok(Node::Folder(folder)),
            Some(_) if self.wants_folder => Err(PathError::NotFolder),
            Some(node) => Ok(node),
        }
    }

    /// The absolute path of the folder, without links.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for (name, _) in &self.folders {
            path.push('/');
            path.push_str(name);
        }
        if path.is_empty() { String::from("/") } else { path }
    }

    /// Adds a node at the location, which must be empty.
    ///
    /// # Errors
    /// The location is not empty, or there is no room.
    pub fn add(self, node: Node) -> Result<(), PathError> {
        if self.node.is_some() {
            return Err(PathError::Exists);
        }
        if self.wants_folder && !matches!(node, Node::Folder(_)) {
            return Err(PathError::IsFolder);
        }
        let parent = self.parent.ok_or(PathError::Exists)?;
        let _tree = lock();
        // Another program may have added the name in the meantime.
        if parent.get(&self.name).is_some() {
            return Err(PathError::Exists);
        }
        parent.add(&self.name, node)
    }

    /// The node at the location, or a new empty file.
    ///
    /// # Errors
    /// The node is a folder, or there is no room.
    pub fn file_or_new(&self) -> Result<Node, PathError> {
        let parent = match (&self.node, &self.parent) {
            (Some(Node::Folder(_)), _) | (_, None) => return Err(PathError::IsFolder),
            (Some(_), _) if self.wants_folder => return Err(PathError::NotFolder),
            (Some(node), _) => return Ok(node.clone()),
            (None, _) if self.wants_folder => return Err(PathError::IsFolder),
            (None, Some(parent)) => parent,
        };
        let _tree = lock();
        if let Some(node) = parent.get(&self.name) {
            return Ok(node);
        }
        let node = Node::File(Inode::empty());
        parent.add(&self.name, node.clone())?;
        Ok(node)
    }

    /// Adds an empty file at the location.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn new_file(self) -> Result<Node, PathError> {
        let node = Node::File(Inode::empty());
        self.add(node.clone())?;
        Ok(node)
    }

    /// Adds an empty folder at the location.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn make_folder(self) -> Result<(), PathError> {
        self.add(Node::Folder(Folder::new()))
    }

    /// Adds a symbolic link at the location.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn make_link(self, target: &str) -> Result<(), PathError> {
        self.add(Node::Link(new_number(), target.into()))
    }

    /// Fails if the name has another node now, or its folder was removed. The tree is locked.
    fn is_unchanged(&self, parent: &Folder) -> Result<(), PathError> {
        parent.check_there()?;
        let number = |node: &Node| node.number();
        let now = parent.get(&self.name);
        let is_same = now.as_ref().map(number) == self.node.as_ref().map(number);
        if is_same { Ok(()) } else { Err(PathError::Changed) }
    }

    /// Removes the name of an empty folder if `of_folder` is set, or of any other node.
    ///
    /// # Errors
    /// The name has changed, there is no such node, the folder is not empty, or the kernel owns the
    /// name.
    pub fn remove(self, of_folder: bool) -> Result<(), PathError> {
        let node = self.node.as_ref().ok_or(PathError::Missing)?;
        if matches!(node, Node::Folder(_)) && !of_folder {
            return Err(PathError::IsFolder);
        }
        let parent = self.parent.as_ref().ok_or(PathError::Fixed)?;
        let _tree = lock();
        self.is_unchanged(parent)?;
        match node {
            Node::Folder(folder) if !folder.is_empty() => return Err(PathError::NotEmpty),
            Node::Folder(_) => {}
            _ if of_folder || self.wants_folder => return Err(PathError::NotFolder),
            Node::File(_) | Node::Link(..) => {}
            Node::Program | Node::Device(_) | Node::Text(_) => return Err(PathError::Fixed),
        }
        parent.unlink(&self.name);
        Ok(())
    }

    /// Moves the node to another location, replacing a node of the same kind there.
    ///
    /// # Errors
    /// A name has changed, there is no node here, the other location has a node of another kind or
    /// a folder that is not empty, or a folder would be moved into itself.
    pub fn rename(self, to: Location, may_replace: bool) -> Result<(), PathError> {
        let node = self.node.clone().ok_or(PathError::Missing)?;
        let (Some(from), Some(into)) = (&self.parent, &to.parent) else {
            return Err(PathError::Fixed);
        };
        let _tree = lock();
        self.is_unchanged(from)?;
        to.is_unchanged(into)?;
        if to.node.as_ref().is_some_and(|there| there.is(&node)) && may_replace {
            return Ok(());
        }
        to.admits(&node, may_replace)?;
        into.unlink(&to.name);
        from.remove(&self.name);
        into.add(&to.name, node)
    }

    /// Fails unless a node may be moved here.
    fn admits(&self, node: &Node, may_replace: bool) -> Result<(), PathError> {
        if let Node::Folder(moved) = node
            && self.folders.iter().any(|(_, folder)| Arc::ptr_eq(folder, moved))
        {
            return Err(PathError::Invalid);
        }
        let is_file = matches!(node, Node::File(_) | Node::Link(..));
        let is_folder = matches!(node, Node::Folder(_));
        match &self.node {
            _ if !is_file && !is_folder => Err(PathError::Fixed),
            Some(_) if !may_replace => Err(PathError::Exists),
            Some(Node::Folder(_)) if is_file => Err(PathError::IsFolder),
            Some(Node::Folder(there)) if !there.is_empty() => Err(PathError::NotEmpty),
            None | Some(Node::Folder(_)) if is_folder => Ok(()),
            Some(_) if is_folder => Err(PathError::NotFolder),
            _ if self.wants_folder => Err(PathError::NotFolder),
            None | Some(Node::File(_) | Node::Link(..)) => Ok(()),
            Some(_) => Err(PathError::Fixed),
        }
    }
}
