//! On what and with what was measured.

use std::fs;
use std::process::Command;

const LOCK: &str = include_str!("../../../Cargo.lock");

/// The peers, and what they and we stand on.
const PACKAGES: [&str; 7] =
    ["tokio", "tokio-util", "kanal", "flume", "async-channel", "async-priority-channel", "parking_lot"];

/// The processor, its kernel and the compiler, in one line.
pub(crate) fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cores = info.lines().filter(|line| line.starts_with("processor")).count();
    let model = field(&info, "model name").unwrap_or("a processor that does not tell its name");
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // `6.1.0-13-amd64`: what comes after the version says who built it.
    let kernel = release.trim().split(['-', '+']).next().unwrap_or_default();
    let compiler = Command::new("rustc").arg("--version").output().ok();
    let compiler = compiler.and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    let compiler = compiler.split(" (").next().unwrap_or_default().trim();
    format!("{model}, {cores} cores, Linux {kernel}, {compiler}")
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let line = info.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim())
}

/// `tokio 1.48.0, ..`, as they were resolved.
pub(crate) fn versions() -> String {
    let known = PACKAGES.iter().filter_map(|name| Some(format!("{name} {}", version(LOCK, name)?)));
    known.collect::<Vec<_>>().join(", ")
}

fn version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let wanted = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != wanted);
    lines.nth(1)?.strip_prefix("version = \"")?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_that_of_the_very_package() {
        let lock = "[[package]]\nname = \"tokio-util\"\nversion = \"0.7\"\n\n[[package]]\nname = \"tokio\"\nversion = \"1.9\"\n";
        assert_eq!(version(lock, "tokio"), Some("1.9"));
        assert_eq!(version(lock, "tokio-util"), Some("0.7"));
        assert_eq!(version(lock, "kanal"), None);
    }

    #[test]
    fn every_package_that_is_named_is_locked() {
        assert_eq!(versions().split(", ").count(), PACKAGES.len());
    }

    #[test]
    fn a_field_is_what_stands_behind_the_colon() {
        assert_eq!(field("a\t: 1\nmodel name\t: Some CPU @ 2 GHz\n", "model name"), Some("Some CPU @ 2 GHz"));
    }
}
