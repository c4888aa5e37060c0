//! The receiver answers what the test says and nothing else.

use courant_testkit::{Answer, Receiver};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

async fn post(receiver: &Receiver, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(receiver.address()).await.expect("a connection");
    let length = body.len();
    let request =
        format!("POST /in?a=b HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.expect("a request sent");
    stream
}

async fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("an answer");
    text.to_lowercase()
}

#[tokio::test]
async fn a_request_waits_for_the_answer_that_the_test_gives() {
    let receiver = Receiver::start().await;
    assert!(receiver.waiting().is_none());
    let stream = post(&receiver, r#"{"n":1}"#).await;
    let arrival = receiver.next().await;
    assert_eq!((arrival.target.as_str(), arrival.json()["n"].as_i64()), ("/in?a=b", Some(1)));
    assert_eq!(arrival.header("host"), "x");
    arrival.answer(Answer::status(503).retry_after(7));
    let text = answer(stream).await;
    assert!(text.starts_with("http/1.1 503") && text.contains("retry-after: 7"), "{text}");
}

#[tokio::test]
async fn a_request_that_the_test_drops_was_not_taken() {
    let receiver = Receiver::start().await;
    let stream = post(&receiver, "{}").await;
    drop(receiver.next().await);
    assert!(answer(stream).await.starts_with("http/1.1 503"));
}

#[tokio::test]
async fn only_the_secret_of_the_signature_verifies_it() {
    let receiver = Receiver::start().await;
    let _stream = post(&receiver, "{}").await;
    let arrival = receiver.next().await;
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| arrival.verified("whsec_c2VjcmV0")));
    assert!(refused.is_err(), "an unsigned request verified");
}
