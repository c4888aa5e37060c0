//! How much work a schema can make of a payload, found before it is compiled.
//!
//! References can make every level of a payload cost twice as much as the one above it, so that a schema of a few
//! lines and a payload of a few bytes keep a server busy for hours; long chains of them exhaust a thread's stack. Both
//! are bounded here, from above. It must never let a schema through that it could not follow.

use std::collections::{HashMap, HashSet};

use courant_api::event::MAX_PAYLOAD_DEPTH;
use serde_json::Value;

use super::SchemaFault;
use super::keywords;
use crate::pointer;

/// How often one place of a payload may be looked at.
const MAX_VISITS: usize = 1_000;
/// How many schemas may wait for one another while the deepest payload is checked: five for each of its levels.
const MAX_CHAIN: usize = 5 * MAX_PAYLOAD_DEPTH;
/// How often what decides which fields are left over is looked at.
const UNEVALUATED: usize = 4;

/// The most often that any one place of a payload is looked at; faults if that is too often.
pub(super) fn visits(schema: &Value) -> Result<usize, Vec<SchemaFault>> {
    let graph = Graph::of(schema).map_err(|fault| vec![fault])?;
    let order = graph.leaves_first().map_err(|fault| vec![fault])?;
    let mut most = 0;
    // At each level below the schema: the visits of its worst place, and the longest way there.
    let mut above = vec![Work::default(); graph.nodes.len()];
    for level in 0..MAX_PAYLOAD_DEPTH {
        let mut here = vec![Work::default(); graph.nodes.len()];
        for &id in &order {
            here[id] = graph.nodes[id].work(&here, &above, level == 0);
        }
        let root = here[0];
        most = most.max(root.visits);
        if most > MAX_VISITS || root.chain > MAX_CHAIN {
            return Err(vec![SchemaFault::new(
                "",
                "its references and alternatives multiply: payloads could take too long to check",
            )]);
        }
        above = here;
    }
    Ok(most)
}

#[derive(Clone, Copy, Default)]
struct Work {
    visits: usize,
    chain: usize,
}

/// A schema by what it applies.
#[derive(Default)]
struct Node {
    /// To the same place.
    here: Vec<usize>,
    /// Each to another place one level below.
    apart: Vec<usize>,
    /// All to one place one level below, in the worst case.
    together: Vec<usize>,
    /// Whether what it applies to the same place decides which fields or items are left over.
    decides_leftovers: bool,
}

impl Node {
    /// `at_top`: the place itself is counted, not one below it.
    fn work(&self, here: &[Work], above: &[Work], at_top: bool) -> Work {
        let visits =
            |ids: &[usize], of: &[Work]| ids.iter().fold(0, |sum: usize, &id| sum.saturating_add(of[id].visits));
        let below = self.apart.iter().map(|&id| above[id].visits).max().unwrap_or(0);
        let visits = usize::from(at_top)
            .saturating_add(visits(&self.here, here).saturating_mul(if self.decides_leftovers {
                UNEVALUATED
            } else {
                1
            }))
            .saturating_add(below)
            .saturating_add(visits(&self.together, above));
        let nearer = self.here.iter().map(|&id| here[id].chain);
        let deeper = self.apart.iter().chain(&self.together).map(|&id| above[id].chain);
        Work { visits, chain: 1 + nearer.chain(deeper).max().unwrap_or(0) }
    }
}

/// Every schema that can be reached from the root, which is the first.
struct Graph {
    nodes: Vec<Node>,
    pointers: Vec<String>,
}

impl Graph {
    fn of(document: &Value) -> Result<Self, SchemaFault> {
        let anchors = anchors(document);
        let mut ids = HashMap::from([(String::new(), 0)]);
        let mut graph = Self { nodes: Vec::new(), pointers: vec![String::new()] };
        while let Some(at) = graph.pointers.get(graph.nodes.len()).cloned() {
            let mut id = |target: String| {
                *ids.entry(target).or_insert_with_key(|target| {
                    graph.pointers.push(target.clone());
                    graph.pointers.len() - 1
                })
            };
            let mut node = Node::default();
            for (keyword, value) in document.pointer(&at).and_then(Value::as_object).into_iter().flatten() {
                let under = pointer::join(&at, keyword);
                node.decides_leftovers |= matches!(keyword.as_str(), "unevaluatedProperties" | "unevaluatedItems");
                match keyword.as_str() {
                    "$ref" | "$dynamicRef" => {
                        let targets = value.as_str().and_then(|reference| targets(document, &anchors, reference));
                        let targets =
                            targets.ok_or_else(|| SchemaFault::new(under, "leads to nothing in this schema"))?;
                        node.here.extend(targets.into_iter().map(&mut id));
                    }
                    "properties" | "prefixItems" => {
                        node.apart.extend(keywords::inner(&under, keyword, value).map(&mut id));
                    }
                    "items"
                    | "additionalProperties"
                    | "patternProperties"
                    | "unevaluatedProperties"
                    | "unevaluatedItems"
                    | "contains"
                    | "propertyNames" => {
                        node.together.extend(keywords::inner(&under, keyword, value).map(&mut id));
                    }
                    // These apply nothing by themselves.
                    "$defs" | "definitions" | "contentSchema" => {}
                    _ => node.here.extend(keywords::inner(&under, keyword, value).map(&mut id)),
                }
            }
            graph.nodes.push(node);
        }
        Ok(graph)
    }

    /// An order in which every schema comes after all that it applies to the same place.
    fn leaves_first(&self) -> Result<Vec<usize>, SchemaFault> {
        let mut waiting_for: Vec<usize> = self.nodes.iter().map(|node| node.here.len()).collect();
        let mut users = vec![Vec::new(); self.nodes.len()];
        for (user, node) in self.nodes.iter().enumerate() {
            for &used in &node.here {
                users[used].push(user);
            }
        }
        let mut order: Vec<usize> = (0..self.nodes.len()).filter(|&id| waiting_for[id] == 0).collect();
        let mut next = 0;
        while let Some(&done) = order.get(next) {
            next += 1;
            for &user in &users[done] {
                waiting_for[user] -= 1;
                if waiting_for[user] == 0 {
                    order.push(user);
                }
            }
        }
        match (0..self.nodes.len()).find(|&id| waiting_for[id] > 0) {
            None => Ok(order),
            Some(stuck) => Err(self.circle(stuck, &waiting_for)),
        }
    }

    /// Names a schema of the circle that `stuck` leads into.
    fn circle(&self, stuck: usize, waiting_for: &[usize]) -> SchemaFault {
        let mut passed = HashSet::new();
        let mut at = stuck;
        while passed.insert(at) {
            at = self.nodes[at].here.iter().copied().find(|&id| waiting_for[id] > 0).unwrap_or(at);
        }
        SchemaFault::new(self.pointers[at].as_str(), "refers to itself without a step into the payload")
    }
}

fn anchors(document: &Value) -> HashMap<&str, Vec<String>> {
    let mut anchors: HashMap<&str, Vec<String>> = HashMap::new();
    keywords::visit(document, &mut |at, schema| {
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = schema.get(keyword).and_then(Value::as_str) {
                anchors.entry(name).or_default().push(at.to_owned());
            }
        }
    });
    anchors
}

/// The pointers of what a reference inside the document may lead to.
fn targets(document: &Value, anchors: &HashMap<&str, Vec<String>>, reference: &str) -> Option<Vec<String>> {
    let fragment = percent_decoded(reference.strip_prefix('#')?)?;
    if fragment.is_empty() || fragment.starts_with('/') {
        return document.pointer(&fragment).is_some().then(|| vec![fragment]);
    }
    anchors.get(fragment.as_str()).cloned()
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let hex = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16));
        decoded.push(match byte {
            b'%' => u8::try_from(hex(bytes.next())? * 16 + hex(bytes.next())?).ok()?,
            plain => plain,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests;
