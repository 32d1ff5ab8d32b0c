//! A server that only this machine reaches needs no token. But pages of other sites are shown on this machine, too: a browser
//! that was led here by a foreign name, or by a foreign page, says so.

use crate::problem::Problem;
use axum::http::{HeaderMap, StatusCode, header};

pub fn check(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if !text(header::HOST).is_some_and(is_local) {
        let detail = "without tokens, a server is asked as localhost, 127.0.0.1 or [::1]";
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "host", detail));
    }
    match text(header::ORIGIN) {
        None => Ok(()),
        Some(origin) if origin.strip_prefix("http://") == text(header::HOST) => Ok(()),
        Some(_) => {
            let detail = "without tokens, a server does not answer pages of other sites";
            Err(Problem::new(StatusCode::FORBIDDEN, "origin", detail))
        }
    }
}

/// With or without a port.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(address, _)| address),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    matches!(name, "localhost" | "127.0.0.1" | "::1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn headers(host: &str, origin: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        headers
    }

    #[test]
    fn foreign_names_and_pages_are_turned_away() {
        for host in ["localhost", "localhost:7070", "127.0.0.1:1", "[::1]:7070"] {
            assert_eq!(check(&headers(host, None)), Ok(()), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:7070", "127.0.0.1.evil.example", "[::2]:1", ""] {
            assert_eq!(check(&headers(host, None)).unwrap_err().code(), "host", "{host}");
        }
        assert_eq!(check(&headers("localhost:7070", Some("http://localhost:7070"))), Ok(()));
        for origin in ["http://evil.example", "http://localhost:8080", "null"] {
            let turned_away = check(&headers("localhost:7070", Some(origin))).unwrap_err();
            assert_eq!(turned_away.code(), "origin", "{origin}");
        }
        assert_eq!(check(&HeaderMap::new()).unwrap_err().code(), "host");
    }
}
