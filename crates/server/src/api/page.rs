//! Lists come in pages.

use serde::Serialize;
use utoipa::ToSchema;

/// Of a page, unless told otherwise, and at most.
pub const USUAL: u32 = 50;
pub const MOST: u32 = 1_000;

/// A part of a list.
#[derive(Serialize, ToSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Ask for the next page with `cursor=`; nothing if this is the last.
    pub next: Option<String>,
}

/// How many were asked for.
pub fn size(wanted: Option<u32>) -> u32 {
    wanted.unwrap_or(USUAL).clamp(1, MOST)
}
