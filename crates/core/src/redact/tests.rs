//! Planted secrets do not survive, wherever they stand; prose does.

use proptest::prelude::*;

use super::*;

/// Text with a secret, and the secret in it. Written in pieces, so that nobody takes them for live ones.
const PLANTED: &[(&str, &str)] = &[
    ("key cak_3fJqPz8sKd72LmXw9QvT", "3fJqPz8sKd72LmXw9QvT"),
    ("cdt_3fJqPz8sKd72LmXw9QvT", "3fJqPz8sKd72LmXw9QvT"),
    (concat!("ghp", "_16C7e42F292c6912E7710c838347Ae178B4a"), "16C7e42F292c6912E7710c838347Ae178B4a"),
    (concat!("gho", "_16C7e42F292c6912E7710c838347Ae178B4a"), "16C7e42F292c6912E7710c838347Ae178B4a"),
    (concat!("github", "_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ"), "11ABCDEFG0aBcDeFgHiJkL"),
    (concat!("glpat", "-xYz12_AbCdEfGhIjKlMn"), "xYz12_AbCdEfGhIjKlMn"),
    (concat!("ATATT", "3xFfGF0abcdefghijklmnop=1234ABCD"), "xFfGF0abcdefghijklmnop"),
    (concat!("npm", "_abcdefghijklmnopqrstuvwxyz0123456789"), "abcdefghijklmnopqrstuvwxyz0123456789"),
    (concat!("pypi", "-AgEIcHlwaS5vcmcCJGFiY2RlZg"), "AgEIcHlwaS5vcmcCJGFiY2RlZg"),
    (concat!("rubygems", "_0123456789abcdef0123456789abcdef0123456789abcdef"), "0123456789abcdef0123456789"),
    (concat!("dckr", "_pat_AbCdEfGhIjKlMnOpQrStUv-_1"), "AbCdEfGhIjKlMnOpQrStUv"),
    (concat!("AKIA", "IOSFODNN7EXAMPLE"), "IOSFODNN7EXAMPLE"),
    (concat!("ASIA", "IOSFODNN7EXAMPLE"), "IOSFODNN7EXAMPLE"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    (concat!("AIza", "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"), "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"),
    (concat!("ya29", ".a0AfH6SMBx_abcdefghijklmnop"), "a0AfH6SMBx_abcdefghijklmnop"),
    (concat!("GOCSPX", "-abcdefghijklmnopqrstuvwx"), "abcdefghijklmnopqrstuvwx"),
    (concat!("dop", "_v1_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"), "0123456789abcdef0123"),
    (concat!("hvs", ".CAESIJ1abcdefghijklmnop_-q"), "CAESIJ1abcdefghijklmnop_-q"),
    (
        concat!("Ab1Cd2Ef3Gh4Ij", ".atlasv1.abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"),
        "abcdefghijklmnopqrst",
    ),
    (concat!("dapi", "0123456789abcdef0123456789abcdef"), "0123456789abcdef0123456789abcdef"),
    (concat!("AGE-SECRET", "-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ"), "QQQQQQQQQQQQQQQQQQ"),
    (concat!("xoxb", "-17653672481-19874698323-pdFZKVeTuE8sk7oOcBrzbqgy"), "pdFZKVeTuE8sk7oOcBrzbqgy"),
    (concat!("xapp", "-1-A0123456789-abcdef0123"), "A0123456789-abcdef0123"),
    (concat!("https://hooks.slack", ".com/services/T00000000/B00000000/pQ3rS5tU7vW9yZ1a"), "pQ3rS5tU7vW9yZ1a"),
    (concat!("https://discord", ".com/api/webhooks/123456789/abcDEF_ghi-JKL"), "abcDEF_ghi-JKL"),
    (concat!("110201543", ":AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsawq"), "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsawq"),
    (concat!("SG", ".ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf-09kqeF8tAmbihYzrnopKc-1s5cr"), "TwL2iGABf9DHoTf"),
    (concat!("SK", "0123456789abcdef0123456789abcdef"), "0123456789abcdef0123456789abcdef"),
    (concat!("key", "-0123456789abcdef0123456789abcdef"), "0123456789abcdef0123456789abcdef"),
    (concat!("sk", "_live_4eC39HqLyjWDarjtT1zdp7dc"), "4eC39HqLyjWDarjtT1zdp7dc"),
    (concat!("rk", "_test_4eC39HqLyjWDarjtT1zdp7dc"), "4eC39HqLyjWDarjtT1zdp7dc"),
    ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
    (concat!("shpat", "_0123456789abcdef0123456789ABCDEF"), "0123456789abcdef0123456789ABCDEF"),
    (concat!("sk", "-proj-abcdEFGH1234ijklMNOP5678"), "abcdEFGH1234ijklMNOP5678"),
    (concat!("sk", "-ant-api03-abcdEFGH1234ijklMNOP5678"), "abcdEFGH1234ijklMNOP5678"),
    (concat!("hf", "_abcdefghijklmnopqrstuvwxyzABCDEFGH"), "abcdefghijklmnopqrstuvwxyzABCDEFGH"),
    (concat!("NRAK", "-ABCDEFGHIJKLMNOPQRSTUVWXYZ1"), "ABCDEFGHIJKLMNOPQRSTUVWXYZ1"),
    (concat!("glsa", "_abcdefghijklmnopqrstuvwxyz012345_a1b2c3d4"), "abcdefghijklmnopqrstuvwxyz012345"),
    (
        concat!("eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"),
        "eyJzdWIiOiIxMjM0NTY3ODkwIn0",
    ),
    ("Authorization: Bearer mF_9.B5f-4.1JqM", "mF_9.B5f-4.1JqM"),
    ("authorization: Digest response=0a4f113b", "response=0a4f113b"),
    ("sent with bearer 0123456789abcdef", "0123456789abcdef"),
    ("curl -H 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=='", "QWxhZGRpbjpvcGVuIHNlc2FtZQ"),
    ("postgres://app:correct-horse-battery@db.internal/app", "correct-horse-battery"),
    ("postgres://app:p@ss:word99@db.internal/app", "ss:word99"),
    ("redis://:hunter2hunter2@cache:6379", "hunter2hunter2"),
    ("https://oauthtoken1234567890@example.com/repo.git", "oauthtoken1234567890"),
    ("password: correct-horse-battery", "correct-horse-battery"),
    ("PASSWORD=correct-horse-battery", "correct-horse-battery"),
    ("password: 123456", "123456"),
    ("db_passwd := 'correct horse battery'", "correct horse battery"),
    ("{\"clientSecret\": \"correct \\\" horse battery\"}", "horse battery"),
    ("the passphrase => \"never finished horse", "never finished horse"),
    ("api_key=Zm9vYmFyYmF6cXV4", "Zm9vYmFyYmF6cXV4"),
    ("MY_APP_TOKEN=abcdefghijkl", "abcdefghijkl"),
    ("https://example.com/cb?access_token=abcdefghijkl&x=1", "abcdefghijkl"),
    ("AccountKey=Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4==;EndpointSuffix=x", "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4"),
    ("https://x.blob.core.windows.net/c?sv=2020&sig=Zm9vYmFyYmF6%3D", "Zm9vYmFyYmF6"),
    (
        concat!("-----BEGIN ", "RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabcdefgh\n-----END ", "RSA PRIVATE KEY-----"),
        "MIIEpAIBAAKCAQEA\nabcdefgh",
    ),
    (concat!("-----BEGIN ", "OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA"), "b3BlbnNzaC1rZXktdjEA"),
    (concat!("-----BEGIN ", "PGP PRIVATE KEY BLOCK-----\\nlQdGBF\\n-----END ", "PGP PRIVATE KEY BLOCK-----"), "lQdGBF"),
];

const PROSE: &[&str] = &[
    "The token expired, so the deployment waits; see the runbook for how to renew it.",
    "Please reset your password and sign in again. Passwords are at least twelve characters long.",
    "Basic authentication is off; bearer certificates are a matter of finance, and basic functionality works.",
    "We keep no secret from the team: the secret of good tea is warm milk.",
    "Deploy 019a2f51-d37a-7535-b849-b0ca43e91613 at commit 3c59dc048e8850243be8079a5c74d079f0ed1b2a.",
    "See https://example.com/orgs/7/deployments?status=failed&limit=20#top and mail ada@example.com.",
    "git clone ssh://git@example.com/platform/infra.git, then run `make plan` at 12:30:45.",
    "The model used max_tokens: 4096 and total_tokens=512; has_token=true, token: none.",
    "Key results: faster builds, fewer pages. Keyboard shortcuts: see below. Author: Ada.",
    "Überprüft von Zoë — 日本語のテスト, naïve façade, 100 % done ✓",
    "task-runner-2 skipped: disk_usage=93%, risk-averse, sk-8, AKIAN is a name, eyJ is how JSON begins.",
    "Basic auth? No: OAuth 2.0. The bearer of this letter, Ms Basic Instinct, may pass.",
];

/// Whether any ten characters in a row of the secret are in the text, or all of it when it is shorter.
fn shows(text: &str, secret: &str) -> bool {
    let chars: Vec<char> = secret.chars().collect();
    chars.windows(chars.len().min(10)).any(|window| text.contains(&window.iter().collect::<String>()))
}

#[test]
fn planted_secrets_do_not_survive() {
    assert!(PLANTED.len() >= 40);
    for (text, secret) in PLANTED {
        assert!(text.contains(secret), "{text}");
        for (before, after) in [("", ""), ("é", "。"), ("日本語", " ende"), ("(", ")"), ("\n\t", "\n"), ("say: ", ",")]
        {
            let whole = format!("{before}{text}{after}");
            let redacted = redact(&whole);
            assert!(!shows(&redacted, secret), "{whole}: {redacted}");
            assert!(redacted.contains(REDACTED), "{redacted}");
            assert_eq!(redact(&redacted), redacted, "{whole}");
        }
    }
}

#[test]
fn prose_survives() {
    for text in PROSE {
        assert_eq!(redact(text), *text);
    }
}

#[test]
fn what_surrounds_a_secret_survives() {
    for (text, expected) in [
        ("postgres://app:hunter2@db/app is down", "postgres://[redacted]@db/app is down"),
        ("{\"password\":\"x\\\"y\",\"user\":\"ada\"}", "{\"password\":\"[redacted]\",\"user\":\"ada\"}"),
        ("a=1&token=abcdefg&b=2", "a=1&token=[redacted]&b=2"),
        ("Authorization: Bearer abc\nX-Other: 1", "Authorization: Bearer [redacted]\nX-Other: 1"),
    ] {
        let redacted = redact(text);
        assert_eq!(redacted.replace("://app:", "://"), expected, "{text}");
    }
}

#[test]
fn the_cut_counts_characters_and_comes_after() {
    assert_eq!(redact_and_cut("äöü", 2), "äö");
    assert_eq!(redact_and_cut("short", 1000), "short");
    let text = format!("{}password=hunter2hunter2", "é".repeat(995));
    assert_eq!(redact_and_cut(&text, 1000), format!("{}passw", "é".repeat(995)));
}

proptest! {
    #[test]
    fn no_secret_survives_anywhere_around_the_cut(
        planted in 0..PLANTED.len(), at in 900_usize..1010, filler in "[a-zäé日🦀 ]", after in "[ ,。\\n]",
    ) {
        let (text, secret) = PLANTED[planted];
        // A letter before a mark would make another word of it.
        let whole = format!("{} {text}{after}{}", filler.repeat(at), filler.repeat(100));
        let told = redact_and_cut(&whole, 1000);
        prop_assert!(!shows(&told, secret), "{told}");
        prop_assert!(told.chars().count() <= 1000);
    }

    #[test]
    fn redacting_twice_is_redacting_once(text in "(?s).{0,300}", planted in 0..PLANTED.len()) {
        let whole = format!("{text}{}{text}", PLANTED[planted].0);
        let once = redact(&whole);
        prop_assert_eq!(redact(&once), once.clone());
    }

    #[test]
    fn words_survive(words in proptest::collection::vec("[A-Z]?[a-z]{1,12}", 1..40)) {
        let text = words.join(" ");
        prop_assert_eq!(redact(&text), text.as_str());
    }
}
