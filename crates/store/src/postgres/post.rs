//! Leaves a letter from inside somebody else's transaction.

use super::sql;
use std::collections::BTreeMap;
use std::time::SystemTime;
use tidegate_core::ids::{Name, RunId};
use tokio_postgres::GenericClient;
use tokio_postgres::types::{ToSql, Type};

/// Something to be submitted if the transaction around it commits.
#[derive(Clone, Copy, Debug)]
pub struct Post<'a> {
    /// An action or a flow.
    pub name: &'a Name,
    /// JSON.
    pub input: &'a str,
    pub tags: &'a [(Name, Name)],
    pub priority: i8,
    pub key: Option<&'a Name>,
    /// Not before this time.
    pub due: Option<SystemTime>,
}

impl Post<'_> {
    /// Gives the id that it will have.
    pub async fn leave(&self, client: &impl GenericClient) -> Result<RunId, tokio_postgres::Error> {
        let tags: BTreeMap<&str, &str> =
            self.tags.iter().map(|(tag, value)| (tag.as_str(), value.as_str())).collect();
        // A map of texts always serialises.
        let tags = serde_json::to_string(&tags).unwrap_or_default();
        let (name, key, priority) =
            (self.name.as_str(), self.key.map(Name::as_str), i32::from(self.priority));
        let values: [(&(dyn ToSql + Sync), Type); 6] = [
            (&name, Type::TEXT),
            (&self.input, Type::TEXT),
            (&tags, Type::TEXT),
            (&priority, Type::INT4),
            (&key, Type::TEXT),
            (&self.due, Type::TIMESTAMPTZ),
        ];
        let rows = client.query_typed(sql!("post"), &values).await?;
        let id: String = rows.first().map_or(Ok(String::new()), |row| row.try_get(0))?;
        Ok(RunId(u128::from_str_radix(&id.replace('-', ""), 16).unwrap_or_default()))
    }
}
