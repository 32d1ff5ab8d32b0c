//! Limits by the names people use: `pool:database`, `action:etl.load/acme`, `window:r/fetch`.

use super::speech::Names;
use super::words::Words;
use tidegate_core::admission::LimitKey;
use tidegate_core::explain::{Blocker, Why};
use tidegate_core::ids::Name;
use tidegate_core::model::{QuotaPolicy, QuotaWindow, RatePolicy, Requirement, WhenExhausted};
use tidegate_core::protocol::LimitValue;
use tidegate_core::time::Moment;
use tidegate_flow::parse_duration;

pub fn key(text: &str, names: &Names) -> Result<LimitKey, String> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    let keyed = || match rest.split_once('/') {
        Some((name, key)) => (Name::new(name), Some(Name::new(key))),
        None => (Name::new(rest), None),
    };
    Ok(match kind {
        "runs" => LimitKey::Runs,
        "tag" => {
            let (tag, value) = rest.split_once('=').ok_or("a tag has a value")?;
            LimitKey::Tag { tag: tag.into(), value: value.into() }
        }
        "flow" => {
            let (flow, key) = keyed();
            LimitKey::Flow { flow, key }
        }
        "run" => LimitKey::Steps(names.task(rest)?.node),
        "window" => LimitKey::Window(names.task(rest)?.node),
        "action" => match keyed() {
            (action, Some(key)) => LimitKey::ActionKey { action, key },
            (action, None) => LimitKey::Action(action),
        },
        "total" => LimitKey::Total(rest.into()),
        "pool" => LimitKey::Pool(rest.into()),
        "quota" => {
            let (of, key) = keyed();
            LimitKey::Quota { of, key }
        }
        "rate" => {
            let (of, key) = keyed();
            LimitKey::Rate { of, key }
        }
        "workers" => LimitKey::Slot(Requirement::process()),
        _ => return Err(format!("`{text}` is no limit")),
    })
}

/// `3`; for a rate `5/1s burst=2`; for a quota `5/1d`.
pub fn value(key: &LimitKey, words: &mut Words) -> Result<LimitValue, String> {
    let text = words.need("a value")?;
    let burst =
        words.take("burst").map_or(Ok(1), |burst| burst.parse()).map_err(|_| "a burst is a number")?;
    let Some((limit, per)) = text.split_once('/') else {
        return text.parse().map(LimitValue::Units).map_err(|_| format!("`{text}` is no value"));
    };
    let limit = limit.parse().map_err(|_| format!("`{text}` is no value"))?;
    let when_busy = WhenExhausted::Wait;
    if let LimitKey::Quota { .. } = key {
        let window = match per {
            "1m" => QuotaWindow::Minute,
            "1h" => QuotaWindow::Hour,
            "1d" => QuotaWindow::Day,
            _ => return Err(format!("`{per}` is no window")),
        };
        return Ok(LimitValue::Quota(QuotaPolicy { limit, window, zone: "UTC".into(), when_busy }));
    }
    let per = parse_duration(per).ok_or_else(|| format!("`{per}` is no duration"))?;
    Ok(LimitValue::Rate(RatePolicy { limit, per, burst, when_busy }))
}

/// A limit by name, with the names of runs and steps instead of their numbers.
pub fn name(key: &LimitKey, names: &Names) -> String {
    match key {
        LimitKey::Steps(run) => format!("run:{}", names.node(*run)),
        LimitKey::Window(step) => format!("window:{}", names.node(*step)),
        other => other.to_string(),
    }
}

pub fn said_value(value: &LimitValue) -> String {
    match value {
        LimitValue::Units(units) => units.to_string(),
        LimitValue::Rate(rate) => format!("{}/{} burst {}", rate.limit, rate.per, rate.burst),
        LimitValue::Quota(quota) => format!("{}/{:?}", quota.limit, quota.window).to_lowercase(),
    }
}

/// What refuses a task, in a few words.
pub fn blocker(blocker: &Blocker, names: &Names, now: Moment) -> String {
    let limit = name(&blocker.limit, names);
    match &blocker.why {
        Why::Full { set_aside, .. } if *set_aside > 0 => format!("{limit} ({set_aside} set aside)"),
        Why::Full { .. } | Why::SlotsTaken { .. } => limit,
        Why::Paused => format!("{limit} (paused)"),
        Why::TooSmall { capacity: 0 } => format!("{limit} (closed)"),
        Why::TooSmall { .. } => format!("{limit} (too small)"),
        Why::Pace { next } => format!("{limit} (more in {})", next.since(now)),
        Why::NoWorker => format!("{limit} (no worker fits)"),
    }
}
