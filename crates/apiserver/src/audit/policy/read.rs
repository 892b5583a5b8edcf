//! From the text of a policy to a policy, with all that is wrong with it.

use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::json::go;
use kubewright_apimachinery::json::strict::{self, Violation};
use kubewright_apimachinery::{name, yaml};
use serde_json::{Map, Value};

use super::{GroupResources, Level, Policy, PolicyError, Rule, Stage, Stages};
use crate::authz;

pub(super) fn policy(text: &str) -> Result<Policy, PolicyError> {
    let decoded = yaml::decode(text).map_err(|error| PolicyError::Malformed(error.to_string()))?;
    let tree = match decoded.value {
        Value::Object(tree) => tree,
        Value::Null => Map::new(),
        other => {
            let why = format!("{} is no policy", go::word(&other));
            return Err(PolicyError::Malformed(why));
        }
    };
    let word = |field: &str| tree.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (word("apiVersion"), word("kind"));
    if (api_version.as_str(), kind.as_str()) != ("audit.k8s.io/v1", "Policy") {
        return Err(PolicyError::Kind { api_version, kind });
    }

    let mut reader = Reader { errors: Vec::new(), violations: decoded.violations };
    let policy = reader.policy(&Fields::of_policy(&tree))?;
    if !reader.violations.is_empty() {
        let error = strict::error(&reader.violations);
        tracing::warn!(error, "the audit policy has fields that mean nothing");
    }
    let errors: Vec<String> = reader.errors.iter().map(ToString::to_string).collect();
    match (errors.is_empty(), policy.rules.is_empty()) {
        (false, _) => Err(PolicyError::Invalid(authz::aggregate(errors.iter()))),
        (true, true) => Err(PolicyError::Empty),
        (true, false) => Ok(policy),
    }
}

/// What was found on the way. Errors come in the order in which upstream looks for them.
struct Reader {
    errors: Vec<Error>,
    violations: Vec<Violation>,
}

impl Reader {
    fn policy(&mut self, fields: &Fields<'_>) -> Result<Policy, PolicyError> {
        const KNOWN: [&str; 6] =
            ["kind", "apiVersion", "metadata", "rules", "omitStages", "omitManagedFields"];
        self.report_unknown(fields, &KNOWN);
        let omit_stages = self.stages(fields, &Path::new("omitStages"))?;
        let path = Path::new("rules");
        let rules = fields.objects("rules", "PolicyRule")?;
        let rules = rules.iter().enumerate().map(|(at, rule)| self.rule(rule, &path.index(at)));
        Ok(Policy {
            rules: rules.collect::<Result<_, _>>()?,
            omit_stages,
            omit_managed_fields: fields.flag("omitManagedFields")?.unwrap_or_default(),
        })
    }

    fn rule(&mut self, fields: &Fields<'_>, path: &Path<'_>) -> Result<Rule, PolicyError> {
        const KNOWN: [&str; 9] = [
            "level",
            "users",
            "userGroups",
            "verbs",
            "resources",
            "namespaces",
            "nonResourceURLs",
            "omitStages",
            "omitManagedFields",
        ];
        self.report_unknown(fields, &KNOWN);
        let level = self.level(&fields.text("level", "v1.Level")?, &path.child("level"));
        let urls = path.child("nonResourceURLs");
        let non_resource_urls = fields.texts("nonResourceURLs", "string")?;
        self.check_urls(&non_resource_urls, &urls);
        let resources_path = path.child("resources");
        let resources = fields.objects("resources", "GroupResources")?;
        let resources = resources.iter().map(|one| self.resources(one, &resources_path));
        let resources: Vec<GroupResources> = resources.collect::<Result<_, _>>()?;
        let omit_stages = self.stages(fields, &path.child("omitStages"))?;
        let namespaces = fields.texts("namespaces", "string")?;
        let is_about_resources = !resources.is_empty() || !namespaces.is_empty();
        if is_about_resources && !non_resource_urls.is_empty() {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            let found = Value::from(non_resource_urls.clone());
            self.errors.push(Error::invalid(&urls, found, why));
        }
        Ok(Rule {
            level,
            users: fields.texts("users", "string")?,
            user_groups: fields.texts("userGroups", "string")?,
            verbs: fields.texts("verbs", "string")?,
            resources,
            namespaces,
            non_resource_urls,
            omit_stages,
            omit_managed_fields: fields.flag("omitManagedFields")?,
        })
    }

    fn level(&mut self, word: &str, path: &Path<'_>) -> Level {
        if let Some(level) = Level::ALL.into_iter().find(|level| level.as_str() == word) {
            return level;
        }
        self.errors.push(match word {
            "" => Error::required(path, ""),
            other => Error::not_supported(path, other, &Level::ALL.map(Level::as_str)),
        });
        Level::None
    }

    fn check_urls(&mut self, urls: &[String], path: &Path<'_>) {
        for (at, url) in urls.iter().enumerate().filter(|(_, url)| *url != "*") {
            if !url.starts_with('/') {
                let why = "non-resource URL rules must begin with a '/' character";
                self.errors.push(Error::invalid(&path.index(at), url.as_str(), why));
            }
            if url.strip_suffix('*').unwrap_or(url).contains('*') {
                let why = "non-resource URL wildcards '*' must be the final character of the rule";
                self.errors.push(Error::invalid(&path.index(at), url.as_str(), why));
            }
        }
    }

    fn resources(
        &mut self,
        fields: &Fields<'_>,
        path: &Path<'_>,
    ) -> Result<GroupResources, PolicyError> {
        self.report_unknown(fields, &["group", "resources", "resourceNames"]);
        let found = GroupResources {
            group: fields.text("group", "string")?,
            resources: fields.texts("resources", "string")?,
            resource_names: fields.texts("resourceNames", "string")?,
        };
        if !matches!(found.group.as_str(), "" | "*") {
            let faults = name::dns1123_subdomain(&found.group);
            if !faults.is_empty() {
                let path = path.child("group");
                self.errors.push(Error::invalid(&path, &*found.group, faults.join(",")));
            }
        }
        if !found.resource_names.is_empty() && found.resources.is_empty() {
            let names = Value::from(found.resource_names.clone());
            let why = "using resourceNames requires at least one resource";
            self.errors.push(Error::invalid(&path.child("resourceNames"), names, why));
        }
        Ok(found)
    }

    fn stages(&mut self, fields: &Fields<'_>, path: &Path<'_>) -> Result<Stages, PolicyError> {
        let mut stages = Stages::default();
        for (at, word) in fields.texts("omitStages", "v1.Stage")?.iter().enumerate() {
            match Stage::ALL.into_iter().find(|stage| stage.as_str() == word) {
                Some(stage) => stages.insert(stage),
                None => {
                    let known = Stage::ALL.map(Stage::as_str).join(",");
                    let why = format!("allowed stages are {known}");
                    self.errors.push(Error::invalid(&path.index(at), word.as_str(), why));
                }
            }
        }
        Ok(stages)
    }

    fn report_unknown(&mut self, fields: &Fields<'_>, known: &[&str]) {
        let unknown = fields.tree.keys().filter(|field| !known.contains(&field.as_str()));
        let place = |field: &String| Violation::UnknownField(format!("{}{field}", fields.place));
        self.violations.extend(unknown.map(place));
    }
}

/// One object of a policy, and where it is.
struct Fields<'a> {
    tree: &'a Map<String, Value>,
    /// Its type upstream.
    ty: &'static str,
    /// Its place as Go's decoder names it: `rules.`.
    go_place: String,
    /// Its place as people name it: `rules[0].`.
    place: String,
}

impl<'a> Fields<'a> {
    fn of_policy(tree: &'a Map<String, Value>) -> Self {
        Fields { tree, ty: "Policy", go_place: String::new(), place: String::new() }
    }

    fn text(&self, field: &str, ty: &str) -> Result<String, PolicyError> {
        match self.get(field) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Err(self.misfit(field, other, ty)),
        }
    }

    fn flag(&self, field: &str) -> Result<Option<bool>, PolicyError> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(self.misfit(field, other, "bool")),
        }
    }

    fn texts(&self, field: &str, ty: &str) -> Result<Vec<String>, PolicyError> {
        let text = |item: &Value| match item {
            Value::Null => Ok(String::new()),
            Value::String(text) => Ok(text.clone()),
            other => Err(self.misfit(field, other, ty)),
        };
        self.items(field, ty)?.iter().map(text).collect()
    }

    fn objects(&self, field: &str, ty: &'static str) -> Result<Vec<Fields<'a>>, PolicyError> {
        let go_type = format!("v1.{ty}");
        let object = |(at, item): (usize, &'a Value)| match item {
            Value::Object(tree) => Ok(Fields {
                tree,
                ty,
                go_place: format!("{}{field}.", self.go_place),
                place: format!("{}{field}[{at}].", self.place),
            }),
            other => Err(self.misfit(field, other, &go_type)),
        };
        self.items(field, &go_type)?.iter().enumerate().map(object).collect()
    }

    fn items(&self, field: &str, ty: &str) -> Result<&'a [Value], PolicyError> {
        match self.get(field) {
            None => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(other) => Err(self.misfit(field, other, &format!("[]{ty}"))),
        }
    }

    fn get(&self, field: &str) -> Option<&'a Value> {
        self.tree.get(field).filter(|value| !value.is_null())
    }

    /// In the words of Go's decoder.
    fn misfit(&self, field: &str, found: &Value, ty: &str) -> PolicyError {
        let Fields { ty: of, go_place, .. } = self;
        let found = go::word(found);
        PolicyError::Malformed(format!(
            "json: cannot unmarshal {found} into Go struct field {of}.{go_place}{field} of type \
             {ty}"
        ))
    }
}
