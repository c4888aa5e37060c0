use proptest::prelude::*;
use uuid::Uuid;

use super::*;

fn id(n: usize) -> StackId {
    StackId(Uuid::from_u128(n as u128 + 1))
}

fn stack(n: usize, depends_on: &[usize]) -> Stack {
    Stack { id: id(n), repository: None, path: None, depends_on: depends_on.iter().map(|n| id(*n)).collect() }
}

fn at(n: usize, repository: &str, path: Option<&str>) -> Stack {
    Stack { repository: Some(repository.into()), path: path.map(str::to_owned), ..stack(n, &[]) }
}

/// Which stacks can be reached from which, found by trying every way.
fn reaches(stacks: &[Stack]) -> Vec<Vec<bool>> {
    let place = |id: &StackId| stacks.iter().position(|stack| stack.id == *id);
    let mut reach = vec![vec![false; stacks.len()]; stacks.len()];
    for (n, stack) in stacks.iter().enumerate() {
        for to in stack.depends_on.iter().filter_map(place) {
            reach[n][to] = true;
        }
    }
    for by in 0..stacks.len() {
        for from in 0..stacks.len() {
            for to in 0..stacks.len() {
                reach[from][to] |= reach[from][by] && reach[by][to];
            }
        }
    }
    reach
}

fn brute_cycles(stacks: &[Stack]) -> Vec<Vec<StackId>> {
    let reach = reaches(stacks);
    let mut groups = Vec::new();
    for (n, from) in reach.iter().enumerate() {
        let group: Vec<_> = (0..stacks.len()).filter(|m| from[*m] && reach[*m][n]).collect();
        if group.first() == Some(&n) {
            groups.push(group.into_iter().map(|m| stacks[m].id).collect());
        }
    }
    groups
}

fn graphs() -> impl Strategy<Value = Vec<Stack>> {
    // A dependency beyond the last stack is on one that is gone.
    (1..14_usize).prop_flat_map(|count| {
        prop::collection::vec(prop::collection::btree_set(0..count + 2, 0..4), count).prop_map(|all| {
            let needs = all.into_iter().map(|needs| needs.into_iter().collect::<Vec<_>>());
            needs.enumerate().map(|(n, needs)| stack(n, &needs)).collect()
        })
    })
}

proptest! {
    #[test]
    fn findings_are_those_of_a_search_by_brute_force(stacks in graphs()) {
        let found = find(&stacks, BUDGET);
        prop_assert_eq!(&found.cycles, &brute_cycles(&stacks));
        let gone: Vec<_> = stacks
            .iter()
            .flat_map(|s| s.depends_on.iter().map(move |to| Orphan { stack_id: s.id, missing_stack_id: *to }))
            .filter(|orphan| stacks.iter().all(|s| s.id != orphan.missing_stack_id))
            .collect();
        prop_assert_eq!(&found.orphans, &gone);
        prop_assert_eq!(found.counts.cycles, Some(i64::try_from(found.cycles.len()).unwrap()));
        prop_assert_eq!(found.counts.orphans, Some(i64::try_from(gone.len()).unwrap()));
    }

    /// A budget is enough, and the answer whole, or it is not, and the answer unknown.
    #[test]
    fn what_a_budget_does_not_reach_is_unknown(stacks in graphs(), budget in 0..60_usize) {
        let (whole, some) = (find(&stacks, BUDGET), find(&stacks, budget));
        prop_assert_eq!(some.cycles_complete, some.counts.cycles.is_some());
        prop_assert_eq!(some.orphans_complete, some.counts.orphans.is_some());
        let edges: usize = stacks.iter().map(|s| s.depends_on.len()).sum();
        prop_assert_eq!(some.orphans_complete, budget >= edges);
        prop_assert_eq!(some.cycles_complete, budget >= edges + stacks.len());
        if some.cycles_complete {
            prop_assert_eq!(some.cycles, whole.cycles);
        }
        if some.orphans_complete {
            prop_assert_eq!(some.orphans, whole.orphans);
        }
    }
}

#[test]
fn ten_thousand_stacks_stay_within_the_budget_and_a_long_chain_within_the_thread() {
    let stacks: Vec<_> =
        (0..10_000).map(|n| stack(n, &(0..99).map(|k| (n + k * 7 + 1) % 10_000).collect::<Vec<_>>())).collect();
    let found = find(&stacks, BUDGET);
    assert_eq!((found.counts.cycles, found.cycles_complete), (Some(1), true));
    let chain: Vec<_> = (0..300_000).map(|n| stack(n, &[(n + 1) % 300_000])).collect();
    assert_eq!(find(&chain, BUDGET).cycles[0].len(), 300_000);
    let over = find(&stacks, 10_000);
    assert_eq!((over.counts.cycles, over.counts.orphans), (None, None), "unknown is not zero");
}

#[test]
fn a_stack_that_depends_on_itself_is_a_cycle() {
    assert_eq!(find(&[stack(0, &[0]), stack(1, &[0])], BUDGET).cycles, [[id(0)]]);
}

#[test]
fn places_are_told_apart_as_people_would() {
    let stacks = [
        at(0, "https://github.com/acme/infra.git", Some("/network/")),
        at(1, "github.com/acme/infra/", Some("./network")),
        at(2, "github.com/acme/infra", Some("network/eu")),
        at(3, "github.com/acme/infra", None),
        at(4, "github.com/acme/infra", Some(".")),
        at(5, "github.com/acme/Infra", None),
        stack(6, &[]),
        stack(7, &[]),
    ];
    let found = find(&stacks, BUDGET);
    let duplicate = |path: Option<&str>, stacks: [usize; 2]| Duplicate {
        repository: "github.com/acme/infra".into(),
        path: path.map(str::to_owned),
        stack_ids: stacks.map(id).to_vec(),
    };
    assert_eq!(found.duplicates, [duplicate(None, [3, 4]), duplicate(Some("network"), [0, 1])]);
    assert_eq!(found.counts.duplicates, 2);
}

#[test]
fn only_the_first_are_named_and_all_are_counted() {
    let stacks: Vec<_> = (0..300).map(|n| stack(n, &[n, 1000])).collect();
    let found = find(&stacks, BUDGET);
    assert_eq!((found.counts.cycles, found.counts.orphans), (Some(300), Some(300)));
    assert_eq!((found.cycles.len(), found.orphans.len()), (100, 100));
}
