//! From tokens to a tree.
//!
//! The grammar is that of the reference implementation, and so are the words for what breaks it,
//! which come from its parser generator: a token too many is passed over, a token too few is
//! assumed, anything else ends the reading.

mod literal;
mod macros;

use super::ast::{Call, Element, Entry, Expr, Field, Id, Kind, Literal, operator};
use super::escape;
use super::lex::{self, Token, TokenKind};
use super::source::{Issues, Source};

/// In characters.
const TEXT_MAX: usize = 100_000;
const DEPTH_MAX: usize = 250;
/// Macros that repeat their target would make any number of a short text.
const NODES_MAX: usize = 100_000;

/// What may begin an operand, in the words of a complaint.
const OPERAND: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, \
                       NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// The same where the arguments of a call may also end.
const OPERAND_OR_END: &str = "{'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', \
                              NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
/// The same after the bracket of an index.
const OPERAND_OR_OPTIONAL: &str = "{'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', \
                                   NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// Operators by how tightly they bind, each with the name of its function.
const LOOSE_TO_TIGHT: [&[(&str, &str)]; 5] = [
    &[("||", operator::OR)],
    &[("&&", operator::AND)],
    &[
        ("<", "_<_"),
        ("<=", "_<=_"),
        (">=", "_>=_"),
        (">", "_>_"),
        ("==", operator::EQUALS),
        ("!=", operator::NOT_EQUALS),
        ("in", operator::IN),
    ],
    &[("+", operator::ADD), ("-", "_-_")],
    &[("*", "_*_"), ("/", "_/_"), ("%", "_%_")],
];

/// A tree, and where each of its nodes stands in the text.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) expr: Expr,
    pub(super) offsets: Vec<u32>,
    pub(super) source: Source,
}

pub(super) fn parse(text: &str) -> Result<Parsed, Issues> {
    let source = Source::new(text);
    let mut issues = Issues::new(source.clone());
    let size = text.chars().count();
    if size > TEXT_MAX {
        issues.report_nowhere(format!(
            "expression code point size exceeds limit: size: {size}, limit {TEXT_MAX}"
        ));
        return Err(issues);
    }
    let tokens = lex::tokens(text, &mut issues);
    let mut parser =
        Parser { tokens, next: 0, offsets: Vec::new(), heights: Vec::new(), issues, depth: 0 };
    let expr = parser.whole();
    match expr {
        Ok(expr) if parser.issues.is_empty() => {
            Ok(Parsed { expr, offsets: parser.offsets, source })
        }
        _ => Err(parser.issues),
    }
}

/// Nothing more can be read; why was reported.
struct GaveUp;

type Read<T> = Result<T, GaveUp>;

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    offsets: Vec<u32>,
    /// How many operators, selections and calls are within each other below a node.
    heights: Vec<usize>,
    issues: Issues,
    depth: usize,
}

impl Parser {
    fn whole(&mut self) -> Read<Expr> {
        let expr = self.expr()?;
        if self.peek() != TokenKind::End {
            let is_last = self.kind_after(1) == TokenKind::End;
            self.unwanted(is_last, "<EOF>")?;
        }
        Ok(expr)
    }

    fn expr(&mut self) -> Read<Expr> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("expression recursion limit exceeded: {DEPTH_MAX}");
            self.issues.report_nowhere(message);
            return Err(GaveUp);
        }
        let expr = self.conditional()?;
        self.depth -= 1;
        Ok(expr)
    }

    fn conditional(&mut self) -> Read<Expr> {
        let condition = self.operators(0)?;
        if !self.at("?") {
            return Ok(condition);
        }
        let id = self.take_id();
        let yes = self.operators(0)?;
        self.expect(":")?;
        let no = self.expr()?;
        self.call(id, operator::CONDITIONAL, vec![condition, yes, no])
    }

    /// Operands joined by operators that bind at least so tightly. One function for all of them
    /// keeps the stack short where expressions are deep.
    fn operators(&mut self, tightness: usize) -> Read<Expr> {
        let mut left = self.unary()?;
        while let Some((level, function)) = self.operator().filter(|(level, _)| *level >= tightness)
        {
            let id = self.take_id();
            let right = self.operators(level + 1)?;
            left = match function {
                operator::AND | operator::OR => self.logic(id, function, left, right),
                _ => self.call(id, function, vec![left, right])?,
            };
        }
        Ok(left)
    }

    /// The operator that comes next, and how tightly it binds.
    fn operator(&self) -> Option<(usize, &'static str)> {
        let TokenKind::Symbol(symbol) = self.peek() else { return None };
        LOOSE_TO_TIGHT.iter().enumerate().find_map(|(level, operators)| {
            let found = operators.iter().find(|(known, _)| *known == symbol)?;
            Some((level, found.1))
        })
    }

    /// Terms joined by one logical operator are one call with all of them.
    fn logic(&mut self, id: Id, function: &str, left: Expr, right: Expr) -> Expr {
        let height = self.height_of([&left, &right]);
        let mut terms = match left {
            Expr { kind: Kind::Call(joined), .. }
                if *joined.function == *function && joined.target.is_none() =>
            {
                joined.args
            }
            other => vec![other],
        };
        terms.push(right);
        self.heights[id] = height;
        call(id, function, terms)
    }

    fn unary(&mut self) -> Read<Expr> {
        let is_number = matches!(self.kind_after(1), TokenKind::Int | TokenKind::Float);
        for (symbol, function) in [("!", operator::NOT), ("-", operator::NEGATE)] {
            // A minus before a number is part of the number.
            if !self.at(symbol) || symbol == "-" && is_number {
                continue;
            }
            let first = self.next;
            while self.at(symbol) {
                self.next += 1;
            }
            if !self.starts_member() {
                return self.nothing_after(symbol);
            }
            if (self.next - first).is_multiple_of(2) {
                return self.member();
            }
            let id = self.id_at(self.tokens[first].offset);
            let operand = self.member()?;
            return self.call(id, function, vec![operand]);
        }
        self.member()
    }

    /// Whether what comes can follow a sign: of signs only one that belongs to a number.
    fn starts_member(&self) -> bool {
        match self.peek() {
            TokenKind::Symbol("!") => false,
            TokenKind::Symbol("-") => {
                matches!(self.kind_after(1), TokenKind::Int | TokenKind::Float)
            }
            other => self.starts_operand(other),
        }
    }

    /// Complains about what comes after a sign that has nothing to go with.
    fn nothing_after(&mut self, symbol: &str) -> Read<Expr> {
        let token = self.tokens[self.next].clone();
        if symbol == "!" && token.kind != TokenKind::Symbol("-") {
            let message = format!("extraneous input '{}' expecting {OPERAND}", token.text);
            return self.syntax_error(token.offset, &message);
        }
        if symbol == "!" {
            self.next += 1;
        }
        let token = self.tokens[self.next].clone();
        let shown = if token.kind == TokenKind::End { "" } else { &token.text };
        let message = format!("no viable alternative at input '-{shown}'");
        let _: Read<()> = self.syntax_error(token.offset, &message);
        if !self.starts_operand(token.kind) {
            self.unwanted(false, OPERAND)?;
        }
        Err(GaveUp)
    }

    fn member(&mut self) -> Read<Expr> {
        let mut expr = self.primary()?;
        while self.at(".") || self.at("[") {
            expr = match self.at(".") {
                true => self.select(expr)?,
                false => {
                    let id = self.take_id();
                    let optional = self.take_if("?");
                    if !optional {
                        self.expect_operand(OPERAND_OR_OPTIONAL)?;
                    }
                    let index = self.expr()?;
                    self.expect("]")?;
                    let function =
                        if optional { operator::OPTIONAL_INDEX } else { operator::INDEX };
                    self.call(id, function, vec![expr, index])?
                }
            };
        }
        Ok(expr)
    }

    fn select(&mut self, operand: Expr) -> Read<Expr> {
        let dot = self.take().offset;
        let optional = self.take_if("?");
        let name = self.tokens[self.next].clone();
        match name.kind {
            TokenKind::Identifier => self.next += 1,
            TokenKind::EscapedIdentifier => {
                self.next += 1;
                self.issues.report(name.offset, "unsupported syntax: '`'");
            }
            TokenKind::Symbol(word @ ("true" | "false" | "null")) => {
                let message = format!("mismatched input '{word}' expecting IDENTIFIER");
                return self.syntax_error(name.offset, &message);
            }
            _ if optional => {
                let (found, expected) = (&name.text, "{IDENTIFIER, ESC_IDENTIFIER}");
                let message = format!("mismatched input '{found}' expecting {expected}");
                let _: Read<()> = self.syntax_error(name.offset, &message);
                self.issues.report(name.offset, "unsupported ident kind");
                return Err(GaveUp);
            }
            _ => {
                let shown = if name.kind == TokenKind::End { "" } else { &name.text };
                let message = format!("no viable alternative at input '.{shown}'");
                return self.syntax_error(name.offset, &message);
            }
        }
        if !optional && self.at("(") {
            let id = self.take_id();
            let args = self.args()?;
            let height = self.height_of([&operand]).max(self.height_of(&args)) + 1;
            self.rise(id, height)?;
            return Ok(self.call_or_macro(id, &name.text, Some(operand), args));
        }
        let id = self.id_at(dot);
        if optional {
            let field = Kind::Literal(Literal::String((&*name.text).into()));
            let field = Expr { id: self.id_at(name.offset), kind: field };
            return self.call(id, operator::OPTIONAL_SELECT, vec![operand, field]);
        }
        self.rise(id, self.height_of([&operand]) + 1)?;
        let (operand, field) = (Box::new(operand), name.text);
        Ok(Expr { id, kind: Kind::Select { operand, field, test_only: false } })
    }

    fn args(&mut self) -> Read<Vec<Expr>> {
        let mut args = Vec::new();
        if !self.at(")") {
            self.expect_operand(OPERAND_OR_END)?;
            args.push(self.expr()?);
            while self.take_if(",") {
                args.push(self.expr()?);
            }
        }
        self.expect(")")?;
        Ok(args)
    }

    fn primary(&mut self) -> Read<Expr> {
        if !self.starts_operand(self.peek()) {
            let can_go_on = self.starts_operand(self.kind_after(1));
            self.unwanted(can_go_on, OPERAND)?;
            return self.unary();
        }
        match self.peek() {
            TokenKind::Symbol("(") => {
                self.next += 1;
                let inner = self.expr()?;
                self.expect(")")?;
                Ok(inner)
            }
            TokenKind::Symbol("[") => self.list(),
            TokenKind::Symbol("{") => self.map(),
            TokenKind::Symbol(".") | TokenKind::Identifier => self.name(),
            _ => Ok(self.literal()),
        }
    }

    fn starts_operand(&self, kind: TokenKind) -> bool {
        match kind {
            TokenKind::Symbol(symbol) => {
                ["[", "{", "(", ".", "-", "!", "true", "false", "null"].contains(&symbol)
            }
            TokenKind::End | TokenKind::EscapedIdentifier => false,
            _ => true,
        }
    }

    fn list(&mut self) -> Read<Expr> {
        let id = self.take_id();
        let mut elements = Vec::new();
        while self.more("]")? {
            let optional = self.take_if("?");
            elements.push(Element { optional, value: self.expr()? });
        }
        self.heights[id] = self.height_of(elements.iter().map(|element| &element.value));
        Ok(Expr { id, kind: Kind::List(elements) })
    }

    fn map(&mut self) -> Read<Expr> {
        let id = self.take_id();
        let mut entries = Vec::new();
        while self.more("}")? {
            let optional = self.take_if("?");
            let key = self.expr()?;
            self.expect(":")?;
            entries.push(Entry { optional, key, value: self.expr()? });
        }
        let parts = entries.iter().flat_map(|entry| [&entry.key, &entry.value]);
        self.heights[id] = self.height_of(parts);
        Ok(Expr { id, kind: Kind::Map(entries) })
    }

    /// A variable, a call, or the name of a type with fields in braces.
    fn name(&mut self) -> Read<Expr> {
        if let Some(message) = self.message()? {
            return Ok(message);
        }
        let start = self.tokens[self.next].offset;
        let dot = if self.take_if(".") { "." } else { "" };
        let token = self.tokens[self.next].clone();
        if token.kind != TokenKind::Identifier {
            let shown = if token.kind == TokenKind::End { "" } else { &token.text };
            let message = format!("no viable alternative at input '.{shown}'");
            return self.syntax_error(token.offset, &message);
        }
        self.next += 1;
        let name = format!("{dot}{}", token.text);
        let is_reserved = escape::is_reserved(&token.text);
        if is_reserved {
            self.issues.report(start, format!("reserved identifier: {}", token.text));
        }
        if self.at("(") {
            let id = self.take_id();
            let args = self.args()?;
            return Ok(match is_reserved {
                true => Expr { id, kind: Kind::Broken },
                false => {
                    self.heights[id] = self.height_of(&args);
                    self.call_or_macro(id, &name, None, args)
                }
            });
        }
        let id = self.id_at(token.offset);
        let kind = if is_reserved { Kind::Broken } else { Kind::Ident(name.into()) };
        Ok(Expr { id, kind })
    }

    /// `a.b{c: d}`, if that is what comes.
    fn message(&mut self) -> Read<Option<Expr>> {
        let mut end = self.next + usize::from(self.at("."));
        let mut name = String::new();
        loop {
            let token = &self.tokens[end];
            if token.kind != TokenKind::Identifier {
                return Ok(None);
            }
            name.push_str(&token.text);
            end += 1;
            match self.tokens[end].kind {
                TokenKind::Symbol(".") => name.push('.'),
                TokenKind::Symbol("{") => break,
                _ => return Ok(None),
            }
            end += 1;
        }
        self.next = end;
        let id = self.take_id();
        let mut fields = Vec::new();
        while !self.at("}") {
            let optional = self.take_if("?");
            if !matches!(self.peek(), TokenKind::Identifier | TokenKind::EscapedIdentifier) {
                self.unwanted(false, "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}")?;
            }
            let field = self.take();
            if field.kind == TokenKind::EscapedIdentifier {
                self.issues.report(field.offset, "unsupported syntax: '`'");
            }
            let colon = self.tokens[self.next].offset;
            self.expect(":")?;
            let id = self.id_at(colon);
            fields.push(Field { id, optional, name: field.text, value: self.expr()? });
            if !self.take_if(",") {
                break;
            }
        }
        self.expect("}")?;
        self.heights[id] = self.height_of(fields.iter().map(|field| &field.value)) + 1;
        Ok(Some(Expr { id, kind: Kind::Struct { type_name: name.into(), fields } }))
    }

    fn literal(&mut self) -> Expr {
        let start = self.take();
        let negative = start.kind == TokenKind::Symbol("-");
        let token = if negative { self.take() } else { start.clone() };
        let id = self.id_at(start.offset);
        let kind = match literal::read(&token, negative) {
            Ok(literal) => Kind::Literal(literal),
            Err(message) => {
                self.issues.report(start.offset, message);
                Kind::Broken
            }
        };
        Expr { id, kind }
    }

    fn call_or_macro(
        &mut self,
        id: Id,
        function: &str,
        target: Option<Expr>,
        args: Vec<Expr>,
    ) -> Expr {
        match macros::expand(self, id, function, target, args) {
            macros::Expansion::Done(expr) => expr,
            macros::Expansion::None { target, args } => {
                let target = target.map(Box::new);
                Expr { id, kind: Kind::Call(Call { function: function.into(), target, args }) }
            }
            macros::Expansion::Wrong { at, message } => {
                self.issues.report(self.offsets[at], message);
                Expr { id, kind: Kind::Broken }
            }
        }
    }

    /// An operator over operands that are not too high already.
    fn call(&mut self, id: Id, function: &str, args: Vec<Expr>) -> Read<Expr> {
        self.rise(id, self.height_of(&args) + 1)?;
        Ok(call(id, function, args))
    }

    fn height_of<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> usize {
        exprs.into_iter().map(|expr| self.heights[expr.id]).max().unwrap_or(0)
    }

    /// Whoever walks the tree later does so on the stack.
    fn rise(&mut self, id: Id, height: usize) -> Read<()> {
        self.heights[id] = height;
        let message = match () {
            () if height > DEPTH_MAX => "max recursion depth exceeded".to_owned(),
            () if self.offsets.len() > NODES_MAX => {
                format!("expression size exceeds limit: {NODES_MAX} parts")
            }
            () => return Ok(()),
        };
        self.issues.report_nowhere(message);
        Err(GaveUp)
    }

    fn peek(&self) -> TokenKind {
        self.tokens[self.next].kind
    }

    fn kind_after(&self, count: usize) -> TokenKind {
        self.tokens.get(self.next + count).map_or(TokenKind::End, |token| token.kind)
    }

    fn at(&self, symbol: &str) -> bool {
        matches!(self.peek(), TokenKind::Symbol(found) if found == symbol)
    }

    fn take(&mut self) -> Token {
        let token = self.tokens[self.next].clone();
        self.next += 1;
        token
    }

    fn take_if(&mut self, symbol: &str) -> bool {
        let found = self.at(symbol);
        self.next += usize::from(found);
        found
    }

    fn take_id(&mut self) -> Id {
        let offset = self.take().offset;
        self.id_at(offset)
    }

    /// A new node that stands at `offset`.
    fn id_at(&mut self, offset: u32) -> Id {
        self.offsets.push(offset);
        self.heights.push(0);
        self.offsets.len() - 1
    }

    fn expect(&mut self, symbol: &'static str) -> Read<()> {
        if self.take_if(symbol) {
            return Ok(());
        }
        let expected = format!("'{symbol}'");
        if self.kind_after(1) == TokenKind::Symbol(symbol) {
            self.unwanted(true, &expected)?;
            self.next += 1;
            return Ok(());
        }
        let token = self.tokens[self.next].clone();
        // What could stand after it shows that nothing else is missing.
        let could_follow = self.starts_operand(token.kind);
        if could_follow == (symbol == ":") {
            let message = format!("missing '{symbol}' at '{}'", token.text);
            let _: Read<()> = self.syntax_error(token.offset, &message);
            return Ok(());
        }
        if self.unwanted(false, &expected).is_ok() || symbol == ":" {
            return Err(GaveUp);
        }
        // Something is too much; what may follow the bracket is read on.
        while !self.could_follow() {
            self.next += 1;
        }
        Ok(())
    }

    /// Whether the next token may stand after an operand.
    fn could_follow(&self) -> bool {
        match self.peek() {
            TokenKind::End => true,
            TokenKind::Symbol(symbol) => {
                self.operator().is_some()
                    || [".", "[", ")", "]", "}", ",", ":", "?"].contains(&symbol)
            }
            _ => false,
        }
    }

    /// Whether another item follows, or else takes the end of the list or map. Items are parted
    /// by commas; one may stand before the end.
    fn more(&mut self, end: &'static str) -> Read<bool> {
        let is_first = matches!(self.tokens[self.next - 1].kind, TokenKind::Symbol("[" | "{"));
        let has_comma = self.take_if(",");
        if self.take_if(end) {
            return Ok(false);
        }
        let starts_item = self.at("?") || self.starts_operand(self.peek());
        match (is_first, has_comma) {
            // If it is no item, reading it complains.
            (true, false) => return Ok(true),
            (false, true) if starts_item => return Ok(true),
            _ => {}
        }
        let expected = if has_comma { format!("'{end}'") } else { format!("{{'{end}', ','}}") };
        let can_go_on = self.kind_after(1) == TokenKind::Symbol(end);
        self.unwanted(can_go_on, &expected)?;
        self.next += 1;
        Ok(false)
    }

    /// Complains unless an operand comes, in the words that fit the place.
    fn expect_operand(&mut self, expected: &str) -> Read<()> {
        if self.starts_operand(self.peek()) {
            return Ok(());
        }
        let can_go_on = self.starts_operand(self.kind_after(1));
        self.unwanted(can_go_on, expected)
    }

    /// The next token should not be here; without it, things may go on.
    fn unwanted(&mut self, can_go_on: bool, expected: &str) -> Read<()> {
        let token = self.take();
        let what = if can_go_on { "extraneous" } else { "mismatched" };
        let message = format!("{what} input '{}' expecting {expected}", token.text);
        let outcome = self.syntax_error(token.offset, &message);
        if can_go_on { Ok(()) } else { outcome }
    }

    fn syntax_error<T>(&mut self, offset: u32, message: &str) -> Read<T> {
        self.issues.report(offset, format!("Syntax error: {message}"));
        Err(GaveUp)
    }
}

fn call(id: Id, function: &str, args: Vec<Expr>) -> Expr {
    Expr { id, kind: Kind::Call(Call { function: function.into(), target: None, args }) }
}
