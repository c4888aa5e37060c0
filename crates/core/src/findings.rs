//! What is wrong with stacks as they depend on one another: cycles, dependencies on what is gone, and places that several have.
//!
//! Looking for cycles and orphans costs steps, of which there is a budget. What a budget did not reach is unknown, never none.

use std::collections::{BTreeMap, HashMap};

use courant_api::StackId;
use courant_api::deployments::{Duplicate, FindingCounts, FindingsView, Orphan};

/// Steps that a look for cycles, and one for orphans, may cost: a step is a stack or a dependency that is looked at.
pub const BUDGET: usize = 1_000_000;
/// Most findings of each kind that are named.
const NAMED: usize = 100;

/// A stack and what it depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Its id.
    pub id: StackId,
    /// Where its code is.
    pub repository: Option<String>,
    /// Where in the repository.
    pub path: Option<String>,
    /// The stacks that it depends on; one that is not among the stacks is gone.
    pub depends_on: Vec<StackId>,
}

/// What is wrong with these stacks, as far as `budget` steps for cycles and as many for orphans reach.
pub fn find(stacks: &[Stack], budget: usize) -> FindingsView {
    let mut cycles = cycles(stacks, budget);
    let mut orphans = orphans(stacks, budget);
    let mut duplicates = duplicates(stacks);
    let count = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
    let counts = FindingCounts {
        cycles: cycles.as_ref().map(|all| count(all.len())),
        orphans: orphans.as_ref().map(|all| count(all.len())),
        duplicates: count(duplicates.len()),
    };
    let (cycles_complete, orphans_complete) = (cycles.is_some(), orphans.is_some());
    if let Some(all) = &mut cycles {
        all.truncate(NAMED);
    }
    if let Some(all) = &mut orphans {
        all.truncate(NAMED);
    }
    duplicates.truncate(NAMED);
    FindingsView {
        counts,
        cycles_complete,
        orphans_complete,
        duplicates_complete: true,
        cycles: cycles.unwrap_or_default(),
        orphans: orphans.unwrap_or_default(),
        duplicates,
    }
}

/// Counts the steps of a look; none are left once it answers false.
struct Steps(usize);

impl Steps {
    fn take(&mut self) -> bool {
        let left = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        left
    }
}

/// The dependencies on stacks that are not there, in the order of the stacks.
fn orphans(stacks: &[Stack], budget: usize) -> Option<Vec<Orphan>> {
    let mut steps = Steps(budget);
    let known: std::collections::HashSet<StackId> = stacks.iter().map(|stack| stack.id).collect();
    let mut orphans = Vec::new();
    for stack in stacks {
        for missing in &stack.depends_on {
            if !steps.take() {
                return None;
            }
            if !known.contains(missing) {
                orphans.push(Orphan { stack_id: stack.id, missing_stack_id: *missing });
            }
        }
    }
    Some(orphans)
}

/// The groups of stacks that depend on one another: the strongly connected components with more than one stack, and stacks
/// that depend on themselves. Each group, and the list of them, is in the order of the stacks.
///
/// Tarjan's algorithm (Depth-first search and linear graph algorithms, 1972), with a stack of its own in place of recursion.
fn cycles(stacks: &[Stack], budget: usize) -> Option<Vec<Vec<StackId>>> {
    const UNSEEN: usize = usize::MAX;
    let mut steps = Steps(budget);
    let place: HashMap<StackId, usize> = stacks.iter().enumerate().map(|(n, stack)| (stack.id, n)).collect();
    let mut order = vec![UNSEEN; stacks.len()];
    let mut lowest = vec![0; stacks.len()];
    let mut is_open = vec![false; stacks.len()];
    let mut open: Vec<usize> = Vec::new();
    let mut seen = 0;
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for root in 0..stacks.len() {
        if order[root] != UNSEEN {
            continue;
        }
        // Where the walk stands, and which dependency of it comes next.
        let mut walk: Vec<(usize, usize)> = vec![(root, 0)];
        while let Some((at, next)) = walk.pop() {
            if next == 0 {
                if !steps.take() {
                    return None;
                }
                (order[at], lowest[at], is_open[at]) = (seen, seen, true);
                open.push(at);
                seen += 1;
            }
            if let Some(id) = stacks[at].depends_on.get(next) {
                if !steps.take() {
                    return None;
                }
                walk.push((at, next + 1));
                match place.get(id) {
                    Some(&to) if order[to] == UNSEEN => walk.push((to, 0)),
                    Some(&to) if is_open[to] => lowest[at] = lowest[at].min(order[to]),
                    _ => {}
                }
                continue;
            }
            if let Some((below, _)) = walk.last() {
                lowest[*below] = lowest[*below].min(lowest[at]);
            }
            if lowest[at] == order[at] {
                let first = open.iter().rposition(|stack| *stack == at).unwrap_or(0);
                let mut group = open.split_off(first);
                for stack in &group {
                    is_open[*stack] = false;
                }
                group.sort_unstable();
                if group.len() > 1 || stacks[at].depends_on.contains(&stacks[at].id) {
                    groups.push(group);
                }
            }
        }
    }
    groups.sort_unstable();
    Some(groups.into_iter().map(|group| group.into_iter().map(|n| stacks[n].id).collect()).collect())
}

/// A repository without what does not change which one it is: its scheme, `.git` and slashes at its end.
fn repository_of(text: &str) -> &str {
    let text = text.split_once("://").map_or(text, |(_, rest)| rest).trim_end_matches('/');
    text.strip_suffix(".git").unwrap_or(text).trim_end_matches('/')
}

/// A path without slashes at its ends and `./` at its beginning; the root is none.
fn path_of(text: Option<&str>) -> Option<&str> {
    let mut text = text?.trim_matches('/');
    while let Some(rest) = text.strip_prefix("./") {
        text = rest.trim_start_matches('/');
    }
    (!text.is_empty() && text != ".").then_some(text)
}

/// Places that more than one stack has, in alphabetical order.
fn duplicates(stacks: &[Stack]) -> Vec<Duplicate> {
    let mut places: BTreeMap<(&str, Option<&str>), Vec<StackId>> = BTreeMap::new();
    for stack in stacks {
        if let Some(repository) = &stack.repository {
            let place = (repository_of(repository), path_of(stack.path.as_deref()));
            places.entry(place).or_default().push(stack.id);
        }
    }
    let several = places.into_iter().filter(|(_, stacks)| stacks.len() > 1);
    several
        .map(|((repository, path), stack_ids)| Duplicate {
            repository: repository.to_owned(),
            path: path.map(str::to_owned),
            stack_ids,
        })
        .collect()
}

#[cfg(test)]
mod tests;
