//! One template of several renderings: what all have stays, what some have becomes conditional.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::nested;
use super::template::{Entry, Node};

/// Something that is chosen or not, as a template asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice(pub(super) &'static str);

/// Renderings are known by their choices, as bits.
#[derive(Debug, Clone)]
pub(super) struct Variants {
    pub(super) choices: Vec<Choice>,
    pub(super) all: BTreeSet<usize>,
}

/// When something is there: under one of these, in each of which some are chosen and some are not.
/// Empty if it always is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition(Vec<Vec<(Choice, bool)>>);

impl Condition {
    /// The expression, if there is anything to ask.
    pub(super) fn expression(&self) -> Option<String> {
        let literal = |&(choice, is_chosen): &(Choice, bool)| match is_chosen {
            true => choice.0.to_owned(),
            false => format!("not {}", choice.0),
        };
        let product = |literals: &Vec<(Choice, bool)>| {
            let literals: Vec<_> = literals.iter().map(literal).collect();
            joined("and", &literals)
        };
        match self.0.as_slice() {
            [] => None,
            products => Some(joined("or", &products.iter().map(product).collect::<Vec<_>>())),
        }
    }
}

fn joined(word: &str, expressions: &[String]) -> String {
    match expressions {
        [only] => only.clone(),
        several => {
            let nested: Vec<_> = several.iter().map(|it| nested(it)).collect();
            format!("{word} {}", nested.join(" "))
        }
    }
}

impl Variants {
    /// The shortest condition that holds for `there` and for no other of `among`.
    pub(super) fn condition(&self, there: &BTreeSet<usize>, among: &BTreeSet<usize>) -> Condition {
        if there == among {
            return Condition(Vec::new());
        }
        let products = self.products();
        let holds = |product: &Vec<(Choice, bool)>, bits: usize| {
            product.iter().all(|&(choice, is_chosen)| self.is_chosen(bits, choice) == is_chosen)
        };
        let selects = |sum: &[&Vec<(Choice, bool)>]| {
            among.iter().all(|&bits| {
                sum.iter().any(|product| holds(product, bits)) == there.contains(&bits)
            })
        };
        if let Some(product) = products.iter().find(|product| selects(&[product])) {
            return Condition(vec![product.clone()]);
        }
        for (at, first) in products.iter().enumerate() {
            let second = products[at..].iter().find(|second| selects(&[first, second]));
            if let Some(second) = second {
                return Condition(vec![first.clone(), second.clone()]);
            }
        }
        // One by one.
        let exact = |&bits: &usize| {
            let choices = self.choices.iter();
            choices.map(|&choice| (choice, self.is_chosen(bits, choice))).collect()
        };
        Condition(there.iter().map(exact).collect())
    }

    fn is_chosen(&self, bits: usize, choice: Choice) -> bool {
        let at = self.choices.iter().position(|it| *it == choice).expect("it is one of them");
        bits & (1 << at) != 0
    }

    /// Everything that can be asked with `and`, the shortest first, and rather what is chosen than
    /// what is not.
    fn products(&self) -> Vec<Vec<(Choice, bool)>> {
        let mut products = vec![Vec::new()];
        for &choice in &self.choices {
            let with = |product: &Vec<(Choice, bool)>| {
                [true, false].map(|is_chosen| [product.as_slice(), &[(choice, is_chosen)]].concat())
            };
            let longer: Vec<_> = products.iter().flat_map(with).collect();
            products.extend(longer);
        }
        products.retain(|product| !product.is_empty());
        let negations = |product: &Vec<(Choice, bool)>| {
            product.iter().filter(|(_, is_chosen)| !is_chosen).count()
        };
        products.sort_by_key(|product| (product.len(), negations(product)));
        products
    }

    /// One node of all renderings of the same thing.
    pub(super) fn merge(&self, rendered: &BTreeMap<usize, Value>) -> Node {
        let first = rendered.values().next_back().expect("something was rendered");
        if rendered.values().all(|value| value == first) {
            return Node::Literal(first.clone());
        }
        let among: BTreeSet<_> = rendered.keys().copied().collect();
        if rendered.values().all(Value::is_object) {
            return self.merge_maps(rendered, &among);
        }
        if rendered.values().all(Value::is_array) {
            return self.merge_lists(rendered, &among);
        }
        let mut values: Vec<&Value> = Vec::new();
        for value in rendered.values().rev() {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let alternatives = values.into_iter().map(|value| {
            let there = rendered.iter().filter(|(_, it)| *it == value).map(|(bits, _)| *bits);
            let condition = self.condition(&there.collect(), &among).expression();
            (condition.unwrap_or_default(), value.clone())
        });
        Node::OneOf(alternatives.collect())
    }

    fn merge_maps(&self, rendered: &BTreeMap<usize, Value>, among: &BTreeSet<usize>) -> Node {
        let keys = ordered(
            rendered
                .values()
                .rev()
                .filter_map(|value| Some(value.as_object()?.keys().cloned().collect())),
        );
        let entry = |key: String| {
            let there: BTreeMap<_, _> = rendered
                .iter()
                .filter_map(|(bits, value)| Some((*bits, value.get(&key)?.clone())))
                .collect();
            let condition = self.condition(&there.keys().copied().collect(), among).expression();
            (key, Entry { condition, node: self.merge(&there) })
        };
        Node::Map(keys.into_iter().map(entry).collect())
    }

    /// Elements are the same if they are equal, or if they have the same name.
    fn merge_lists(&self, rendered: &BTreeMap<usize, Value>, among: &BTreeSet<usize>) -> Node {
        let identity = |element: &Value| match element["name"].as_str() {
            Some(name) => format!("name {name}"),
            None => element.to_string(),
        };
        let lists = rendered
            .values()
            .rev()
            .filter_map(|list| Some(list.as_array()?.iter().map(identity).collect::<Vec<_>>()));
        let element = |id: String| {
            let there: BTreeMap<_, _> = rendered
                .iter()
                .filter_map(|(bits, list)| {
                    let found = list.as_array()?.iter().find(|it| identity(it) == id)?;
                    Some((*bits, found.clone()))
                })
                .collect();
            let condition = self.condition(&there.keys().copied().collect(), among).expression();
            Entry { condition, node: self.merge(&there) }
        };
        Node::List(ordered(lists).into_iter().map(element).collect())
    }
}

/// All words of some lists, each once, where those before and after it in its list are.
fn ordered(lists: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for list in lists {
        let mut at = 0;
        for word in list {
            match all.iter().position(|it| *it == word) {
                Some(known) => at = known + 1,
                None => {
                    all.insert(at, word);
                    at += 1;
                }
            }
        }
    }
    all
}
