//! Secrets in people's text: taken out before the text goes where more people read it than its author meant.
//!
//! Each rule is one regular expression, compiled once; the engine is linear in the text. A rule errs towards taking out: what
//! is lost can be read where the text was written.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// The token shapes of those who give out many: a mark that is theirs, then what chance made.
const SHAPES: &[&str] = &[
    // Our own.
    r"c(?:ak|dt)_[A-Za-z0-9_-]{16,}",
    // Code hosts and package registries.
    r"gh[pousr]_[A-Za-z0-9]{16,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_.-]{16,}",
    r"ATATT3[A-Za-z0-9_=-]{20,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[A-Za-z0-9_-]{16,}",
    r"rubygems_[a-f0-9]{40,}",
    r"cio[A-Za-z0-9]{32}",
    r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}",
    // Clouds and infrastructure.
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",
    r"AIza[A-Za-z0-9_-]{30,}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"GOCSPX-[A-Za-z0-9_-]{20,}",
    r"1//0[A-Za-z0-9_-]{30,}",
    r"do[opr]_v1_[a-f0-9]{40,}",
    r"hv[sbr]\.[A-Za-z0-9_-]{20,}",
    r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}",
    r"dapi[a-f0-9]{32}",
    r"pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_.-]{20,}",
    r"sbp_[a-f0-9]{40}",
    r"AGE-SECRET-KEY-1[0-9A-Z]{50,}",
    // Messages and mail.
    r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{8,}",
    r"xapp-[0-9]-[A-Za-z0-9-]{8,}",
    r"https://hooks\.slack\.com/[A-Za-z0-9/_-]+",
    r"https://(?:[a-z]+\.)?discord(?:app)?\.com/api/webhooks/[0-9]+/[A-Za-z0-9_-]+",
    r"https://[A-Za-z0-9-]+\.webhook\.office\.com/[A-Za-z0-9/@_-]+",
    r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"(?:SK|AC)[a-f0-9]{32}",
    r"key-[a-f0-9]{32}",
    r"[a-f0-9]{32}-us[0-9]{1,2}",
    // Payment and shops.
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}",
    r"whsec_[A-Za-z0-9+/=_-]{16,}",
    r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}",
    r"sq0[a-z]{3}-[A-Za-z0-9_-]{20,}",
    // Models and observation.
    r"sk-[A-Za-z0-9_-]{20,}",
    r"hf_[A-Za-z0-9]{30,}",
    r"NRAK-[A-Z0-9]{20,}",
    r"gl(?:sa|c)_[A-Za-z0-9+/=_]{20,}",
    r"sntry[su]_[A-Za-z0-9+/=_]{20,}",
    r"lin_api_[A-Za-z0-9]{30,}",
    r"ntn_[A-Za-z0-9]{30,}",
    // A JSON Web Token, signed (RFC 7515) or encrypted (RFC 7516).
    r"eyJ[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*){2,4}",
];

/// Names of what is secret, as they are written before a value.
const NAMES: &str = "pass(?:word|wd|phrase|code)?|pwd|secret|token|credentials?|api[_-]?key|access[_-]?key|\
    private[_-]?key|account[_-]?key|shared[_-]?access[_-]?(?:key|signature)|encryption[_-]?key|signing[_-]?key";

fn compiled(pattern: &str) -> Regex {
    // A pattern is a constant of this file, and the first test of it compiles them all.
    #[expect(clippy::expect_used, reason = "see above")]
    Regex::new(pattern).expect("a pattern of this file")
}

/// A whole PEM block (RFC 7468); one without its end reaches to the end of the text.
static PEM: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?s)-----BEGIN [A-Z0-9 ]{1,60}-----.*?(?:-----END [A-Z0-9 ]{1,60}-----|\z)"));

static SHAPE: LazyLock<Regex> = LazyLock::new(|| compiled(&format!(r"(?-u:\b)(?:{})", SHAPES.join("|"))));

/// What stands before the host in a URL with a password (RFC 3986, section 3.2.1), or alone in one over HTTP.
static USERINFO: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"(?i)([a-z][a-z0-9+.-]*://[^\s/?#@:"'<>]*:|https?://)[^\s/?#"'<>]*@"#));

/// `Authorization: …`, whatever the scheme.
static HEADER: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"(?i)(authorization["']?\s*[:=]\s*["']?(?:[a-z]+[ \t]+)?)([^\s"',]+)"#));

/// `Bearer …` and `Basic …` (RFC 6750, RFC 7617).
static SCHEME: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?i)((?-u:\b)(?:bearer|basic)[ \t]+)([A-Za-z0-9+/=._~-]{8,})"));

/// `name = value`, as configuration, JSON, query strings and people write it.
static ASSIGNMENT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(&format!(
        r#"(?i)([a-z0-9_.-]*(?:{NAMES})[a-z0-9_-]*["']?\s*(?::=|=>|==|=|:)\s*|[?&;](?:sig|x-amz-signature)=)("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|[^\s,;&"'<>]+)"#
    ))
});

/// What stands for what a rule has found.
type Replacement = fn(&Captures<'_>) -> String;

/// The text without its secrets. What is redacted stays so: to redact twice is to redact once.
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut redacted = Cow::Borrowed(text);
    let rules: [(&Regex, Replacement); 6] = [
        (&PEM, |_| REDACTED.to_owned()),
        (&USERINFO, |found| format!("{}{REDACTED}@", before(found))),
        (&HEADER, |found| format!("{}{REDACTED}", before(found))),
        (&SCHEME, credential),
        (&SHAPE, |_| REDACTED.to_owned()),
        (&ASSIGNMENT, assigned),
    ];
    for (rule, replacement) in rules {
        if let Cow::Owned(changed) = rule.replace_all(&redacted, replacement) {
            redacted = Cow::Owned(changed);
        }
    }
    redacted
}

/// The text without its secrets, then its first `max_chars` characters (Unicode scalar values): a secret that the cut would
/// have halved is gone before.
pub fn redact_and_cut(text: &str, max_chars: usize) -> String {
    redact(text).chars().take(max_chars).collect()
}

fn before<'t>(found: &Captures<'t>) -> &'t str {
    found.get(1).map_or("", |part| part.as_str())
}

fn value<'t>(found: &Captures<'t>) -> &'t str {
    found.get(2).map_or("", |part| part.as_str())
}

/// After `Basic` and `Bearer` a word of prose may follow: a credential has more than letters in one case, or is longer than
/// words are.
fn credential(found: &Captures<'_>) -> String {
    let text = value(found).trim_end_matches(['.', '-']);
    let mixed = text.chars().skip(1).any(|c| c.is_ascii_uppercase()) && text.chars().any(|c| c.is_ascii_lowercase());
    let is_credential = mixed || text.len() >= 24 || text.contains(|c: char| c.is_ascii_digit() || "+/=_~".contains(c));
    if is_credential { format!("{}{REDACTED}", before(found)) } else { found[0].to_owned() }
}

/// A count or a switch is no secret, unless it is a password.
fn assigned(found: &Captures<'_>) -> String {
    let (name, text) = (before(found), value(found));
    let bare = text.trim_matches(['"', '\'']).trim_end_matches(['.', ')']);
    let is_password = name.to_ascii_lowercase().contains("pass") || name.to_ascii_lowercase().contains("pwd");
    let plain = ["true", "false", "null", "none"].contains(&bare.to_ascii_lowercase().as_str())
        || (bare.len() <= 6 && bare.bytes().all(|b| b.is_ascii_digit()));
    if bare.is_empty() || bare.starts_with("[redacted") || (plain && !is_password) {
        return found[0].to_owned();
    }
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'')).map(String::from).unwrap_or_default();
    format!("{name}{quote}{REDACTED}{quote}")
}

#[cfg(test)]
mod tests;
