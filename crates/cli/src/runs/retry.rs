//! `tidegate runs retry`: what has ended is done again, here, as `tidegate run` would. `tidegate runs resume`: what has not is
//! finished.

use super::{find, identity, open, row_of};
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

pub async fn resume(options: &args::RunsResume, quiet: bool) -> Result<Exit, Failure> {
    let (mut reader, path) = open(&options.here.store)?;
    let node = find(&mut reader, Some(&options.id), path)?;
    let row = row_of(&mut reader, node, path)?;
    drop(reader);
    let (id, _) = identity(&row).ok_or_else(|| run::no_definition(path))?;
    if row.life.state.is_end() {
        let state = run::state_of(row.life.state);
        let failure = Failure::new("ended", format!("{id} has ended: {state}")).exit(Exit::Refused);
        return Err(failure.help(format!("run it again with `tidegate runs retry {id}`")));
    }
    run::resume(id, options.file.as_deref(), &options.here, quiet).await
}
