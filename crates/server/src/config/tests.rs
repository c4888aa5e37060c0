//! Configuration as a function of flags, environment and file.

use std::collections::BTreeMap;
use std::fs;

use clap::{Args, Command, FromArgMatches};
use courant_core::access::Reach;

use super::layers::{env_name, flag_name};
use super::*;

const KEYS: &str = "one:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// Every setting of the file with a value that is not its default.
const SAMPLES: &[(&str, &str)] = &[
    ("listen", "'127.0.0.1:9999'"),
    ("data_dir", "'/var/lib/courant'"),
    ("public_base_url", "'https://courant.example.com'"),
    ("metrics_listen", "'127.0.0.1:9100'"),
    ("max_sockets", "7"),
    ("log_format", "'json'"),
    ("log_filter", "'debug'"),
    ("rate_limit", "50"),
    ("trusted_proxies", "['10.0.0.0/8', '192.0.2.7']"),
    ("cors_origins", "['https://app.example.com', 'http://localhost:5173']"),
    ("database_url", "'postgres://db/courant'"),
    ("database_url_file", "'FILE'"),
    ("journal_retention", "'90d'"),
    ("journal_export_dir", "'/var/lib/courant/exports'"),
    ("slack_api_base_url", "'http://127.0.0.1:9001/api'"),
    ("notification_delivery_retention", "'7d'"),
    ("notification_history_retention", "'off'"),
    ("notification_max_attempts", "3"),
    ("egress_allow", "['10.0.0.0/8', 'hooks.internal']"),
    ("oidc_issuers", "'https://login.example.com;audience=us'"),
    ("oidc_audience", "'us'"),
    ("authorize", "'policy'"),
    ("pdp_url", "'https://policy.example.com'"),
    ("pdp_token", "'hush-hush'"),
    ("pdp_token_file", "'FILE'"),
    ("bootstrap_secret", "'hush-hush'"),
    ("bootstrap_secret_file", "'FILE'"),
    ("encryption_keys", "'KEYS'"),
    ("encryption_keys_file", "'FILE'"),
];

fn flags(line: &[&str]) -> ServeArgs {
    let command = ServeArgs::augment_args(Command::new("serve").no_binary_name(true));
    ServeArgs::from_arg_matches(&command.try_get_matches_from(line).unwrap()).unwrap()
}

fn resolve(line: &[&str], env: &[(&str, &str)], file: Option<&str>) -> Result<Config, ConfigError> {
    let env: BTreeMap<&str, &str> = env.iter().copied().collect();
    let lookup = |name: &str| env.get(name).map(|&value| value.to_owned());
    Config::resolve(&flags(line), &lookup, file.map(|text| (Path::new("courant.toml"), text)))
}

fn refusal(line: &[&str], env: &[(&str, &str)], file: Option<&str>) -> String {
    resolve(line, env, file).unwrap_err().to_string()
}

#[test]
fn without_configuration_the_server_is_local_and_embedded() {
    let config = resolve(&[], &[], None).unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.database.url.expose(), "sqlite://./courant-data/courant.db");
    assert_eq!(config.server.log_format, LogFormat::Text);
    assert_eq!(config.notify.slack_api_base_url.url().as_str(), "https://slack.com/api");
    assert_eq!(config.notify.delivery_retention.as_secs(), 30 * 24 * 3600);
    assert_eq!(config.notify.history_retention.unwrap().as_secs(), 7 * 24 * 3600);
    assert_eq!(config.notify.max_attempts, 8);
    assert!(config.server.public_base_url.is_none());
    assert!(config.server.metrics_listen.is_none());
    assert!(config.security.bootstrap_secret.is_none());
    assert!(config.security.encryption_keys.is_none());
}

#[test]
fn flags_win_over_environment_over_file_over_defaults() {
    let env = [("COURANT_NOTIFICATION_MAX_ATTEMPTS", "3")];
    let file = Some("notification_max_attempts = 4");
    let attempts = |line: &[&str], env: &[_], file| resolve(line, env, file).unwrap().notify.max_attempts;
    assert_eq!(attempts(&["--notification-max-attempts", "2"], &env, file), 2);
    assert_eq!(attempts(&[], &env, file), 3);
    assert_eq!(attempts(&[], &[], file), 4);
    assert_eq!(attempts(&[], &[], None), 8);
}

#[test]
fn secrets_follow_the_same_order() {
    let env = [("COURANT_DATABASE_URL", "postgres://env/x")];
    let file = Some("database_url = 'postgres://file/x'");
    let url = |line: &[&str], env: &[_], file| resolve(line, env, file).unwrap().database.url.expose().to_owned();
    assert_eq!(url(&["--database-url", "postgres://flag/x"], &env, file), "postgres://flag/x");
    assert_eq!(url(&[], &env, file), "postgres://env/x");
    assert_eq!(url(&[], &[], file), "postgres://file/x");
    assert_eq!(url(&["--data-dir", "/srv"], &[], None), "sqlite:///srv/courant.db");
}

#[test]
fn a_secret_can_stand_in_a_file_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secret");
    fs::write(&path, "  from-a-file\n").unwrap();
    let path = path.to_str().unwrap();
    let secret = |line: &[&str], env: &[(&str, &str)], file: Option<&str>| {
        let config = resolve(line, env, file).unwrap();
        config.security.bootstrap_secret.unwrap().expose().to_owned()
    };
    assert_eq!(secret(&["--bootstrap-secret-file", path], &[], None), "from-a-file");
    assert_eq!(secret(&[], &[("COURANT_BOOTSTRAP_SECRET_FILE", path)], None), "from-a-file");
    let in_file = format!("bootstrap_secret_file = '{path}'");
    assert_eq!(secret(&[], &[], Some(&in_file)), "from-a-file");
    let over_file = [("COURANT_BOOTSTRAP_SECRET_FILE", path)];
    assert_eq!(secret(&[], &over_file, Some("bootstrap_secret = 'lower layer'")), "from-a-file");
}

#[test]
fn a_secret_given_twice_in_one_layer_is_refused() {
    let env = [("COURANT_BOOTSTRAP_SECRET", "x"), ("COURANT_BOOTSTRAP_SECRET_FILE", "/y")];
    assert_eq!(
        refusal(&[], &env, None),
        "COURANT_BOOTSTRAP_SECRET in the environment and COURANT_BOOTSTRAP_SECRET_FILE in the environment are both \
         given; keep one"
    );
}

#[test]
fn a_missing_or_empty_secret_file_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().join("empty");
    fs::write(&empty, "\n").unwrap();
    let missing = refusal(&[], &[("COURANT_DATABASE_URL_FILE", "/no/such/file")], None);
    assert!(missing.starts_with("COURANT_DATABASE_URL_FILE in the environment: /no/such/file: "), "{missing}");
    let line = ["--bootstrap-secret-file", empty.to_str().unwrap()];
    assert_eq!(refusal(&line, &[], None), "--bootstrap-secret-file on the command line: is empty");
    let file = Some("bootstrap_secret = ''");
    assert_eq!(refusal(&[], &[], file), "bootstrap_secret in courant.toml: is empty");
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let env = [("COURANT_LISTEN", ""), ("COURANT_BOOTSTRAP_SECRET", " "), ("COURANT_DATABASE_URL_FILE", "")];
    let config = resolve(&[], &env, Some("listen = '127.0.0.1:1234'")).unwrap();
    assert_eq!(config.server.listen.port(), 1234);
    assert!(config.security.bootstrap_secret.is_none());
    assert!(config.database.is_default);
}

#[test]
fn a_wrong_value_is_refused_with_its_name_and_origin() {
    for (env, file, expected) in [
        (("COURANT_LISTEN", "8080"), None, "COURANT_LISTEN in the environment: invalid socket address syntax"),
        (
            ("", ""),
            Some("notification_delivery_retention = '30 days'"),
            "notification_delivery_retention in courant.toml: `30 days` is not a length of time such as 10s, 15m, 12h \
             or 30d",
        ),
        (
            ("SLACK_API_BASE_URL", "slack.com/api"),
            None,
            "SLACK_API_BASE_URL in the environment: is not a URL: relative URL without a base",
        ),
        (
            ("COURANT_EGRESS_ALLOW", "10.0.0.0/8,*.internal"),
            None,
            "COURANT_EGRESS_ALLOW in the environment: `*.internal` is not a network (10.0.0.0/8), an address, a host \
             name or an address with a port",
        ),
        (("", ""), Some("log_format = true"), "log_format in courant.toml: is not a text, a number or a list of texts"),
        (
            ("COURANT_DATABASE_URL", "mysql://user:pass@db/x"),
            None,
            "COURANT_DATABASE_URL in the environment: is neither a sqlite:// nor a postgres:// URL",
        ),
        (
            ("COURANT_ENCRYPTION_KEYS", "one:short"),
            None,
            "COURANT_ENCRYPTION_KEYS in the environment: the key `one` is not the base64 of 32 bytes (`openssl rand \
             -base64 32` makes one)",
        ),
        (
            ("COURANT_JOURNAL_RETENTION", "59s"),
            None,
            "COURANT_JOURNAL_RETENTION in the environment: is shorter than a minute",
        ),
    ] {
        assert_eq!(refusal(&[], &[env], file), expected);
    }
}

#[test]
fn a_wrong_flag_is_refused_by_name() {
    let command = ServeArgs::augment_args(Command::new("serve").no_binary_name(true));
    let error = command.try_get_matches_from(["--notification-max-attempts", "0"]).unwrap_err().to_string();
    assert!(error.contains("--notification-max-attempts"), "{error}");
    assert!(error.contains("`0` is not a number from 1 to 100"), "{error}");
}

#[test]
fn an_unknown_key_of_the_file_is_refused_by_name() {
    let file = Some("listen = '127.0.0.1:1'\nnotification_max_atempts = 3");
    assert_eq!(refusal(&[], &[], file), "`notification_max_atempts` in courant.toml is not a setting");
}

#[test]
fn a_file_that_is_not_toml_is_refused_with_its_line_and_without_its_text() {
    let text = refusal(&[], &[], Some("listen = '127.0.0.1:1'\nbootstrap_secret = hush-hush"));
    assert!(text.starts_with("courant.toml is not TOML, line 2: "), "{text}");
    assert!(!text.contains("hush"), "{text}");
}

#[test]
fn debug_of_a_configuration_shows_no_secret() {
    let env = [
        ("COURANT_DATABASE_URL", "postgres://courant:pa55word@db/courant"),
        ("COURANT_BOOTSTRAP_SECRET", "hush-hush"),
        ("COURANT_ENCRYPTION_KEYS", KEYS),
    ];
    let text = format!("{:?}", resolve(&[], &env, None).unwrap());
    for secret in ["pa55word", "hush", "AAAA"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn this_machine_may_be_reached_only_while_nothing_else_is_configured() {
    let loopback = "127.0.0.1".parse().unwrap();
    let first = resolve(&[], &[], None).unwrap();
    assert!(first.egress().allows_address(loopback));
    assert!(first.egress_note().unwrap().contains("COURANT_EGRESS_ALLOW"));
    for env in [
        ("COURANT_EGRESS_ALLOW", ""),
        ("COURANT_EGRESS_ALLOW", "10.0.0.0/8"),
        ("COURANT_DATABASE_URL", "sqlite:///srv/courant.db"),
        ("COURANT_LISTEN", "0.0.0.0:8080"),
        ("COURANT_PUBLIC_BASE_URL", "https://courant.example.com"),
    ] {
        let config = resolve(&[], &[env], None).unwrap();
        assert!(!config.egress().allows_address(loopback), "{env:?}");
        assert_eq!(config.egress_note(), None, "{env:?}");
    }
}

#[test]
fn what_the_operator_lists_may_be_reached() {
    let ip = "10.1.2.3".parse().unwrap();
    let file = Some("egress_allow = ['10.0.0.0/8', 'hooks.internal']");
    let config = resolve(&[], &[], file).unwrap();
    assert!(config.egress().allows_address(ip) && config.egress().allows_name("hooks.internal"));
    let config = resolve(&[], &[("COURANT_EGRESS_ALLOW", "")], file).unwrap();
    assert!(!config.egress().allows_address(ip), "an empty list in the environment wins over the file");
}

#[test]
fn every_setting_of_the_schema_is_read_from_file_and_environment() {
    let schema = Config::json_schema();
    let described: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let sampled: Vec<&str> = SAMPLES.iter().map(|(name, _)| *name).collect();
    assert_eq!(described, sampled);

    let directory = tempfile::tempdir().unwrap();
    let defaults = format!("{:?}", resolve(&[], &[], None).unwrap());
    for (name, sample) in SAMPLES {
        let path = directory.path().join(name);
        let content = if name.starts_with("encryption") { KEYS } else { "postgres://secret/x" };
        fs::write(&path, content).unwrap();
        let sample = sample.replace("FILE", path.to_str().unwrap()).replace("KEYS", KEYS);
        let from_file = resolve(&[], &[], Some(&format!("{name} = {sample}"))).unwrap();
        assert_ne!(format!("{from_file:?}"), defaults, "{name} in the file");
        let text = sample.replace(['\'', '[', ']', ' '], "");
        let from_env = resolve(&[], &[(&env_name(name), &text)], None).unwrap();
        assert_eq!(format!("{from_env:?}"), format!("{from_file:?}"), "{name} in the environment");
    }
}

#[test]
fn every_setting_has_a_flag_but_secrets_and_help_names_the_variable() {
    let command = ServeArgs::augment_args(Command::new("serve"));
    let help: BTreeMap<String, String> = command
        .get_arguments()
        .map(|arg| (format!("--{}", arg.get_long().unwrap()), arg.get_help().unwrap().to_string()))
        .collect();
    for (name, _) in SAMPLES {
        let flag = if matches!(*name, "bootstrap_secret" | "encryption_keys" | "pdp_token") {
            assert!(!help.contains_key(&flag_name(name)), "{name} would be seen on the command line");
            flag_name(&format!("{name}_file"))
        } else {
            flag_name(name)
        };
        assert!(help[&flag].contains(&env_name(name)), "{flag}: {}", help[&flag]);
    }
}

#[test]
fn a_policy_service_makes_the_mode_and_is_never_ignored() {
    let url = ("COURANT_PDP_URL", "https://policy.example.com");
    let decides = |env: &[(&str, &str)]| resolve(&[], env, None).map(|config| config.authorization);
    let alone = decides(&[url]).unwrap();
    assert_eq!(alone.reach, Reach::Subtree);
    assert_eq!(alone.decision_point().unwrap().url.as_str(), "https://policy.example.com/");
    assert!(decides(&[("COURANT_AUTHORIZE", "policy")]).unwrap().decision_point().is_none());
    assert_eq!(decides(&[]).unwrap().reach, Reach::Exact);
    let refused = decides(&[url, ("COURANT_AUTHORIZE", "local")]).unwrap_err().to_string();
    assert!(refused.contains("COURANT_PDP_URL"), "{refused}");
    let unknown = decides(&[("COURANT_AUTHORIZE", "allow")]).unwrap_err().to_string();
    assert!(unknown.contains("COURANT_AUTHORIZE"), "{unknown}");
    let token = decides(&[url, ("COURANT_PDP_TOKEN", "two words")]).unwrap_err().to_string();
    assert!(token.contains("COURANT_PDP_TOKEN") && !token.contains("two words"), "{token}");
}

#[test]
fn the_schema_is_the_committed_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contract/config.schema.json");
    let made = serde_json::to_string_pretty(&Config::json_schema()).unwrap() + "\n";
    #[expect(clippy::disallowed_methods, reason = "a switch of the tests, not of the product")]
    if std::env::var_os("COURANT_UPDATE_GOLDENS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert_eq!(made, fs::read_to_string(&path).unwrap_or_default(), "run with COURANT_UPDATE_GOLDENS=1 and review");
}

#[test]
fn the_schema_accepts_every_sample_and_refuses_other_keys() {
    let validator = jsonschema::draft202012::new(&Config::json_schema()).unwrap();
    for (name, sample) in SAMPLES {
        let table: toml::Table = format!("{name} = {sample}").parse().unwrap();
        assert!(validator.is_valid(&serde_json::to_value(&table).unwrap()), "{name}");
    }
    assert!(!validator.is_valid(&serde_json::json!({"lissten": "x"})));
}
