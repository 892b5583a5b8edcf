//! Rules made up from typed pieces: what they mean, what they may cost and what they do cost.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Verdict, compare};
use crate::cel::{Data, Declared, Expression, Type, Val};
use crate::schema::Structural;

#[test]
fn rules_mean_and_cost_what_they_do_upstream() {
    let input = prop::collection::vec(any::<u8>(), 0..120).prop_map(|bytes| {
        let mut choices = Choices { bytes: bytes.into_iter() };
        let object = choices.object();
        (choices.expression("bool", 4), object)
    });
    let args = |(rule, object): &(String, Value)| json!({"schema": schema(), "rule": rule, "object": object});
    compare("rule", input, args, ours, |ours, upstream| match (ours, upstream) {
        (Err(ours), Err(upstream)) => *ours == anonymous(upstream),
        // Counting what it costs to sort something that failed crashes upstream.
        (Ok(_), Ok(upstream)) if crashed(upstream) => true,
        (ours, upstream) => ours == upstream,
    });
}

fn ours((rule, object): &(String, Value)) -> Verdict {
    let schema = Structural::parse(&schema()).expect("it is a schema");
    let declared = Declared::new(&schema, false, "selfType").expect("it can be declared");
    let variables = [("self", declared.type_.clone()), ("oldSelf", declared.type_.clone())];
    let expression = Expression::check(rule, &variables)
        .map_err(|issues| format!("compilation failed: {issues}"))?;
    if *expression.result_type() != Type::Bool {
        return Err("cel expression must evaluate to a bool".to_owned());
    }
    let program = expression
        .program(&["self", "oldSelf"])
        .map_err(|failure| format!("program instantiation failed: {failure}"))?;
    let data = Data { value: object, schema: &schema, is_resource: false };
    let run = program.run(vec![data.to_val()], 1_000_000);
    let mut verdict = json!({"estimated": expression.max_cost(&declared), "cost": run.cost});
    match run.outcome {
        Ok(Val::Bool(holds)) => verdict["holds"] = holds.into(),
        Ok(_) => verdict["holds"] = Value::Null,
        Err(failure) => verdict["failure"] = failure.to_string().into(),
    }
    Ok(verdict)
}

fn crashed(verdict: &Value) -> bool {
    verdict["failure"].as_str().is_some_and(|text| text.starts_with("internal error"))
}

/// Without the number that upstream gives the type of `self`.
fn anonymous(text: &str) -> String {
    let mut parts = text.split("selfType");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("selfType");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

fn schema() -> Value {
    let string = json!({"type": "string", "maxLength": 20});
    let integer = json!({"type": "integer"});
    json!({"type": "object", "properties": {
        "i": integer, "j": integer, "n": {"type": "number"}, "b": {"type": "boolean"},
        "s": string, "t": {"type": "string"}, "e": {"type": "string", "enum": ["a", "bc"]},
        "d": {"type": "string", "format": "duration"}, "w": {"type": "string", "format": "date-time"},
        "y": {"type": "string", "format": "byte"}, "x": {"x-kubernetes-int-or-string": true},
        "l": {"type": "array", "items": integer, "maxItems": 5},
        "k": {"type": "array", "items": string, "x-kubernetes-list-type": "set"},
        "o": {"type": "object", "properties": {"i": integer, "s": string}},
        "g": {"type": "array", "items": {"type": "object", "properties": {"i": integer, "s": string}}},
        "m": {"type": "object", "additionalProperties": integer, "maxProperties": 3},
    }})
}

/// Random choices; when the bytes run out, the first of everything.
struct Choices {
    bytes: std::vec::IntoIter<u8>,
}

/// Ways to make a value of a type; `{type}` is a value of another.
const FORMS: &[(&str, &[&str])] = &[
    // Texts that some function takes and others refuse.
    (
        "odd",
        &[
            "'1.2.3.4'",
            "'::1'",
            "'10.0.0.0/8'",
            "'fe80::/10'",
            "'1.2.3'",
            "'01.2.3.4'",
            "'1.2.3.4.5'",
            "'::ffff:1.2.3.4'",
            "'fe80::1%eth0'",
            "'1:2:3:4:5:6:7:8:9'",
            "'::1::'",
            "'g::1'",
            "'256.0.0.1'",
            "'10.0.0.0/33'",
            "'10.0.0.0/08'",
            "'10.0.0.0/-1'",
            "'1.2.3.4/'",
            "'/8'",
            "'a'",
            "''",
            "'1..2.3'",
            "'http://a/b c?x=1&y'",
            "'https://u:p@h:1/%zz'",
            "'http://[::1]:80/a%20b'",
            "'//h/p'",
            "'a:b'",
            "':x'",
            "'http://a:b/'",
            "'/a?b=c;d'",
            "'http://h/ä'",
            "'1.2.3-rc.1+b'",
            "'v1.2'",
            "'1.02.3'",
            "'1.2.3-'",
            "'1.2.3+'",
            "'1.2.x'",
            "'1.2.3-01'",
            "'100m'",
            "'1Gi'",
            "'1e3'",
            "'1.5.2'",
            "'-5'",
            "'+1'",
            "'.5'",
            "'1E'",
            "'2024-02-30T00:00:00Z'",
            "'2024-01-01T00:00:00+25:00'",
            "'2024-01-01'",
            "'0000-01-01T00:00:00Z'",
            "'1h'",
            "'1d'",
            "'-1.5h'",
            "'9999999h'",
            "'true'",
            "'T'",
            "'yes'",
            "'1_000'",
            "'0x10'",
            "'inf'",
            "'1e400'",
            "'NaN'",
            "'+02:00'",
            "'-02:30'",
            "'UTC'",
            "'Asia/Kolkata'",
            "'x:y'",
            "'25:99'",
            "'[a-'",
            "'(?P<n>a)'",
            "'a{2,1}'",
            "'a/b/c'",
            "'A.b'",
            "'a-'",
            "'123e4567-e89b-12d3-a456-426614174000'",
            "'ä'",
            "'18446744073709551616'",
        ],
    ),
    (
        "bool",
        &[
            "true",
            "self.b",
            "false",
            "{int} == {int}",
            "{int} < {int}",
            "{string} == {string}",
            "{string} != {string}",
            "{string} < {string}",
            "{bool} && {bool}",
            "{bool} || {bool}",
            "!({bool})",
            "({bool} ? {bool} : {bool})",
            "{string}.startsWith({string})",
            "{string}.contains({string})",
            "{string}.matches('^[a-c]+$')",
            "{ints}.all(v, {bool})",
            "{ints}.exists(v, v > {int})",
            "{strings}.exists_one(v, v == {string})",
            "{ints} == {ints}",
            "{strings} == {strings}",
            "{int} in {ints}",
            "{string} in {strings}",
            "{string} in {map}",
            "has(self.o.s)",
            "has(self.m.a)",
            "has(self.s)",
            "self.x == {int}",
            "self.x == {string}",
            "{map}.all(v, v != 'z')",
            "{map}.all(v, w, w > {int})",
            "{ints}.exists(v, w, v == w)",
            "{double} > {double}",
            "{double} <= {int}",
            "{duration} < {duration}",
            "{timestamp} > {timestamp}",
            "{bytes} == {bytes}",
            "{ints}.isSorted()",
            "sets.contains({ints}, {ints})",
            "sets.intersects({strings}, {strings})",
            "isQuantity({string})",
            "isSemver({string})",
            "isIP({string})",
            "isURL({string})",
            "{optional}.hasValue()",
            "self.o == self.o",
            "type(self.x) == string",
            "self.g.all(v, has(v.i) && v.i > {int})",
            "self.g.exists(v, v.s == {string})",
            "!format.dns1123Label().validate({string}).hasValue()",
            "{map} == {map}",
            "quantity('1').isLessThan(quantity({string}))",
            "self.x > {int}",
            "dyn({int}) == {double}",
            "{int}",
            "self.nope",
            "{string} == {int}",
            "ip({odd}).family() == 4",
            "ip({odd}).isGlobalUnicast()",
            "ip.isCanonical({odd})",
            "isIP({odd})",
            "isCIDR({odd})",
            "cidr({odd}).containsIP({odd})",
            "cidr({odd}).containsCIDR({odd})",
            "cidr({odd}).masked() == cidr({odd})",
            "isURL({odd})",
            "isSemver({odd})",
            "isSemver({odd}, true)",
            "semver({odd}).isLessThan(semver({odd}))",
            "semver({odd}, true).major() == 1",
            "isQuantity({odd})",
            "quantity({odd}).isInteger()",
            "quantity({odd}) == quantity({odd})",
            "quantity({odd}).add(quantity({odd})).isGreaterThan(quantity('1'))",
            "quantity({odd}).asInteger() > 0",
            "{odd}.matches({odd})",
            "{odd}.find({odd}) == ''",
            "timestamp({odd}) > timestamp(0)",
            "duration({odd}) > duration('1s')",
            "bool({odd})",
            "double({odd}) > 1.0",
            "uint({odd}) > 1u",
            "int({odd}) > 1",
            "url({odd}).getHostname() == 'a'",
            "url({odd}).getQuery().size() == 1",
            "format.uri().validate({odd}).orValue([]) == []",
            "format.dns1123Subdomain().validate({odd}).orValue([]).size() == 0",
            "format.uuid().validate({odd}).hasValue()",
            "format.date().validate({odd}).hasValue()",
            "format.qualifiedName().validate({odd}).hasValue()",
            "{timestamp}.getHours({odd}) == 1",
            "{odd}.split({odd}).size() == 2",
            "self.x in [1, 'a'] || self.x == null",
            "self.o == null",
            "self.k + ['a'] == ['a', 'b']",
            "type({odd}) == type(1)",
            "{string}[0] == 'a'",
            "{ints}.map(v, string(v)).join(',') == '1'",
            "[{optional}, {optional}].unwrapOpt().size() > 0",
            "{bytes} < {bytes}",
            "{bool} == {bool}",
            "{map}['a'] == {int} || {bool}",
            "('a' in {map} ? {bool} : {bool})",
            "self.k == {strings}",
            "{strings} == self.k",
            "self.g == self.g",
            "self.l.all(v, self.k.exists(w, size(w) > v))",
        ],
    ),
    (
        "int",
        &[
            "0",
            "1",
            "self.i",
            "self.j",
            "-2",
            "{int} + {int}",
            "{int} - {int}",
            "{int} * {int}",
            "{int} / {int}",
            "{int} % {int}",
            "-({int})",
            "size({string})",
            "{ints}.size()",
            "{ints}.sum()",
            "{ints}.max()",
            "{ints}.min()",
            "{ints}[{int}]",
            "{ints}.indexOf({int})",
            "{string}.indexOf({string})",
            "{string}.lastIndexOf({string})",
            "int({double})",
            "int({string})",
            "({bool} ? {int} : {int})",
            "{optional}.orValue({int})",
            "self.m['a']",
            "self.m.a",
            "{map}.size()",
            "self.o.i",
            "{duration}.getSeconds()",
            "{timestamp}.getHours()",
            "self.g[{int}].i",
            "{ints}.filter(v, v > {int}).size()",
            "int({timestamp})",
            "{ints}.first().orValue({int})",
            "(uint({int}) == 1u ? {int} : {int})",
            "{ints}.lastIndexOf({int})",
            "{timestamp}.getDayOfYear()",
            "{timestamp}.getMonth()",
            "{timestamp}.getDayOfWeek()",
            "{timestamp}.getFullYear('Europe/Berlin')",
            "{timestamp}.getMilliseconds()",
            "{duration}.getMilliseconds()",
            "int({duration})",
            "size({bytes})",
            "semver({odd}).compareTo(semver({odd}))",
            "sign(quantity({odd}))",
            "{string}.indexOf({string}, {int})",
            "{string}.lastIndexOf({string}, {int})",
        ],
    ),
    (
        "string",
        &[
            "'a'",
            "''",
            "self.s",
            "self.t",
            "'bc-d'",
            "self.e",
            "{string} + {string}",
            "string({int})",
            "string({double})",
            "{string}.lowerAscii()",
            "{string}.upperAscii()",
            "{string}.trim()",
            "{string}.substring({int})",
            "{string}.substring({int}, {int})",
            "{string}.charAt({int})",
            "{string}.replace({string}, {string})",
            "{string}.replace('a', {string}, {int})",
            "{strings}.join({string})",
            "{strings}[{int}]",
            "({bool} ? {string} : {string})",
            "'%s-%d'.format([{string}, {int}])",
            "strings.quote({string})",
            "string({duration})",
            "string({timestamp})",
            "{string}.find('[a-b]+')",
            "self.o.s",
            "string({bytes})",
            "string({bool})",
            "{strings}.max()",
            "self.g.map(v, v.s).join()",
            "{odd}",
            "string(ip({odd}))",
            "string(cidr({odd}))",
            "url({odd}).getEscapedPath()",
            "url({odd}).getHost()",
            "'%s'.format([{double}])",
            "'%s|%s'.format([{ints}, {map}])",
            "'%x%X%o%b'.format([{int}, {string}, {int}, {bool}])",
            "'%.3f'.format([{double}])",
            "'%e'.format([{double}])",
            "'%s'.format([{timestamp}])",
            "'%s'.format([{duration}])",
            "'%s'.format([{bytes}])",
            "format.dns1123Label().validate({odd}).orValue(['none'])[0]",
            "format.uri().validate({odd}).orValue(['none'])[0]",
            "{string}.lowerAscii().replace('', {string})",
        ],
    ),
    (
        "ints",
        &[
            "self.l",
            "[]",
            "[1, 2]",
            "[{int}]",
            "[{int}, {int}]",
            "{ints} + {ints}",
            "{ints}.map(v, v + {int})",
            "{ints}.filter(v, v > {int})",
            "{ints}.map(v, v > 0, v * 2)",
            "{ints}.reverse()",
            "{ints}.sort()",
            "{ints}.distinct()",
            "{ints}.slice(0, {int})",
            "lists.range(3)",
            "[{ints}, {ints}].flatten()",
            "{ints}.transformList(v, w, v + w)",
            "{map}.map(v, size(v))",
            "({bool} ? {ints} : {ints})",
            "self.g.map(v, v.i)",
            "{ints}.sortBy(v, -v)",
        ],
    ),
    (
        "strings",
        &[
            "self.k",
            "['a', 'b']",
            "[{string}]",
            "{strings} + {strings}",
            "{string}.split(',')",
            "{string}.split({string}, {int})",
            "{strings}.map(v, v + {string})",
            "{strings}.filter(v, v != {string})",
            "{string}.findAll('[a-c]')",
            "{map}.map(v, v)",
            "{strings}.sort()",
            "{strings}.distinct()",
        ],
    ),
    (
        "map",
        &[
            "self.m",
            "{'a': {int}}",
            "{'a': 1}",
            "({ints}.transformMap(v, w, w) == {0: 1} ? self.m : {'b': {int}})",
            "{map}.transformMap(v, w, w + {int})",
            "({bool} ? {map} : {map})",
        ],
    ),
    (
        "double",
        &[
            "1.5",
            "self.n",
            "double({int})",
            "{double} + {double}",
            "{double} * {double}",
            "{double} / {double}",
            "-({double})",
        ],
    ),
    (
        "duration",
        &[
            "self.d",
            "duration('90s')",
            "{duration} + {duration}",
            "{timestamp} - {timestamp}",
            "duration({string})",
        ],
    ),
    (
        "timestamp",
        &[
            "self.w",
            "timestamp(5)",
            "{timestamp} + {duration}",
            "timestamp({int})",
            "timestamp('2024-02-29T01:02:03.5Z')",
        ],
    ),
    ("bytes", &["self.y", "b'ab'", "bytes({string})", "{bytes} + {bytes}"]),
    (
        "optional",
        &[
            "self.?i",
            "optional.of({int})",
            "optional.none()",
            "self.?o.?i",
            "self.?o.i",
            "{ints}[?{int}]",
            "self.m[?'a']",
            "{optional}.or({optional})",
            "self.?s.optMap(v, size(v))",
            "optional.ofNonZeroValue({int})",
            "{ints}.last()",
            "self.?l[{int}]",
        ],
    ),
];

impl Choices {
    fn pick(&mut self, n: usize) -> usize {
        usize::from(self.bytes.next().unwrap_or(0)) % n
    }

    fn expression(&mut self, type_: &str, depth: usize) -> String {
        let known = FORMS.iter().find(|(known, _)| *known == type_);
        let forms = known.expect("every type has its forms").1;
        // Without depth, only what holds nothing else.
        let plain =
            forms.iter().take_while(|form| !form.contains('{') || form.contains("{'a': 1}"));
        let n = if depth == 0 { plain.count().max(1) } else { forms.len() };
        let form = forms[self.pick(n)];
        let mut out = String::new();
        let mut rest = form;
        while let Some(start) = rest.find('{') {
            let inner = rest[start + 1..].find('}').map(|end| &rest[start + 1..start + 1 + end]);
            match inner.filter(|inner| FORMS.iter().any(|(known, _)| known == inner)) {
                Some(inner) => {
                    out.push_str(&rest[..start]);
                    out.push_str(&self.expression(inner, depth.saturating_sub(1)));
                    rest = &rest[start + inner.len() + 2..];
                }
                None => {
                    out.push_str(&rest[..=start]);
                    rest = &rest[start + 1..];
                }
            }
        }
        out.push_str(rest);
        out
    }

    /// An object in which a map has at most one key, since upstream takes keys in no order.
    fn object(&mut self) -> Value {
        let mut object = json!({});
        let values = [
            ("i", json!([0, 1, -3, 7, null])),
            ("j", json!([2, 0, 9_223_372_036_854_775_807_i64])),
            ("n", json!([0.5, 2, -1])),
            ("b", json!([true, false])),
            ("s", json!(["a", "", "bc-d", "ä,b", "12", "v1.2.3"])),
            ("t", json!(["abc", "10.0.0.1", "http://a", "1.2.3"])),
            ("e", json!(["a", "bc"])),
            ("d", json!(["1h", "90s", "1 week", "3 weeks 2 days", null])),
            (
                "w",
                json!([
                    "2024-02-29T12:00:00Z",
                    "1970-01-01T02:00:00+02:00",
                    "2024-02-29t12:00:00z",
                    "2024-02-29T12:00:00.123456789-01:30",
                    "2024-02-29T12:00:00.5z",
                    "2024-02-29T12:00:00+25:00",
                    "9999-12-31T23:59:59Z"
                ]),
            ),
            ("y", json!(["YWI=", "/w==", "_w==", ""])),
            ("x", json!([5, "a", "5", null])),
            ("l", json!([[], [1], [3, 1, 2], [0, 0], null])),
            ("k", json!([[], ["a"], ["b", "a"]])),
            ("o", json!([{}, {"i": 1}, {"s": "a", "i": 2}, {"i": null}, {"u": 1}])),
            ("g", json!([[], [{"i": 1, "s": "a"}], [{"i": 2}, {"s": "b"}]])),
            ("m", json!([{}, {"a": 1}, {"b": 2}])),
        ];
        for (name, values) in values {
            let values = values.as_array().expect("it is a list");
            if let Some(value) = values.get(self.pick(values.len() + 1)) {
                object[name] = value.clone();
            }
        }
        object
    }
}
