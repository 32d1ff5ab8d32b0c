//! One request as it goes out: secrets looked up, everything in the form in which it is sent.

use super::Trouble;
use super::connect::Reach;
use crate::secrets::Secrets;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use hyper::{Method, StatusCode, Uri};
use std::collections::BTreeMap;
use tidegate_core::model::{Auth, Content, Request, Text};
use url::{Host, Url, form_urlencoded};

const AGENT: &str = concat!("tidegate/", env!("CARGO_PKG_VERSION"));
/// Of an address, in an error.
const LONGEST_SHOWN: usize = 200;

pub(super) struct Prepared {
    method: Method,
    url: Url,
    headers: HeaderMap,
    /// For nobody but the server that they were meant for.
    private: Vec<HeaderName>,
    body: Bytes,
    /// Some of what is sent along is a secret.
    body_is_private: bool,
}

/// The error is a sentence. Also of one that fails, `secrets` then knows what to hide.
pub(super) fn prepare(request: &Request, secrets: &mut Secrets, reach: Reach) -> Result<Prepared, Trouble> {
    let mut url =
        Url::parse(&request.url).map_err(|error| Trouble::Order(format!("the address: {error}")))?;
    if !request.query.is_empty() {
        let query = reveal_all(&request.query, secrets)?;
        url.query_pairs_mut().extend_pairs(query);
    }
    check(&url, reach)?;
    let mut headers = HeaderMap::from_iter([
        (USER_AGENT, HeaderValue::from_static(AGENT)),
        (ACCEPT, HeaderValue::from_static("*/*")),
    ]);
    let (content_type, body, body_is_private) = content(request.content.as_ref(), secrets)?;
    headers.extend(content_type.map(|kind| (CONTENT_TYPE, HeaderValue::from_static(kind))));
    let mut private = vec![AUTHORIZATION, COOKIE];
    for (name, text) in &request.headers {
        let name: HeaderName =
            name.parse().map_err(|_| Trouble::Order(format!("`{name}` is not the name of a header")))?;
        let value = header(&name, &reveal(text, secrets)?)?;
        if is_secret(text) {
            private.push(name.clone());
        }
        headers.insert(name, value);
    }
    if let Some(auth) = &request.auth {
        headers.insert(AUTHORIZATION, authorization(auth, secrets)?);
    }
    let method = request.method.parse().map_err(|_| Trouble::Order("there is no such method".to_owned()))?;
    Ok(Prepared { method, url, headers, private, body, body_is_private })
}

impl Prepared {
    pub(super) fn message(&self) -> Result<hyper::Request<Full<Bytes>>, Trouble> {
        let uri: Uri =
            self.url.as_str().parse().map_err(|error| Trouble::Order(format!("the address: {error}")))?;
        let mut message = hyper::Request::new(Full::new(self.body.clone()));
        *message.method_mut() = self.method.clone();
        *message.uri_mut() = uri;
        *message.headers_mut() = self.headers.clone();
        Ok(message)
    }

    /// The same to where the server sends us. What is private does not go to another server, or without encryption
    /// where there was some.
    pub(super) fn redirected(
        mut self,
        status: StatusCode,
        to: &str,
        reach: Reach,
    ) -> Result<Prepared, Trouble> {
        let url = self.url.join(to).map_err(|error| Trouble::Order(format!("its redirection: {error}")))?;
        check(&url, reach)?;
        let keeps_method = match status {
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method != Method::POST,
            StatusCode::SEE_OTHER => matches!(self.method, Method::GET | Method::HEAD),
            _ => true,
        };
        if !keeps_method {
            self.method = Method::GET;
            self.body = Bytes::new();
            self.body_is_private = false;
            self.headers.remove(CONTENT_TYPE);
        }
        if url.origin() != self.url.origin() {
            if self.body_is_private {
                return Err(Trouble::SecretsElsewhere);
            }
            for name in &self.private {
                self.headers.remove(name);
            }
        }
        self.url = url;
        Ok(self)
    }
}

/// What is asked, for an error: without what was added to the address, which may be secret, and without a user and a
/// password, which do not belong there.
pub(super) fn shown(request: &Request) -> String {
    let url = without_user(&request.url);
    let short: String = url.chars().take(LONGEST_SHOWN).collect();
    let dots = if short.len() < url.len() { "…" } else { "" };
    format!("{} {short}{dots}", request.method)
}

/// Works on addresses that cannot be read as one, too.
fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((user, _)) => format!("{scheme}://***{}", &rest[user.len()..]),
        None => url.to_owned(),
    }
}

fn check(url: &Url, reach: Reach) -> Result<(), Trouble> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Trouble::Order(format!("`{}` addresses cannot be asked", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Trouble::Order("user and password go under `auth`, not into the address".to_owned()));
    }
    let address = match url.host() {
        Some(Host::Ipv4(address)) => address.into(),
        Some(Host::Ipv6(address)) => address.into(),
        _ => return Ok(()),
    };
    Ok(reach.check(address)?)
}

fn is_secret(text: &Text) -> bool {
    matches!(text, Text::Secret { .. })
}

/// Secrets are hidden in the form, too, in which addresses and forms hold them.
fn reveal(text: &Text, secrets: &mut Secrets) -> Result<String, Trouble> {
    let value = secrets.reveal(text).map_err(Trouble::Order)?;
    if is_secret(text) {
        let encoded: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
        secrets.hide(&encoded.replace('+', "%20"));
        secrets.hide(&encoded);
    }
    Ok(value)
}

fn reveal_all(
    texts: &BTreeMap<String, Text>,
    secrets: &mut Secrets,
) -> Result<Vec<(String, String)>, Trouble> {
    texts.iter().map(|(name, text)| Ok((name.clone(), reveal(text, secrets)?))).collect()
}

/// Its type, unless a header says otherwise; its bytes; whether there is a secret among them.
fn content(
    content: Option<&Content>,
    secrets: &mut Secrets,
) -> Result<(Option<&'static str>, Bytes, bool), Trouble> {
    Ok(match content {
        None => (None, Bytes::new(), false),
        Some(Content::Json(text)) => (Some("application/json"), Bytes::from(text.clone()), false),
        Some(Content::Body(text)) => (Some("text/plain; charset=utf-8"), Bytes::from(text.clone()), false),
        Some(Content::Form(fields)) => {
            let mut form = form_urlencoded::Serializer::new(String::new());
            form.extend_pairs(reveal_all(fields, secrets)?);
            let kind = "application/x-www-form-urlencoded";
            (Some(kind), Bytes::from(form.finish()), fields.values().any(is_secret))
        }
    })
}

fn authorization(auth: &Auth, secrets: &mut Secrets) -> Result<HeaderValue, Trouble> {
    let value = match auth {
        Auth::Bearer(token) => format!("Bearer {}", reveal(token, secrets)?),
        Auth::Basic { user, password } => {
            let pair = format!("{}:{}", reveal(user, secrets)?, reveal(password, secrets)?);
            let pair = BASE64_STANDARD.encode(pair);
            if is_secret(user) || is_secret(password) {
                secrets.hide(&pair);
            }
            format!("Basic {pair}")
        }
    };
    header(&AUTHORIZATION, &value)
}

fn header(name: &HeaderName, value: &str) -> Result<HeaderValue, Trouble> {
    // Without a word about the value, which may be secret.
    let unfit = |_| {
        Trouble::Order(format!("the value of the header `{name}` has characters that headers cannot have"))
    };
    HeaderValue::from_bytes(value.as_bytes()).map_err(unfit)
}
