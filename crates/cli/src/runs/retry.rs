//! `tidegate runs retry`: what has ended is done again, here, as `tidegate run` would.

use super::{find, open, row_of};
use crate::args;
use crate::failure::{Exit, Failure};
use crate::run::{self, Past};

pub async fn retry(options: &args::RunsRetry, quiet: bool) -> Result<Exit, Failure> {
    let (mut reader, path) = open(&options.here.store)?;
    let node = find(&mut reader, Some(&options.id), path)?;
    let row = row_of(&mut reader, node, path)?;
    let past = Past { row, from_start: options.from_start };
    run::retry(past, options.file.as_deref(), &options.here, quiet).await
}
