//! What a process finds in its environment: a short list of names that programs cannot do without, and what
//! its order says. Everything else the worker was started with, secrets above all, stays behind.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

const ALLOWED: [&str; 8] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "SHELL", "TERM"];
const ALLOWED_PREFIX: &str = "LC_";

fn is_allowed(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| ALLOWED.contains(&name) || name.starts_with(ALLOWED_PREFIX))
}

/// The whole environment of a process; its order's values win.
pub(super) fn compose(
    inherited: impl Iterator<Item = (OsString, OsString)>,
    order: &BTreeMap<String, String>,
) -> BTreeMap<OsString, OsString> {
    inherited
        .filter(|(name, _)| is_allowed(name))
        .chain(order.iter().map(|(name, value)| (name.into(), value.into())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_on_the_list_gets_through_and_the_order_wins() {
        let inherited =
            [("PATH", "/bin"), ("LC_ALL", "C"), ("AWS_SECRET", "x"), ("LD_PRELOAD", "x"), ("TZ", "UTC")]
                .map(|(name, value)| (name.into(), value.into()));
        let order = BTreeMap::from([("TZ".into(), "CET".into()), ("MINE".into(), "1".into())]);
        let composed = compose(inherited.into_iter(), &order);
        let expected = [("LC_ALL", "C"), ("MINE", "1"), ("PATH", "/bin"), ("TZ", "CET")]
            .map(|(name, value)| (name.into(), value.into()));
        assert_eq!(composed, BTreeMap::from(expected));
    }
}
