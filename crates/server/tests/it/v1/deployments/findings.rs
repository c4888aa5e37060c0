//! `/orgs/{org_id}/findings`

use super::stack;
use crate::support::{World, json, on_both_databases};

async fn findings_are_cycles_orphans_and_duplicates_of_the_org(world: &World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let path = tenant.org("/findings");
    let clean = tenant.get(&path).await.expect(200);
    assert_eq!(clean["counts"], json!({ "cycles": 0, "orphans": 0, "duplicates": 0 }));
    assert_eq!((&clean["cyclesComplete"], &clean["orphansComplete"]), (&json!(true), &json!(true)));

    let code = json!({ "repository": "github.com/acme/infra", "path": "network" });
    let network = stack(&tenant, code.clone()).await;
    let depends =
        |on: &[&str]| json!({ "dependsOn": on.iter().map(|id| json!({ "stackId": id })).collect::<Vec<_>>() });
    let cluster = stack(&tenant, depends(&[&network])).await;
    let depend = async |stack: &str, on: &[&str]| {
        tenant.patch(&tenant.org(&format!("/stacks/{stack}")), &depends(on)).await.expect(200);
    };
    depend(&network, &[&cluster]).await;
    let alone = stack(&tenant, json!({ "name": "alone" })).await;
    depend(&alone, &[&alone]).await;
    let gone = stack(&tenant, json!({ "name": "gone" })).await;
    let lost = stack(&tenant, depends(&[&gone])).await;
    tenant.delete(&tenant.org(&format!("/stacks/{gone}"))).await.expect(204);
    let copy = stack(&tenant, code.clone()).await;
    // Another org's stacks are no finding of this one's, nor this one's of that.
    stack(&other, code).await;
    assert_eq!(other.get(&other.org("/findings")).await.expect(200)["counts"], clean["counts"]);

    let found = tenant.get(&path).await.expect(200);
    assert_eq!(found["counts"], json!({ "cycles": 2, "orphans": 1, "duplicates": 1 }));
    let mut cycles = found["cycles"].as_array().unwrap().clone();
    cycles.sort_by_key(|cycle| cycle.as_array().unwrap().len());
    let mut both = [network.clone(), cluster];
    both.sort();
    let mut members: Vec<_> = cycles[1].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect();
    members.sort();
    assert_eq!((&cycles[0], members.as_slice()), (&json!([alone]), &both[..]));
    assert_eq!(found["orphans"], json!([{ "stackId": lost, "missingStackId": gone }]));
    let duplicate = &found["duplicates"][0];
    assert_eq!((&duplicate["repository"], &duplicate["path"]), (&json!("github.com/acme/infra"), &json!("network")));
    let mut stacks = duplicate["stackIds"].as_array().unwrap().clone();
    stacks.sort_by_key(ToString::to_string);
    let mut expected = vec![json!(network), json!(copy)];
    expected.sort_by_key(ToString::to_string);
    assert_eq!(stacks, expected);

    let member = tenant.member(&[("deployments.read", "tenant")]).await;
    member.get(&path).await.refused(403, "permission_denied");
    other.get(&path).await.refused(404, "not_found");
}

on_both_databases! {
    findings_are_cycles_orphans_and_duplicates_of_the_org,
}
