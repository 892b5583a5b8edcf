//! Quantities such as `100m` and `1Gi`.

use std::cmp::Ordering;
use std::sync::Arc;

use super::strings::text;
use super::{Body, Table};
use crate::cel::value::{Failure, Outcome, Val};
use crate::quantity::{Format, Quantity};

pub(super) fn declare(table: &mut Table) {
    use Body::Typed;
    const Q: &str = "kubernetes.Quantity";
    table.global("quantity", "string_to_quantity", &format!("string -> {Q}"), Typed(parse));
    table.global("isQuantity", "is_quantity_string", "string -> bool", Typed(is_quantity));
    table.global("sign", "quantity_sign", &format!("{Q} -> int"), Typed(sign));
    let mut member = |name: &'static str, id: &'static str, signature: &str, body| {
        table.member(name, id, &signature.replace('Q', Q), Typed(body));
    };
    member("isGreaterThan", "quantity_is_greater_than", "Q, Q -> bool", |args| {
        Ok(Val::Bool(order(args)?.is_gt()))
    });
    member("isLessThan", "quantity_is_less_than", "Q, Q -> bool", |args| {
        Ok(Val::Bool(order(args)?.is_lt()))
    });
    member("compareTo", "quantity_compare_to", "Q, Q -> int", |args| {
        Ok(Val::Int(order(args)? as i64))
    });
    member("asApproximateFloat", "quantity_get_float", "Q -> double", |args| {
        Ok(Val::Double(amount(args, 0)?.as_approximate_float()))
    });
    member("asInteger", "quantity_get_int", "Q -> int", |args| {
        let value = amount(args, 0)?.as_i64();
        value.map(Val::Int).ok_or_else(|| Failure::new("cannot convert value to integer"))
    });
    member("isInteger", "quantity_is_integer", "Q -> bool", |args| {
        Ok(Val::Bool(amount(args, 0)?.as_i64().is_some()))
    });
    member("add", "quantity_add", "Q, Q -> Q", |args| computed(args, Quantity::add));
    member("add", "quantity_add_int", "Q, int -> Q", |args| computed(args, Quantity::add));
    member("sub", "quantity_sub", "Q, Q -> Q", |args| computed(args, Quantity::sub));
    member("sub", "quantity_sub_int", "Q, int -> Q", |args| computed(args, Quantity::sub));
}

fn parse<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    match Quantity::parse(text(args, 0)?) {
        Ok(amount) => Ok(Val::Quantity { amount: Arc::new(amount), computed: false }),
        Err(error) => Err(Failure::new(error.to_string())),
    }
}

fn is_quantity<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::Bool(Quantity::parse(text(args, 0)?).is_ok()))
}

fn amount<'a>(args: &'a [Val<'_>], at: usize) -> Result<&'a Quantity, Failure> {
    match args.get(at) {
        Some(Val::Quantity { amount, .. }) => Ok(amount),
        _ => Err(Failure::NO_SUCH_OVERLOAD),
    }
}

fn sign<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let amount = amount(args, 0)?;
    Ok(Val::Int(match () {
        () if amount.is_zero() => 0,
        () if amount.is_negative() => -1,
        () => 1,
    }))
}

fn order(args: &[Val<'_>]) -> Result<Ordering, Failure> {
    Ok(amount(args, 0)?.cmp(amount(args, 1)?))
}

fn computed<'v>(args: &[Val<'v>], change: fn(&mut Quantity, &Quantity)) -> Outcome<'v> {
    let mut result = amount(args, 0)?.clone();
    match &args[1] {
        Val::Int(value) => change(&mut result, &Quantity::new(*value, 0, Format::DecimalExponent)),
        _ => change(&mut result, amount(args, 1)?),
    }
    Ok(Val::Quantity { amount: Arc::new(result), computed: true })
}
