//! Edits of Rust sources: places are found in the syntax tree, and text is put there. Whatever else
//! is in the file, comments and layout included, stays as it is.
//!
//! Each edit has one that takes it back, byte for byte: [`declare`] and [`undeclare`],
//! [`add_call`] and [`remove_call`].

mod calls;
mod comment;
mod kind;
#[cfg(test)]
mod tests;

use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::{Expr, File, Item, ItemFn, ItemMod, Stmt};

pub(crate) use self::calls::{Call, calls, exported};
pub(crate) use self::kind::{Kind, kinds, with_version};

/// Why a source cannot be edited.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// Its author must make it Rust again.
    #[error("{line}:{column}: is no Rust: {reason}")]
    Syntax { line: usize, column: usize, reason: String },
    /// Its author must bring it back, or do the rest by hand.
    #[error("{line}: there is no `fn {function}` that ends with a call: add `{addition}` by hand")]
    NoChain {
        /// Of the function, or the last one if there is none.
        line: usize,
        function: String,
        addition: String,
    },
    /// Its author must take it out by hand.
    #[error("{line}: `mod {name}` has its text in place: take it out by hand")]
    Inline { line: usize, name: String },
}

pub(crate) fn parse(text: &str) -> Result<File, EditError> {
    syn::parse_file(text).map_err(|error| {
        let start = error.span().start();
        EditError::Syntax { line: start.line, column: start.column + 1, reason: error.to_string() }
    })
}

/// The modules that a source declares, in the order they have there.
pub(crate) fn declared(text: &str) -> Result<Vec<String>, EditError> {
    Ok(modules(&parse(text)?).map(|(_, module)| module.ident.to_string()).collect())
}

fn modules(file: &File) -> impl Iterator<Item = (usize, &ItemMod)> {
    file.items.iter().enumerate().filter_map(|(at, item)| match item {
        Item::Mod(module) => Some((at, module)),
        _ => None,
    })
}

/// The source with a module declared, `declaration` being as `pub mod name;`. One that is there
/// stays as it is. Among others it comes to its place in the alphabet, else before all items.
pub(crate) fn declare(text: &str, declaration: &str) -> Result<String, EditError> {
    let file = parse(text)?;
    let name = module_name(declaration);
    if modules(&file).any(|(_, module)| module.ident == name) {
        return Ok(text.to_owned());
    }
    let first = modules(&file).find(|(_, module)| module.content.is_none());
    let Some((first, _)) = first else {
        return Ok(match file.items.first() {
            Some(item) => {
                let at = paragraph_start(text, range(item.span()).start);
                spliced(text, at..at, &format!("{declaration}\n\n"))
            }
            None => format!("{text}\n{declaration}\n"),
        });
    };
    // Only those that follow each other without a line between them are in one order.
    let mut place = None;
    let mut end = None;
    for item in &file.items[first..] {
        let Item::Mod(module) = item else { break };
        let here = range(module.span());
        if end.is_some_and(|end: usize| text[end..here.start].contains("\n\n")) {
            break;
        }
        if module.ident.to_string().as_str() < name {
            // What follows on its line is about it.
            place = Some(text[here.end..].find('\n').map_or(text.len(), |line| here.end + line));
        }
        end = Some(here.end);
    }
    Ok(match place {
        Some(end) => spliced(text, end..end, &format!("\n{declaration}")),
        None => {
            let start = range(file.items[first].span()).start;
            let at = paragraph_start(text, start);
            spliced(text, at..at, &format!("{declaration}\n"))
        }
    })
}

/// The declaration of a module as its author has it: with its documentation, its attributes, and
/// what is said of it on its line. None if there is none.
pub(crate) fn declaration(text: &str, name: &str) -> Result<Option<String>, EditError> {
    let file = parse(text)?;
    let found = modules(&file).find(|(_, module)| module.ident == name);
    Ok(found.map(|(_, module)| text[lines_of(text, range(module.span()))].trim().to_owned()))
}

/// The source without the declaration of a module, and what belongs to it. Comments above it stay.
pub(crate) fn undeclare(text: &str, name: &str) -> Result<String, EditError> {
    let file = parse(text)?;
    let Some((_, module)) = modules(&file).find(|(_, module)| module.ident == name) else {
        return Ok(text.to_owned());
    };
    if module.content.is_some() {
        let line = module.span().start().line;
        return Err(EditError::Inline { line, name: name.to_owned() });
    }
    let Range { start, end } = lines_of(text, range(module.span()));
    let is_line = text[..end].ends_with('\n') || end == text.len();
    let is_first = text[..start].is_empty() || text[..start].ends_with("\n\n");
    let is_last = is_line && (text[end..].is_empty() || text[end..].starts_with('\n'));
    Ok(match (is_first && is_last, text[end..].is_empty()) {
        // It stood alone, and its line above or below goes with it.
        (true, true) => spliced(text, start.saturating_sub(1)..end, ""),
        (true, false) => spliced(text, start..end + 1, ""),
        (false, _) => spliced(text, start..end, ""),
    })
}

/// What goes with something that goes: its lines, with the comment that they end with. If it shares
/// them with others, only itself.
fn lines_of(text: &str, Range { start, end }: Range<usize>) -> Range<usize> {
    let line = text[..start].rfind('\n').map_or(0, |line| line + 1);
    let after = comment::end_of_those_after(text, end);
    let rest = text[after..].find('\n').map_or(text.len(), |line| after + line + 1);
    let is_alone = text[line..start].trim().is_empty() && text[after..rest].trim().is_empty();
    match is_alone {
        true => line..rest,
        false => start..end,
    }
}

/// Where whatever precedes an item, and belongs to it, begins.
fn paragraph_start(text: &str, item: usize) -> usize {
    let mut start = item;
    for line in text[..item].split_inclusive('\n').rev() {
        let line_text = line.trim_start();
        if !line_text.starts_with("//") || line_text.starts_with("//!") {
            break;
        }
        start -= line.len();
    }
    start
}

/// What a declaration as `pub mod name;` is called.
pub(crate) fn module_name(declaration: &str) -> &str {
    let words = declaration.trim_end_matches(';');
    words.rsplit(' ').next().unwrap_or(words)
}

pub(crate) fn without_space(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The source with one more call at the end of the chain that a function ends with. `call` is as
/// `.method(argument)`.
pub(crate) fn add_call(text: &str, function: &str, call: &str) -> Result<String, EditError> {
    let file = parse(text)?;
    let no_chain = || {
        let line = match named(&file, function) {
            Some(found) => found.sig.ident.span().start().line,
            None => text.lines().count().max(1),
        };
        EditError::NoChain { line, function: function.to_owned(), addition: call.to_owned() }
    };
    let chain = chain(&file, function).ok_or_else(no_chain)?;
    let Range { start, end } = range(chain.span());
    let line = text[..start].rfind('\n').map_or(0, |line| line + 1);
    let indent: String = text[line..start].chars().take_while(|c| c.is_whitespace()).collect();
    // What is said on its line is about what is there.
    let end = comment::end_of_those_after(text, end);
    Ok(spliced(text, end..end, &format!("\n{indent}    {call}")))
}

/// The source without a call.
pub(crate) fn remove_call(text: &str, call: &Call) -> String {
    spliced(text, call.range.clone(), "")
}

/// The chain that a function ends with: what it gives, or what it gives in an `Ok`.
fn chain<'f>(file: &'f File, function: &str) -> Option<&'f Expr> {
    let mut tail = match named(file, function)?.block.stmts.last()? {
        Stmt::Expr(tail, None) | Stmt::Expr(tail @ Expr::Return(_), Some(_)) => tail,
        _ => return None,
    };
    loop {
        tail = match tail {
            Expr::Return(given) => given.expr.as_deref()?,
            Expr::Call(call) if is_wrapper(&call.func) => call.args.first()?,
            Expr::MethodCall(_) | Expr::Call(_) | Expr::Path(_) | Expr::Try(_) => {
                return Some(tail);
            }
            _ => return None,
        }
    }
}

fn is_wrapper(function: &Expr) -> bool {
    matches!(function, Expr::Path(path) if path.path.is_ident("Ok") || path.path.is_ident("Some"))
}

fn named<'f>(file: &'f File, function: &str) -> Option<&'f ItemFn> {
    file.items.iter().find_map(|item| match item {
        Item::Fn(found) if found.sig.ident == function => Some(found),
        _ => None,
    })
}

fn range(span: Span) -> Range<usize> {
    span.byte_range()
}

fn spliced(text: &str, range: Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..range.start], &text[range.end..])
}
