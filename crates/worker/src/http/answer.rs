//! What a server answered, as a flow sees it: `{status, headers, body}`.

use super::{Patience, Trouble};
use crate::clock;
use crate::secrets::Secrets;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderName, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde_json::{Map, Value as Json, json};
use tidegate_core::model::Cause;
use tidegate_core::protocol::{Failure, Outcome, Payload};
use tidegate_core::time::{Moment, Span};

/// Of what the server says about its failure, in the error.
const LONGEST_COMPLAINT: usize = 200;

pub(super) struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// Reads the whole answer, or as much as is needed to see that it is too large.
pub(super) async fn read(
    response: Response<Incoming>,
    most: usize,
    patience: Patience,
) -> Result<Answer, Trouble> {
    let (head, mut incoming) = response.into_parts();
    if incoming.size_hint().lower() > most as u64 {
        return Err(Trouble::TooLarge { most });
    }
    let mut body = Vec::new();
    while let Some(frame) = patience.wait(incoming.frame()).await? {
        let frame = frame.map_err(|error| Trouble::unreachable("the answer breaks off", &error))?;
        let Ok(data) = frame.into_data() else { continue };
        if body.len() + data.len() > most {
            return Err(Trouble::TooLarge { most });
        }
        body.extend_from_slice(&data);
    }
    Ok(Answer { status: head.status, headers: head.headers, body })
}

impl Answer {
    pub(super) fn outcome(&self, asked: &str, ok: &[Cause], secrets: &Secrets) -> Outcome {
        let output = Payload::new(self.output(secrets).to_string());
        let cause = Cause::status(self.status.as_u16());
        if self.status.is_success() || ok.iter().any(|good| good.means(&cause)) {
            return Outcome::Succeeded(output);
        }
        let mut error = format!("{asked}: status {}", self.status);
        if let Some(complaint) = self.complaint(secrets) {
            error += &format!(": {complaint}");
        }
        Outcome::Failed(Failure {
            error: secrets.conceal(&error),
            output: Some(output),
            cause: Some(cause),
            retry_after: retry_after(&self.headers, clock::wall()),
        })
    }

    fn output(&self, secrets: &Secrets) -> Json {
        let mut output = Map::new();
        output.insert("status".into(), json!(self.status.as_u16()));
        output.insert("headers".into(), self.headers(secrets));
        let text = std::str::from_utf8(&self.body).ok();
        let body = match text {
            Some(text) => match is_json(&self.headers).then(|| serde_json::from_str(text).ok()).flatten() {
                Some(value) => secrets.conceal_json(value),
                None => Json::String(secrets.conceal(text)),
            },
            None => {
                output.insert("body_base64".into(), json!(true));
                Json::String(BASE64_STANDARD.encode(secrets.conceal_bytes(&self.body)))
            }
        };
        output.insert("body".into(), body);
        Json::Object(output)
    }

    /// Names in lower case; several of one name in one text, as the protocol allows it.
    fn headers(&self, secrets: &Secrets) -> Json {
        let all = |name: &HeaderName| {
            let values =
                self.headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
            secrets.conceal(&values.collect::<Vec<_>>().join(", "))
        };
        self.headers.keys().map(|name| (name.as_str().to_owned(), Json::String(all(name)))).collect()
    }

    /// The first line of what the server says, unless it is a page for people.
    fn complaint(&self, secrets: &Secrets) -> Option<String> {
        if essence(&self.headers).is_some_and(|kind| kind == "text/html") {
            return None;
        }
        let text = std::str::from_utf8(&self.body).ok()?;
        let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
        let clean = |c: char| if c.is_control() { ' ' } else { c };
        // In this order: what is left of a secret that was cut could not be found.
        Some(secrets.conceal(line).chars().map(clean).take(LONGEST_COMPLAINT).collect())
    }
}

/// `text/html; charset=utf-8` as `text/html`.
fn essence(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(|kind| kind.trim().to_ascii_lowercase())
}

fn is_json(headers: &HeaderMap) -> bool {
    essence(headers)
        .is_some_and(|kind| kind == "application/json" || kind == "text/json" || kind.ends_with("+json"))
}

/// How long the server asks to be left alone: seconds, or a time, which is read by the server's own clock if it says
/// what that shows.
fn retry_after(headers: &HeaderMap, now: Moment) -> Option<Span> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if value.bytes().all(|byte| byte.is_ascii_digit()) {
        return value.parse().ok().map(|seconds| Span::seconds(1).times(seconds));
    }
    let now = headers.get(DATE).and_then(|date| time(date.to_str().ok()?)).unwrap_or(now);
    time(value).map(|until| until.since(now))
}

fn time(text: &str) -> Option<Moment> {
    let time = jiff::fmt::rfc2822::parse(text.trim()).ok()?;
    Some(Moment(time.timestamp().as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn headers(all: &[(HeaderName, &'static str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_server_asks_for_time_in_seconds_or_until_a_date() {
        let now = Moment(jiff::Timestamp::from_second(784_111_777).unwrap().as_microsecond());
        let asked = |value, date: Option<&'static str>| {
            let date = date.map(|date| (DATE, date));
            retry_after(&headers(&[&[(RETRY_AFTER, value)], date.as_slice()].concat()), now)
        };
        assert_eq!(asked("120", None), Some(Span::seconds(120)));
        assert_eq!(asked("99999999999999999999", None), None);
        assert_eq!(asked("9999999999999999999", None), Some(Span(u64::MAX)));
        let later = "Sun, 06 Nov 1994 08:50:37 GMT";
        assert_eq!(asked(later, None), Some(Span::seconds(60)));
        assert_eq!(asked(later, Some("Sun, 06 Nov 1994 08:50:30 GMT")), Some(Span::seconds(7)), "its clock");
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:30 GMT", None), Some(Span::ZERO), "it has passed");
        assert_eq!(asked("soon", None), None);
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn json_is_what_is_called_so() {
        for (kind, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/problem+json", true),
            ("text/plain", false),
            ("application/jsonp", false),
        ] {
            assert_eq!(is_json(&headers(&[(CONTENT_TYPE, kind)])), expected, "{kind}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
