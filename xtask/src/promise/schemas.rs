//! What a schema breaks of an older one. Of what clients send, nothing may be refused that was taken; of what they are
//! answered, nothing may be missing or of a kind that they were not told of. Whatever is not known to be harmless is a break.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Who writes the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Clients.
    Sent,
    /// The server.
    Answered,
}

/// Keywords that refuse no value.
const FOR_PEOPLE: [&str; 7] = ["title", "description", "examples", "default", "$comment", "writeOnly", "deprecated"];
/// Bounds, and whether more is wider.
const BOUNDS: [(&str, bool); 10] = [
    ("maximum", true),
    ("exclusiveMaximum", true),
    ("maxLength", true),
    ("maxItems", true),
    ("maxProperties", true),
    ("minimum", false),
    ("exclusiveMinimum", false),
    ("minLength", false),
    ("minItems", false),
    ("minProperties", false),
];
/// Keywords that refuse the less for being gone, and of which no two are compared.
const CHECKS: [&str; 5] = ["pattern", "format", "multipleOf", "uniqueItems", "contentEncoding"];

/// Two documents, and what the new one breaks.
pub(super) struct Comparison<'a> {
    pub(super) old: &'a Value,
    pub(super) new: &'a Value,
    pub(super) faults: Vec<String>,
    /// Pairs that are being compared, so that a schema may hold itself.
    open: BTreeSet<(String, String)>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(old: &'a Value, new: &'a Value) -> Self {
        Self { old, new, faults: Vec::new(), open: BTreeSet::new() }
    }

    pub(super) fn fault(&mut self, at: &str, problem: impl AsRef<str>) {
        self.faults.push(format!("{at}: {}", problem.as_ref()));
    }

    pub(super) fn schemas(&mut self, at: &str, side: Side, old: &Value, new: &Value) {
        let targets = (old["$ref"].as_str().unwrap_or_default(), new["$ref"].as_str().unwrap_or_default());
        let pair = (targets.0.to_owned(), targets.1.to_owned());
        let is_named = !(pair.0.is_empty() && pair.1.is_empty());
        if is_named && !self.open.insert(pair.clone()) {
            return;
        }
        let nothing = Map::new();
        let (old, new) = (keywords(self.old, old), keywords(self.new, new));
        self.compare(at, side, old.unwrap_or(&nothing), new.unwrap_or(&nothing));
        if is_named {
            self.open.remove(&pair);
        }
    }

    fn compare(&mut self, at: &str, side: Side, old: &Map<String, Value>, new: &Map<String, Value>) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        if let (Some(was), now) = (choices(old), choices(new)) {
            return self.values(at, side, &was, now.as_deref(), new);
        }
        for name in names.into_iter().filter(|name| !FOR_PEOPLE.contains(&name.as_str())) {
            match (name.as_str(), old.get(name), new.get(name)) {
                (_, Some(Value::Bool(old)), Some(Value::Bool(new))) if old == new => {}
                (_, old, new) if old == new && !holds_schemas(name) => {}
                ("type", old, new) => self.types(at, side, old, new),
                ("enum" | "const", ..) => {
                    if side == Side::Sent {
                        self.fault(at, "takes only listed values now");
                    }
                }
                ("properties", old, new) => self.properties(at, side, old, new),
                ("required", old, new) => self.required(at, side, old, new),
                ("items" | "additionalProperties", Some(old), Some(new)) if old.is_object() && new.is_object() => {
                    self.schemas(&format!("{at}[]"), side, old, new);
                }
                ("additionalProperties", old, Some(Value::Bool(false))) if side == Side::Answered || old.is_none() => {
                    if side == Side::Sent {
                        self.fault(at, "refuses other fields now");
                    }
                }
                ("additionalProperties", Some(Value::Bool(false)), _) => {}
                ("anyOf" | "oneOf", Some(old), Some(new)) => self.variants(at, side, old, new),
                (name, old, new) => self.check(at, side, name, old, new),
            }
        }
    }

    fn check(&mut self, at: &str, side: Side, name: &str, old: Option<&Value>, new: Option<&Value>) {
        let bound = BOUNDS.iter().find(|(known, _)| *known == name);
        if bound.is_some() || CHECKS.contains(&name) {
            let wider = match (bound, old.and_then(Value::as_f64), new.and_then(Value::as_f64)) {
                (Some((_, true)), Some(old), Some(new)) => new >= old,
                (Some((_, false)), Some(old), Some(new)) => new <= old,
                _ => new.is_none(),
            };
            // An answer within other bounds is still of the kind that was promised.
            if side == Side::Sent && !wider {
                self.fault(at, format!("`{name}` is narrower"));
            }
        } else {
            self.fault(at, format!("`{name}` has changed"));
        }
    }

    /// A list of values: a client may be answered new ones, but none that it sends may be refused.
    fn values(&mut self, at: &str, side: Side, was: &[Value], now: Option<&[Value]>, new: &Map<String, Value>) {
        match (side, now) {
            (Side::Answered, Some(_)) => {}
            (Side::Answered, None) => self.fault(at, "is not one of listed values any more"),
            (Side::Sent, Some(now)) => {
                for gone in was.iter().filter(|value| !now.contains(value)) {
                    self.fault(at, format!("does not take {gone} any more"));
                }
            }
            (Side::Sent, None) => {
                let taken = types(new.get("type"));
                let refused = |value: &&Value| !taken.is_empty() && !taken.contains(type_of(value));
                if let Some(gone) = was.iter().find(refused) {
                    self.fault(at, format!("does not take {gone} any more"));
                }
            }
        }
    }

    fn types(&mut self, at: &str, side: Side, old: Option<&Value>, new: Option<&Value>) {
        let (old, new) = (types(old), types(new));
        let within = |small: &BTreeSet<&str>, large: &BTreeSet<&str>| {
            let one = |name: &&str| large.contains(name) || (*name == "integer" && large.contains("number"));
            large.is_empty() || (!small.is_empty() && small.iter().all(one))
        };
        match side {
            Side::Sent if !within(&old, &new) => self.fault(at, "`type` is narrower"),
            Side::Answered if !within(&new, &old) => self.fault(at, "`type` is wider"),
            _ => {}
        }
    }

    fn properties(&mut self, at: &str, side: Side, old: Option<&Value>, new: Option<&Value>) {
        for (name, field) in old.and_then(Value::as_object).into_iter().flatten() {
            let at = format!("{at}/{name}");
            match new.and_then(|new| new.get(name)) {
                Some(now) => self.schemas(&at, side, field, now),
                None => self.fault(&at, "is gone"),
            }
        }
    }

    fn required(&mut self, at: &str, side: Side, old: Option<&Value>, new: Option<&Value>) {
        let (old, new) = (names(old), names(new));
        let (changed, told) = match side {
            Side::Sent => (new.difference(&old), "is required now"),
            Side::Answered => (old.difference(&new), "may be left out now"),
        };
        for name in changed {
            self.fault(&format!("{at}/{name}"), told);
        }
    }

    /// Every variant of the side that was promised must have one that it fits on the other.
    fn variants(&mut self, at: &str, side: Side, old: &Value, new: &Value) {
        let none = Vec::new();
        let (old, new) = (old.as_array().unwrap_or(&none), new.as_array().unwrap_or(&none));
        let fits = |old: &Value, new: &Value| {
            let mut one = Comparison { faults: Vec::new(), open: self.open.clone(), ..*self };
            one.schemas(at, side, old, new);
            one.faults.is_empty()
        };
        let kept = match side {
            Side::Sent => old.iter().all(|old| new.iter().any(|new| fits(old, new))),
            Side::Answered => new.iter().all(|new| old.iter().any(|old| fits(old, new))),
        };
        if !kept {
            self.fault(at, "has other variants");
        }
    }
}

/// The keywords of a schema, or of the one that it refers to.
fn keywords<'s>(document: &'s Value, schema: &'s Value) -> Option<&'s Map<String, Value>> {
    let target = schema["$ref"].as_str().and_then(|text| document.pointer(text.trim_start_matches('#')));
    target.unwrap_or(schema).as_object()
}

fn holds_schemas(keyword: &str) -> bool {
    // Equal text may point to unequal schemas.
    ["properties", "items", "additionalProperties", "anyOf", "oneOf"].contains(&keyword)
}

/// The values of a schema that lists them, each by itself or as variants with words of their own.
fn choices(schema: &Map<String, Value>) -> Option<Vec<Value>> {
    if let Some(value) = schema.get("const") {
        return Some(vec![value.clone()]);
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return Some(values.clone());
    }
    let variants = schema.get("oneOf")?.as_array()?;
    let lists: Option<Vec<_>> = variants.iter().map(|variant| choices(variant.as_object()?)).collect();
    Some(lists?.concat())
}

fn types(value: Option<&Value>) -> BTreeSet<&str> {
    match value {
        Some(Value::String(one)) => BTreeSet::from([one.as_str()]),
        other => names(other),
    }
}

fn names(value: Option<&Value>) -> BTreeSet<&str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
