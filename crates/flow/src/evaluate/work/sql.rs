//! Orders for statements. Only parameters are rendered: texts and connections are what stands in the file.

use crate::evaluate::render::Renderer;
use crate::yaml::json_kind;
use serde_json::Value as Json;
use tidegate_core::model::{Order, Statement, Statements};

pub(super) fn sql(parts: &Json, renderer: &Renderer) -> Result<Order, String> {
    let unreadable = |field: &str| format!("the order has no `{field}`");
    let statements = parts["statements"].as_array().ok_or_else(|| unreadable("statements"))?;
    let is_transaction = parts["transaction"].as_bool().ok_or_else(|| unreadable("transaction"))?;
    let statement = |(index, statement): (usize, &Json)| {
        let path = match is_transaction {
            true => format!("transaction[{index}].params"),
            false => "params".to_owned(),
        };
        let params = renderer.json(&statement["params"], &path)?;
        if !params.is_array() {
            return Err(format!("`{path}` must be a list, not {}", json_kind(&params)));
        }
        let query = statement["query"].as_str().ok_or_else(|| unreadable("query"))?.to_owned();
        Ok(Statement { query, params: params.to_string() })
    };
    Ok(Order::Sql(Box::new(Statements {
        connection: serde_json::from_value(parts["connection"].clone())
            .map_err(|_| unreadable("connection"))?,
        statements: statements.iter().enumerate().map(statement).collect::<Result<_, String>>()?,
        transaction: is_transaction,
    })))
}
