//! Fields whose value is one of a few words, and what each word means.

use tidegate_core::model::{Backoff, InputType, OnFailure, QuotaWindow, WhenBusy, WhenExhausted, WhenFull};

pub(crate) const INPUT_TYPES: [(&str, InputType); 7] = [
    ("string", InputType::String),
    ("integer", InputType::Integer),
    ("number", InputType::Number),
    ("boolean", InputType::Boolean),
    ("list", InputType::List),
    ("object", InputType::Object),
    ("any", InputType::Any),
];
pub(crate) const ON_FAILURE_WORDS: [(&str, OnFailure); 2] =
    [("stop", OnFailure::STOP), ("continue", OnFailure::Continue)];
pub(crate) const BACKOFFS: [(&str, Backoff); 3] =
    [("constant", Backoff::Constant), ("linear", Backoff::Linear), ("exponential", Backoff::Exponential)];
pub(crate) const WHEN_BUSY: [(&str, WhenBusy); 4] = [
    ("queue", WhenBusy::Queue),
    ("reject", WhenBusy::Reject),
    ("replace", WhenBusy::Replace),
    ("cancel_running", WhenBusy::CancelRunning),
];
pub(crate) const WHEN_EXHAUSTED: [(&str, WhenExhausted); 2] =
    [("wait", WhenExhausted::Wait), ("reject", WhenExhausted::Reject)];
pub(crate) const WHEN_FULL: [(&str, WhenFull); 2] =
    [("reject", WhenFull::Reject), ("drop_oldest", WhenFull::DropOldest)];
/// What stands behind the slash of a quota.
pub(crate) const QUOTA_WINDOWS: [(&str, QuotaWindow); 5] = [
    ("1m", QuotaWindow::Minute),
    ("1h", QuotaWindow::Hour),
    ("1d", QuotaWindow::Day),
    ("1w", QuotaWindow::Week),
    ("1mo", QuotaWindow::Month),
];
pub(crate) const METHODS: [(&str, &str); 7] = [
    ("GET", "GET"),
    ("POST", "POST"),
    ("PUT", "PUT"),
    ("PATCH", "PATCH"),
    ("DELETE", "DELETE"),
    ("HEAD", "HEAD"),
    ("OPTIONS", "OPTIONS"),
];
