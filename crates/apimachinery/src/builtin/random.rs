//! Random objects of built-in kinds, for tests: the table says what fields there are.

use serde_json::{Map, Value, json};

use super::{Kind, SchemaOr, Ty, Type, kinds};

/// Makes the same objects from the same seed.
pub(crate) struct Maker {
    state: u64,
    /// How often something is out of place, in 1,000: a wrong type, a null, an unknown field.
    noise: u64,
}

impl Maker {
    pub(crate) fn new(seed: u64, noise: u64) -> Self {
        Self { state: seed | 1, noise }
    }

    pub(crate) fn kind(&mut self) -> &'static Kind {
        let kinds: Vec<_> = kinds().iter().filter(|kind| kind.kind != "WatchEvent").collect();
        kinds[self.below(kinds.len() as u64) as usize]
    }

    pub(crate) fn object(&mut self, kind: &Kind) -> Value {
        let mut object = self.fields(kind.ty(), 0);
        let api_version = match kind.group {
            "" => kind.version.to_owned(),
            group => format!("{group}/{}", kind.version),
        };
        object.insert("apiVersion".to_owned(), api_version.into());
        object.insert("kind".to_owned(), kind.kind.into());
        Value::Object(object)
    }

    fn fields(&mut self, ty: &'static Type, depth: u64) -> Map<String, Value> {
        let mut object = Map::new();
        let members: Vec<_> = ty.members().collect();
        // Sparser the deeper, so that objects end.
        let chance = 900 / (depth + 1).pow(2) + 2 * members.len() as u64;
        for field in &members {
            if self.one_in(1 + members.len() as u64 * 100 / chance) {
                object.insert(field.json.to_owned(), self.value(&field.ty, depth + 1));
            }
        }
        if self.is_noisy() {
            let name = self.pick(&["unknown", "Metadata", "NAME", "a.b", "é"]);
            object.insert(name.to_owned(), self.noise());
        }
        object
    }

    fn value(&mut self, ty: &Ty, depth: u64) -> Value {
        if self.is_noisy() {
            return match self.noise() {
                // JSON does not tell an empty byte string from none; protobuf does.
                noise if *ty == Ty::Bytes && (noise == "" || noise == json!([])) => Value::Null,
                noise => noise,
            };
        }
        match ty {
            Ty::Bool => self.one_in(2).into(),
            Ty::Int32 => (self.integer() as i32).into(),
            Ty::Int64 => self.integer().into(),
            Ty::Float64 => self.pick(&[0.0, 1.5, -2.25, 1e21, 3.0]).into(),
            Ty::String => self.text().into(),
            Ty::Bytes => self.pick(&["YQ==", "YWI=", "YWJj", "YR==", "YW\nJj"]).into(),
            Ty::List(of) => {
                let length = self.below(3);
                (0..length).map(|_| self.value(of, depth + 1)).collect()
            }
            Ty::Map(of) => {
                let length = self.below(3);
                let entries = (0..length).map(|_| (self.text(), self.value(of, depth + 1)));
                Value::Object(entries.collect())
            }
            Ty::Struct(id) => self.fields(id.get(), depth).into(),
            Ty::Time => self.time("").into(),
            Ty::MicroTime => {
                let fraction = self.pick(&[".000000", ".000001", ".999999"]);
                self.time(fraction).into()
            }
            Ty::Duration => self.pick(&["0", "1h30m", "-1.5s", "250us", "90m"]).into(),
            Ty::Quantity => match self.below(4) {
                0 => self.integer().into(),
                _ => self.pick(&["0", "100m", "1.5Gi", "1e3", "0.0001", "2048Ki", "-1"]).into(),
            },
            Ty::IntOrString if self.one_in(2) => (self.integer() as i32).into(),
            Ty::IntOrString => self.text().into(),
            Ty::RawExtension | Ty::FieldsV1 | Ty::Json => self.noise(),
            Ty::SchemaOr(or, schema) => match (self.one_in(2), or) {
                (true, _) => self.fields(schema.get(), depth).into(),
                (_, SchemaOr::Bool) => self.one_in(2).into(),
                (_, SchemaOr::Strings) => json!([self.text()]),
                (_, SchemaOr::Schemas) => json!([self.fields(schema.get(), depth)]),
            },
        }
    }

    /// Something that is out of place almost everywhere.
    fn noise(&mut self) -> Value {
        match self.below(10) {
            0 | 1 => Value::Null,
            2 => json!({"z": 1, "a": [null, {"b": 1.5}]}),
            3 => json!([]),
            4 => json!({}),
            5 => json!([1, "a"]),
            6 => self.integer().into(),
            7 => 1.5.into(),
            8 => self.one_in(2).into(),
            _ => self.text().into(),
        }
    }

    fn time(&mut self, fraction: &str) -> String {
        // Behind a pointer, the first is printed as null, and null is read as no time at all.
        let seconds = ["0001-01-01T00:00:00", "1969-12-31T23:59:59", "2024-02-29T12:00:00"];
        let second = self.pick(&seconds[usize::from(self.noise == 0)..]);
        let zone = self.pick(&["Z", "+02:00"]);
        format!("{second}{fraction}{zone}")
    }

    fn text(&mut self) -> String {
        self.pick(&["", "a", "b", "é", "a/b.c", "Some text", "<&>"]).to_owned()
    }

    fn integer(&mut self) -> i64 {
        self.pick(&[0, 1, -1, 80, 1 << 20, i64::from(i32::MAX), i64::MIN, i64::MAX])
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn is_noisy(&mut self) -> bool {
        self.below(1_000) < self.noise
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) % n
    }
}
