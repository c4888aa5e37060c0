//! The layers of a configuration, asked setting by setting: flag, environment, file.
//!
//! Every value of every layer is read by the one parser of its type. Knows no setting by name, except the one whose
//! environment variable is not ours to name.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::ConfigError;
use super::error::Origin;
use crate::secrets::Secret;

/// What remains to be asked for.
pub(super) struct Layers<'a> {
    env: &'a dyn Fn(&str) -> Option<String>,
    table: toml::Table,
    path: PathBuf,
}

/// A secret before it is known whether it stands here or in a file.
type Given = Option<(Origin, String)>;

/// The environment variable of a setting.
pub(super) fn env_name(setting: &str) -> String {
    match setting {
        // The name that Slack's own tools use.
        "slack_api_base_url" => "SLACK_API_BASE_URL".to_owned(),
        _ => format!("COURANT_{}", setting.to_ascii_uppercase()),
    }
}

/// The flag of a setting.
pub(super) fn flag_name(setting: &str) -> String {
    format!("--{}", setting.replace('_', "-"))
}

impl<'a> Layers<'a> {
    pub(super) fn new(
        env: &'a dyn Fn(&str) -> Option<String>,
        file: Option<(&Path, &str)>,
    ) -> Result<Self, ConfigError> {
        let Some((path, text)) = file else {
            return Ok(Self { env, table: toml::Table::new(), path: PathBuf::new() });
        };
        // Only the text of the problem: the whole error shows the line, which may hold a secret.
        let table = text.parse::<toml::Table>().map_err(|error| ConfigError::NotToml {
            path: path.to_owned(),
            line: error.span().and_then(|s| text.get(..s.start)).map_or(1, |before| before.matches('\n').count() + 1),
            problem: error.message().to_owned(),
        })?;
        Ok(Self { env, table, path: path.to_owned() })
    }

    /// A setting; in the environment an empty value counts as none.
    pub(super) fn pick<T>(&mut self, setting: &'static str, flag: Option<&T>) -> Result<Option<T>, ConfigError>
    where
        T: FromStr<Err: Display> + Clone,
    {
        self.pick_from(setting, flag, false)
    }

    /// A list, for which an empty value is a value.
    pub(super) fn pick_list<T>(&mut self, setting: &'static str, flag: Option<&T>) -> Result<Option<T>, ConfigError>
    where
        T: FromStr<Err: Display> + Clone,
    {
        self.pick_from(setting, flag, true)
    }

    fn pick_from<T>(&mut self, setting: &str, flag: Option<&T>, empty_counts: bool) -> Result<Option<T>, ConfigError>
    where
        T: FromStr<Err: Display> + Clone,
    {
        let in_file = self.given_in_file(setting)?;
        if let Some(flag) = flag {
            return Ok(Some(flag.clone()));
        }
        let in_env = self.given_in_env(setting).filter(|(_, text)| empty_counts || !text.is_empty());
        in_env.or(in_file).map(|(origin, text)| parse(origin, &text)).transpose()
    }

    /// A secret, given as such or as the name of a file that holds it. Only whole layers override one another.
    pub(super) fn pick_secret<T>(
        &mut self,
        setting: &'static str,
        flag: Option<&Secret>,
        file_flag: Option<&PathBuf>,
    ) -> Result<Option<T>, ConfigError>
    where
        T: FromStr<Err: Display>,
    {
        let by_file = format!("{setting}_file");
        let in_file = (self.given_in_file(setting)?, self.given_in_file(&by_file)?);
        let filled = |given: Given| given.filter(|(_, text)| !text.is_empty());
        let layers = [
            (
                flag.map(|secret| (Origin::Flag(flag_name(setting)), secret.expose().to_owned())),
                file_flag.map(|path| (Origin::Flag(flag_name(&by_file)), path.to_string_lossy().into_owned())),
            ),
            (filled(self.given_in_env(setting)), filled(self.given_in_env(&by_file))),
            in_file,
        ];
        for layer in layers {
            match layer {
                (None, None) => {}
                (Some((value, _)), Some((file, _))) => {
                    return Err(ConfigError::Both { value, file });
                }
                (Some((origin, text)), None) => return parse_filled(origin, &text).map(Some),
                (None, Some((origin, path))) => {
                    let text = std::fs::read_to_string(&path).map(Secret::new).map_err(|error| {
                        ConfigError::Invalid { origin: origin.clone(), problem: format!("{path}: {error}") }
                    })?;
                    return parse_filled(origin, text.expose().trim()).map(Some);
                }
            }
        }
        Ok(None)
    }

    /// Refuses what the file holds beyond the settings that were asked for.
    pub(super) fn finish(self) -> Result<(), ConfigError> {
        match self.table.into_iter().next() {
            Some((key, _)) => Err(ConfigError::UnknownKey { key, path: self.path }),
            None => Ok(()),
        }
    }

    fn given_in_env(&self, setting: &str) -> Given {
        let name = env_name(setting);
        let value = (self.env)(&name)?;
        Some((Origin::Environment(name), value.trim().to_owned()))
    }

    fn given_in_file(&mut self, setting: &str) -> Result<Given, ConfigError> {
        let Some(value) = self.table.remove(setting) else {
            return Ok(None);
        };
        let origin = Origin::File { key: setting.to_owned(), path: self.path.clone() };
        match text_of(&value) {
            Some(text) => Ok(Some((origin, text))),
            None => Err(ConfigError::Invalid { origin, problem: "is not a text, a number or a list of texts".into() }),
        }
    }
}

fn text_of(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.trim().to_owned()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Array(items) => {
            let items: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
            items.map(|items| items.join(","))
        }
        _ => None,
    }
}

fn parse<T: FromStr<Err: Display>>(origin: Origin, text: &str) -> Result<T, ConfigError> {
    text.parse().map_err(|error: T::Err| ConfigError::Invalid { origin, problem: error.to_string() })
}

/// An empty secret protects nothing and is never meant.
fn parse_filled<T: FromStr<Err: Display>>(origin: Origin, text: &str) -> Result<T, ConfigError> {
    if text.is_empty() {
        return Err(ConfigError::Invalid { origin, problem: "is empty".to_owned() });
    }
    parse(origin, text)
}
