//! Calls of a source, wherever its author has them: in one chain, in several, or one by one on a
//! variable.

use std::collections::BTreeMap;
use std::ops::Range;

use quote::ToTokens as _;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{
    Expr, ExprMethodCall, File, Item, ItemMod, ItemUse, Pat, Path, Stmt, UseTree, Visibility,
};

use super::{EditError, comment, lines_of, parse, range, without_space};

/// One call.
pub(crate) struct Call {
    /// The method, with its types and arguments and without white space. Paths are those from the
    /// crate's root, also of what the source imports.
    pub(crate) words: String,
    /// Whether it is written like that, and nothing is said of it.
    pub(crate) is_plain: bool,
    /// What goes with it: the space before it, and a comment on its own line. If there is nothing
    /// but the call in a statement, as in `o = o.call();`, all of that.
    pub(super) range: Range<usize>,
}

/// The calls of a source in the order they have there, apart from those in modules within it.
pub(crate) fn calls(text: &str) -> Result<Vec<Call>, EditError> {
    let file = parse(text)?;
    let mut search = Search { text, imports: imports(&file), calls: Vec::new() };
    search.visit_file(&file);
    Ok(search.calls)
}

struct Search<'a> {
    text: &'a str,
    imports: BTreeMap<String, String>,
    calls: Vec<Call>,
}

impl Visit<'_> for Search<'_> {
    fn visit_expr_method_call(&mut self, call: &ExprMethodCall) {
        visit::visit_expr_method_call(self, call);
        let (range, is_commented) = self.own_range(call);
        self.found(call, range, is_commented);
    }

    fn visit_stmt(&mut self, statement: &Stmt) {
        let Some(call) = only_call(statement) else {
            return visit::visit_stmt(self, statement);
        };
        call.args.iter().for_each(|argument| self.visit_expr(argument));
        let own = range(statement.span());
        let lines = lines_of(self.text, own.clone());
        let is_commented = comment::end_of_those_after(self.text, own.end) > own.end;
        self.found(call, lines, is_commented);
    }

    /// Tests have operators of their own.
    fn visit_item_mod(&mut self, _: &ItemMod) {}
}

impl Search<'_> {
    fn found(&mut self, call: &ExprMethodCall, range: Range<usize>, is_commented: bool) {
        let own = self::range(call.dot_token.span()).start..self::range(call.span()).end;
        let written = words(call, &BTreeMap::new());
        let words = words(call, &self.imports);
        // The words have no comments in them.
        let is_bare = compact(&self.text[own]) == compact(&raw_words(call));
        let is_plain = is_bare && !is_commented && written == words;
        self.calls.push(Call { words, is_plain, range });
    }

    /// What goes with a call of a chain, and whether a comment of its own does.
    fn own_range(&self, call: &ExprMethodCall) -> (Range<usize>, bool) {
        let text = self.text;
        let receiver = range(call.receiver.span()).end;
        let dot = range(call.dot_token.span()).start;
        let end = range(call.span()).end;
        let before = comment::last(&text[receiver..dot]);
        let start = receiver + before.map_or(0, |(end, _)| end);
        let after = comment::end_of_those_after(text, end);
        let line = text[..dot].rfind('\n').map_or(0, |line| line + 1);
        let is_first = text[line..dot].trim().is_empty();
        let rest = text[after..].lines().next().unwrap_or_default();
        if !rest.trim().is_empty() {
            // What follows must not get into a comment.
            let is_after_line = before.is_some_and(|(_, is_line)| is_line);
            return (if is_after_line { dot } else { start }..end, false);
        }
        match is_first {
            true => (start..after, after > end),
            // It is about the line, which stays.
            false => (start..end, false),
        }
    }
}

/// The call that a statement consists of, on a variable that is then what comes of it.
fn only_call(statement: &Stmt) -> Option<&ExprMethodCall> {
    let is_named = |expr: &Expr, name: &syn::Ident| match expr {
        Expr::Path(path) => path.path.is_ident(name),
        _ => false,
    };
    let (name, value) = match statement {
        Stmt::Expr(Expr::Assign(assign), Some(_)) => match &*assign.left {
            Expr::Path(left) => (left.path.get_ident()?, &*assign.right),
            _ => return None,
        },
        Stmt::Local(local) => match &local.pat {
            Pat::Ident(left) => (&left.ident, &*local.init.as_ref()?.expr),
            _ => return None,
        },
        _ => return None,
    };
    match value {
        Expr::MethodCall(call) if is_named(&call.receiver, name) => Some(call),
        _ => None,
    }
}

/// A call without white space, with paths from the crate's root.
fn words(call: &ExprMethodCall, imports: &BTreeMap<String, String>) -> String {
    let mut call = call.clone();
    let mut paths = Paths { imports };
    call.turbofish.iter_mut().for_each(|it| paths.visit_angle_bracketed_generic_arguments_mut(it));
    call.args.iter_mut().for_each(|it| paths.visit_expr_mut(it));
    compact(&raw_words(&call))
}

fn raw_words(call: &ExprMethodCall) -> String {
    let turbofish = call.turbofish.to_token_stream();
    format!(".{}{turbofish}({})", call.method, call.args.to_token_stream())
}

/// Without white space, and without the commas that only long lines have.
fn compact(text: &str) -> String {
    without_space(text).replace(",)", ")").replace(",>", ">")
}

struct Paths<'a> {
    imports: &'a BTreeMap<String, String>,
}

impl VisitMut for Paths<'_> {
    fn visit_path_mut(&mut self, path: &mut Path) {
        visit_mut::visit_path_mut(self, path);
        let Some(first) = path.segments.first() else { return };
        let from_root = self.imports.get(&first.ident.to_string());
        if let Some(whole) = from_root.and_then(|it| syn::parse_str::<Path>(it).ok()) {
            let last = path.segments.first().map(|it| it.arguments.clone());
            let mut segments = whole.segments;
            if let (Some(end), Some(arguments)) = (segments.last_mut(), last) {
                end.arguments = arguments;
            }
            segments.extend(path.segments.iter().skip(1).cloned());
            path.segments = segments;
        }
        let is_root =
            path.segments.first().is_some_and(|it| it.ident == "crate" || it.ident == "self");
        if is_root && path.segments.len() > 1 {
            path.segments = path.segments.iter().skip(1).cloned().collect();
        }
    }
}

/// What the names that a source imports stand for.
pub(super) fn imports(file: &File) -> BTreeMap<String, String> {
    struct Imports(BTreeMap<String, String>);
    impl Visit<'_> for Imports {
        fn visit_item_use(&mut self, item: &ItemUse) {
            add(&item.tree, "", &mut self.0);
        }

        fn visit_item_mod(&mut self, _: &ItemMod) {}
    }
    let mut imports = Imports(BTreeMap::new());
    imports.visit_file(file);
    imports.0
}

/// The paths of what a source has from elsewhere and shows to everybody, under the same name.
pub(crate) fn exported(text: &str) -> Result<Vec<String>, EditError> {
    let file = parse(text)?;
    let mut names = BTreeMap::new();
    for item in &file.items {
        match item {
            Item::Use(item) if matches!(item.vis, Visibility::Public(_)) => {
                add(&item.tree, "", &mut names);
            }
            _ => {}
        }
    }
    let is_same = |(name, path): &(String, String)| path.ends_with(&format!("::{name}"));
    Ok(names.into_iter().filter(is_same).map(|(_, path)| path).collect())
}

fn add(tree: &UseTree, before: &str, imports: &mut BTreeMap<String, String>) {
    match tree {
        UseTree::Path(path) => add(&path.tree, &format!("{before}{}::", path.ident), imports),
        UseTree::Group(group) => group.items.iter().for_each(|it| add(it, before, imports)),
        // `{self}` is called as what it is in.
        UseTree::Name(name) if name.ident == "self" => {
            let whole = before.trim_end_matches("::");
            let name = whole.rsplit("::").next().unwrap_or(whole);
            imports.insert(name.to_owned(), whole.to_owned());
        }
        UseTree::Name(name) => {
            imports.insert(name.ident.to_string(), format!("{before}{}", name.ident));
        }
        UseTree::Rename(rename) => {
            let whole = format!("{before}{}", rename.ident);
            imports.insert(rename.rename.to_string(), whole.trim_end_matches("::self").to_owned());
        }
        UseTree::Glob(_) => {}
    }
}
