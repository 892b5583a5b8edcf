//! Who one is at a registry, as `docker login` has noted it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

/// A user and what proves it.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// What is noted for a registry in Docker's configuration: in the file, or by the program that the
/// file names. None if nothing is.
pub fn noted(registry: &str) -> Option<Credentials> {
    let folder = env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let folder = folder.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".docker")))?;
    let text = fs::read_to_string(folder.join("config.json")).ok()?;
    let config: Value = serde_json::from_str(&text).ok()?;
    let program =
        config["credHelpers"][registry].as_str().or_else(|| config["credsStore"].as_str());
    in_file(&config, registry).or_else(|| asked(program?, registry))
}

/// The names under which a registry may be noted.
fn names(registry: &str) -> Vec<String> {
    match registry {
        "docker.io" => vec!["https://index.docker.io/v1/".to_owned(), registry.to_owned()],
        _ => vec![registry.to_owned(), format!("https://{registry}")],
    }
}

fn in_file(config: &Value, registry: &str) -> Option<Credentials> {
    let entries = names(registry).into_iter().map(|name| config["auths"][&name].clone());
    let text = entries.into_iter().find_map(|entry| entry["auth"].as_str().map(str::to_owned))?;
    let decoded = String::from_utf8(BASE64.decode(text).ok()?).ok()?;
    let (user, password) = decoded.split_once(':')?;
    Some(Credentials { user: user.to_owned(), password: password.to_owned() })
}

/// What a helper of Docker's says.
fn asked(program: &str, registry: &str) -> Option<Credentials> {
    let program = format!("docker-credential-{program}");
    // It is the name of a program, not of a path.
    if Path::new(&program).components().count() != 1 {
        return None;
    }
    names(registry).into_iter().find_map(|name| {
        let mut child = Command::new(&program)
            .arg("get")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        child.stdin.take()?.write_all(name.as_bytes()).ok()?;
        let output = child.wait_with_output().ok()?;
        let said: Value = serde_json::from_slice(&output.stdout).ok()?;
        let text = |key: &str| said[key].as_str().map(str::to_owned);
        Some(Credentials { user: text("Username")?, password: text("Secret")? })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_docker_has_noted_is_read() {
        let config = json!({"auths": {
            "r.example.com": {"auth": BASE64.encode("ann:se:cret")},
            "https://index.docker.io/v1/": {"auth": BASE64.encode("bob:x")},
        }});
        let found = in_file(&config, "r.example.com").expect("noted");
        assert_eq!((found.user.as_str(), found.password.as_str()), ("ann", "se:cret"));
        assert_eq!(in_file(&config, "docker.io").expect("noted").user, "bob");
        assert_eq!(in_file(&config, "other"), None);
        assert!(!format!("{found:?}").contains("se:cret"));
    }
}
