//! How a machine finds names, from its `resolv.conf`.

#[cfg(test)]
mod tests;

use std::net::IpAddr;

/// What matters of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResolvConf {
    pub(crate) servers: Vec<String>,
    pub(crate) searches: Vec<String>,
    pub(crate) options: Vec<String>,
}

/// How this machine finds names.
pub(crate) fn host_resolv_conf() -> ResolvConf {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let own = resolv_conf(&read("/etc/resolv.conf").unwrap_or_default());
    let is_here = |server: &String| server.parse::<IpAddr>().is_ok_and(|it| it.is_loopback());
    if !own.servers.iter().all(is_here) {
        return own;
    }
    // A server on the machine itself is out of reach of pods; whom it asks is in another file.
    let behind = read("/run/systemd/resolve/resolv.conf").map(|text| resolv_conf(&text));
    behind.unwrap_or(own)
}

/// Reads it. Of lines that are there more than once, servers add up and others replace each other.
fn resolv_conf(text: &str) -> ResolvConf {
    let mut config = ResolvConf::default();
    for line in text.lines() {
        let line = line.split(['#', ';']).next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let key = words.next();
        let values = || words.clone().map(|word| word.trim_end_matches('.').to_owned()).collect();
        match key {
            Some("nameserver") => config.servers.extend(words.next().map(str::to_owned)),
            Some("search") => config.searches = values(),
            Some("options") => config.options = words.map(str::to_owned).collect(),
            _ => {}
        }
    }
    config
}
