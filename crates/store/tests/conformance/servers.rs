//! Servers and the encryption keys that a database needs.

use crate::cases;
use crate::world::{World, at};

cases![
    a_server_lives_while_it_beats,
    servers_of_an_hour_ago_are_forgotten,
    an_encryption_key_is_noted_once_with_its_first_proof,
];

async fn a_server_lives_while_it_beats(world: World) {
    let server = world.store.server_register(at(0)).await.unwrap();
    assert!(world.store.server_beat(server, at(2)).await.unwrap());
    assert_eq!(world.raw().await.number("SELECT heartbeat_at FROM server").await, at(2).micros());
    world.store.server_leave(server).await.unwrap();
    assert!(!world.store.server_beat(server, at(4)).await.unwrap(), "it must register again");
    world.store.server_leave(server).await.unwrap();
}

async fn servers_of_an_hour_ago_are_forgotten(world: World) {
    let old = world.store.server_register(at(0)).await.unwrap();
    let young = world.store.server_register(at(3600)).await.unwrap();
    // SQLite has one server, so whatever else is there is gone.
    assert_eq!(world.store.server_beat(old, at(0)).await.unwrap(), world.is_postgres());
    let new = world.store.server_register(at(3601)).await.unwrap();
    assert!(!world.store.server_beat(old, at(3601)).await.unwrap());
    assert_eq!(world.store.server_beat(young, at(3601)).await.unwrap(), world.is_postgres());
    assert!(world.store.server_beat(new, at(3601)).await.unwrap());
}

async fn an_encryption_key_is_noted_once_with_its_first_proof(world: World) {
    assert_eq!(world.store.encryption_keys().await.unwrap(), []);
    for (id, check) in [("k2", vec![2]), ("k1", vec![1, 0, 255]), ("k2", vec![9])] {
        world.store.encryption_key_add(id.into(), check).await.unwrap();
    }
    let expected = [("k1".to_owned(), vec![1, 0, 255]), ("k2".to_owned(), vec![2])];
    assert_eq!(world.store.encryption_keys().await.unwrap(), expected);
}
