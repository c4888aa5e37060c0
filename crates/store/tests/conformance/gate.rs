//! Holds units of work between their append and their commit until the test lets go, in whatever order it likes.

use courant_store::{Barrier, Options, Store};
use courant_testkit::PATIENCE;
use tokio::sync::{mpsc, oneshot};

/// Units that reached the gate, in the order in which they did.
pub struct Gate(mpsc::UnboundedReceiver<Held>);

/// A unit that has appended and not yet ended.
pub struct Held {
    /// What its events are about.
    pub entities: Vec<String>,
    go: oneshot::Sender<bool>,
}

impl Held {
    pub fn commit(self) {
        self.go.send(true).unwrap();
    }

    pub fn roll_back(self) {
        self.go.send(false).unwrap();
    }
}

impl Gate {
    /// A store on a PostgreSQL database whose appending units all stop at the gate.
    pub async fn store(url: &str, connections: usize) -> (Store, Self) {
        let (arrived, gate) = mpsc::unbounded_channel();
        let barrier = Barrier::new(move |entities| {
            let arrived = arrived.clone();
            Box::pin(async move {
                let (go, gone) = oneshot::channel();
                // A test that is over lets nobody through.
                arrived.send(Held { entities, go }).is_ok() && gone.await.unwrap_or(false)
            })
        });
        let options = Options { connections, barrier: Some(barrier), ..Options::server(url) };
        (Store::open(&options).await.unwrap(), Self(gate))
    }

    /// The next unit to reach the gate.
    pub async fn next(&mut self) -> Held {
        tokio::time::timeout(PATIENCE, self.0.recv()).await.expect("nobody comes to the gate").unwrap()
    }
}
