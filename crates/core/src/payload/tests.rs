use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::*;

const LIMITS: Limits = Limits { max_bytes: 256 * 1024, max_depth: 64 };

/// Pointers and kinds of what is wrong, with what the messages hold.
fn faults(text: &str) -> Vec<(String, FaultKind, String)> {
    faults_within(text, &LIMITS)
}

fn faults_within(text: &str, limits: &Limits) -> Vec<(String, FaultKind, String)> {
    let found = check(text, limits).err().unwrap_or_default();
    found.into_iter().map(|fault| (fault.pointer, fault.kind, fault.message)).collect()
}

fn unkeepable(text: &str) -> Vec<(String, String)> {
    let found = faults(text);
    assert!(found.iter().all(|(_, kind, _)| *kind == FaultKind::Unkeepable), "{text}: {found:?}");
    found.into_iter().map(|(pointer, _, message)| (pointer, message)).collect()
}

fn pointers(text: &str) -> Vec<String> {
    unkeepable(text).into_iter().map(|(pointer, _)| pointer).collect()
}

#[track_caller]
fn assert_only(text: &str, pointer: &str, message: &str) {
    assert_eq!(unkeepable(text), [(pointer.to_owned(), message.to_owned())], "{text}");
}

#[test]
fn ordinary_json_is_kept() {
    for text in [
        "{}",
        "[]",
        "null",
        "true",
        " false\n",
        "0",
        "-0",
        "-0.5e-3",
        "1E+2",
        r#""""#,
        "\t[ ] ",
        r#"{"a":{"b":[1,{"c":null},"\ud83d\ude00","\\u0000","\/"]},"b":{"a":1},"":0}"#,
        "1.7976931348623157e308",
        "1e-400",
        "[[],{},[{}]]",
    ] {
        assert_eq!(check(text, &LIMITS), Ok(()), "{text}");
    }
}

#[test]
fn a_repeated_key_is_named_once_at_its_place() {
    assert_only(r#"{"a":1,"b":2,"a":3,"a":4}"#, "/a", "the key occurs more than once");
    assert_only(r#"{"x":[0,{"a/b":1,"a\/b":2}]}"#, "/x/1/a~1b", "the key occurs more than once");
    assert_only(r#"{"":1,"":2}"#, "/", "the key occurs more than once");
}

#[test]
fn keys_that_differ_only_in_how_they_are_written_are_the_same() {
    assert_eq!(pointers(r#"{"ab":1,"\u0061b":2}"#), ["/ab"]);
    assert_eq!(pointers(r#"{"😀":1,"\ud83d\ude00":2}"#), ["/😀"]);
    assert_eq!(pointers(r#"{"\n":1,"\u000A":2}"#), ["/\n"]);
}

#[test]
fn a_repeated_key_is_found_among_many() {
    let mut members: Vec<String> = (0..1000).map(|i| format!(r#""k{i}":{i}"#)).collect();
    members.push(r#""k500":0"#.to_owned());
    assert_eq!(pointers(&format!("{{{}}}", members.join(","))), ["/k500"]);
}

#[test]
fn an_escaped_nul_cannot_be_kept_in_value_or_key() {
    assert_only(r#"{"a":["x\u0000y"]}"#, "/a/0", r"\u0000 cannot be kept");
    assert_only(r#"{"a\u0000":1}"#, "/a\0", r"\u0000 cannot be kept");
}

#[test]
fn a_surrogate_must_have_its_pair() {
    for text in [r"\ud800", r"\udc00", r"\ud800x", r"\ud800\n", r"\ud800A", r"\udc00\ud800", r"\ud800\ud800\udc00"] {
        assert_only(&format!(r#"["{text}"]"#), "/0", "a surrogate stands alone");
    }
    assert_only(r#"{"\udead":1}"#, "/\u{fffd}", "a surrogate stands alone");
}

#[test]
fn a_nul_after_a_lone_surrogate_is_seen_too() {
    assert_eq!(pointers(r#"["\ud800\u0000"]"#), ["/0", "/0"]);
}

#[test]
fn numbers_beyond_a_double_are_out_of_range() {
    let long = "9".repeat(400);
    for number in ["1e309", "-1e400", "1E+99999999999999999999", long.as_str(), "1.8e308"] {
        assert_only(&format!(r#"{{"n":[{number}]}}"#), "/n/0", "the number is out of range");
    }
    assert_eq!(check(&"9".repeat(300), &LIMITS), Ok(()));
}

#[test]
fn the_depth_limit_counts_the_outermost_level() {
    let limits = Limits { max_depth: 2, ..LIMITS };
    assert_eq!(check(r#"{"a":[1]}"#, &limits), Ok(()));
    let found = faults_within(r#"{"a":[1,[2,[3]],{}],"b":{"c":{"d":{}}}}"#, &limits);
    let pointers: Vec<&str> = found.iter().map(|(pointer, ..)| pointer.as_str()).collect();
    assert_eq!(pointers, ["/a/1", "/a/2", "/b/c"]);
    assert!(found.iter().all(|(_, kind, message)| *kind == FaultKind::Unkeepable && message == "nested too deep"));
}

#[test]
fn what_lies_too_deep_is_still_checked_for_syntax() {
    let limits = Limits { max_depth: 1, ..LIMITS };
    let found = faults_within(r#"{"a":{"x":1e999,"x":"\u0000"},"b":2}"#, &limits);
    assert_eq!(found.len(), 1, "{found:?}");
    let found = faults_within(r#"{"a":{"x":{"y":!}}}"#, &limits);
    assert_eq!((found[1].0.as_str(), found[1].1), ("/a", FaultKind::Syntax));
}

#[test]
fn a_hundred_thousand_levels_do_no_harm() {
    let limits = Limits { max_bytes: usize::MAX, max_depth: 64 };
    let levels = 100_000;
    for (open, inner, close) in [("[", "", "]"), (r#"{"a":"#, "1", "}")] {
        let text = open.repeat(levels) + inner + &close.repeat(levels);
        assert_eq!(check(&text, &limits).unwrap_err().len(), 1);
        let unlimited = Limits { max_bytes: usize::MAX, max_depth: usize::MAX };
        assert_eq!(check(&text, &unlimited), Ok(()));
        let broken = check(&open.repeat(levels), &limits).unwrap_err();
        assert_eq!(broken.last().unwrap().kind, FaultKind::Syntax);
    }
}

#[test]
fn the_size_limit_counts_bytes() {
    let limits = Limits { max_bytes: 4, max_depth: 64 };
    assert_eq!(check("\"é\"", &limits), Ok(()));
    assert_eq!(
        faults_within("\"éx\"", &limits),
        [(String::new(), FaultKind::Unkeepable, "longer than 4 bytes".to_owned())]
    );
}

#[test]
fn text_that_is_not_json_is_told_where_it_breaks() {
    for (text, pointer, expected) in [
        ("", "", "byte 0: expected a value"),
        (r#"{"a":[1,2"#, "/a/1", "byte 9: expected , or ]"),
        (r#"{"a":[1,}"#, "/a/1", "byte 8: expected a value"),
        (r#"{"a":1,}"#, "/a", "byte 7: expected a key in quotes"),
        (r#"{"a" 1}"#, "/a", "byte 5: expected :"),
        ("{a:1}", "", "byte 1: expected a key in quotes"),
        ("[01]", "/0", "byte 2: expected , or ]"),
        ("[1.]", "/0", "byte 3: expected a digit"),
        ("[-]", "/0", "byte 2: expected a digit"),
        ("nul", "", "byte 0: expected a value"),
        ("{} {}", "", "byte 3: nothing more was expected"),
        ("\"a\nb\"", "", "byte 2: control characters must be escaped"),
        (r#""\x""#, "", "byte 2: unknown escape"),
        (r#""\u12"#, "", "byte 5: expected four hexadecimal digits"),
        (r#""abc"#, "", "byte 4: the string does not end"),
        ("\u{feff}{}", "", "byte 0: expected a value"),
    ] {
        let found = faults(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert_eq!((found[0].0.as_str(), found[0].1), (pointer, FaultKind::Syntax), "{text}");
        assert_eq!(found[0].2, format!("not JSON at {expected}"), "{text}");
    }
}

#[test]
fn at_most_twenty_faults_are_told_and_a_syntax_fault_is_always_among_them() {
    let many = format!("[{}", r#""\u0000","#.repeat(50));
    assert_eq!(faults(&format!("{many}0]")).len(), 20);
    let broken = faults(&many);
    assert_eq!((broken.len(), broken[19].1), (20, FaultKind::Syntax));
}

#[test]
fn long_pointers_do_not_multiply() {
    let text = format!(r#"{{"{}":[{}0]}}"#, "k".repeat(100_000), r#""\u0000","#.repeat(50));
    assert_eq!(pointers(&text).len(), 1);
}

fn values() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no infinity", |f| f.is_finite()).prop_map(Value::from),
        "[^\0]*".prop_map(Value::from),
    ];
    scalar.prop_recursive(5, 40, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::hash_map("[^\0]{0,3}", inner, 0..8)
                .prop_map(|members| Value::from(members.into_iter().collect::<serde_json::Map<_, _>>())),
        ]
    })
}

/// Texts near JSON: real ones with a few characters cut out, doubled or replaced, and soup of JSON's characters.
fn nearly_json() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u00", "\\ud800", "\\udc00", "1", "0", "-", ".", "e", "E+", "true",
        "null", " ", "\n", "a", "\u{1}", "é", "\"a\":", "\u{0}",
    ]);
    let soup = prop::collection::vec(pieces.clone(), 0..14).prop_map(|pieces| pieces.concat());
    let mutated =
        (values(), any::<prop::sample::Index>(), 0..3_usize, pieces).prop_map(|(value, place, cut, piece)| {
            let characters: Vec<char> = value.to_string().chars().collect();
            let place = place.index(characters.len());
            let (head, tail) = (&characters[..place], &characters[(place + cut).min(characters.len())..]);
            head.iter().collect::<String>() + piece + &tail.iter().collect::<String>()
        });
    prop_oneof![soup, mutated]
}

proptest! {
    #[test]
    fn what_serde_json_writes_is_kept(value in values()) {
        prop_assert_eq!(check(&value.to_string(), &LIMITS), Ok(()));
        prop_assert_eq!(check(&serde_json::to_string_pretty(&value).unwrap(), &LIMITS), Ok(()));
    }

    #[test]
    fn json_is_what_serde_json_takes_for_json(text in nearly_json()) {
        let found = faults(&text);
        let is_json = !found.iter().any(|(_, kind, _)| *kind == FaultKind::Syntax);
        prop_assert_eq!(is_json, serde_json::from_str::<IgnoredAny>(&text).is_ok(), "{:?}", found);
    }

    #[test]
    fn what_is_kept_reads_as_a_value_with_every_key(text in nearly_json()) {
        if check(&text, &LIMITS).is_ok() {
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
        }
    }

    #[test]
    fn a_number_is_kept_if_and_only_if_it_reads_as_a_double(
        number in "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?([eE][+-]?(30[0-9]|[0-9]{1,4}))?",
    ) {
        let reads = number.parse::<f64>().unwrap().is_finite() && serde_json::from_str::<Value>(&number).is_ok();
        prop_assert_eq!(check(&number, &LIMITS).is_ok(), reads);
    }

    #[test]
    fn no_text_panics(text in any::<String>(), max_depth in 0..4_usize, max_bytes in 0..100_usize) {
        let _ = check(&text, &Limits { max_bytes, max_depth });
        let _ = check(&format!("[{text}]"), &Limits { max_bytes: 1000, max_depth });
    }

    #[test]
    fn every_pointer_leads_into_the_text(value in values()) {
        // Doubling the first member of every object makes duplicate keys and nothing else.
        let text = doubled(&value);
        for (pointer, message) in unkeepable(&text) {
            prop_assert_eq!(message, "the key occurs more than once");
            prop_assert!(value.pointer(&pointer).is_some(), "{}", pointer);
        }
    }
}

fn doubled(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(doubled).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| format!("{}:{}", json!(key), doubled(value));
            let all = members.iter().take(1).chain(members).map(member).collect::<Vec<_>>();
            format!("{{{}}}", all.join(","))
        }
        scalar => scalar.to_string(),
    }
}
