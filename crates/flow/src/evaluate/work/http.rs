//! Orders for requests.

use super::text::{text, text_or_secret, texts};
use crate::evaluate::render::Renderer;
use serde_json::Value as Json;
use tidegate_core::model::{Auth, Content, Order, Request};

pub(super) fn http(parts: &Json, renderer: &Renderer) -> Result<Order, String> {
    let unreadable = |field: &str| format!("the order has no `{field}`");
    let number = |field: &str| parts[field].as_u64().ok_or_else(|| unreadable(field));
    Ok(Order::Http(Box::new(Request {
        method: parts["method"].as_str().ok_or_else(|| unreadable("method"))?.to_owned(),
        url: text(renderer, &parts["url"], "url")?,
        query: texts(renderer, &parts["query"], "query")?,
        headers: texts(renderer, &parts["headers"], "headers")?,
        auth: auth(&parts["auth"], renderer)?,
        content: content(parts, renderer)?,
        redirects: number("redirects")? as u32,
        max_size: number("max_size")? as usize,
        ok: serde_json::from_value(parts["ok"].clone()).map_err(|_| unreadable("ok"))?,
    })))
}

fn auth(parts: &Json, renderer: &Renderer) -> Result<Option<Auth>, String> {
    if let Some(bearer) = parts.get("bearer") {
        return text_or_secret(renderer, bearer, "auth.bearer").map(Auth::Bearer).map(Some);
    }
    let Some(basic) = parts.get("basic") else { return Ok(None) };
    Ok(Some(Auth::Basic {
        user: text_or_secret(renderer, &basic["user"], "auth.basic.user")?,
        password: text_or_secret(renderer, &basic["password"], "auth.basic.password")?,
    }))
}

fn content(parts: &Json, renderer: &Renderer) -> Result<Option<Content>, String> {
    Ok(if let Some(json) = parts.get("json") {
        Some(Content::Json(renderer.json(json, "json")?.to_string()))
    } else if let Some(form) = parts.get("form") {
        Some(Content::Form(texts(renderer, form, "form")?))
    } else if let Some(body) = parts.get("body") {
        Some(Content::Body(text(renderer, body, "body")?))
    } else {
        None
    })
}
