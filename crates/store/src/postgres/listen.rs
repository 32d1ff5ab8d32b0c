//! Hears of letters and leaders a little earlier than by looking now and then. Only a hint: where it cannot be had,
//! because a pool stands in between, nothing is missing.

use super::overlay::Overlay;
use futures_util::{StreamExt, future, stream};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Config, NoTls};

/// How often to look whether all is over, and to try again what failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Calls `wake` from a thread of its own until the overlay says that all is over.
pub fn start(config: Config, overlay: Arc<Overlay>, wake: Box<dyn Fn() + Send + Sync>) {
    let work = move || {
        let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            while !overlay.is_stopped() {
                // A connection that cannot be had or is cut is tried again.
                let _ = hear(&config, &overlay, &wake).await;
                tokio::time::sleep(PAUSE).await;
            }
        });
    };
    // Without a thread there are no hints, which are not promised.
    let _ = std::thread::Builder::new().name("listener".to_owned()).spawn(work);
}

async fn hear(
    config: &Config,
    overlay: &Overlay,
    wake: &(dyn Fn() + Send + Sync),
) -> Result<(), tokio_postgres::Error> {
    let (client, mut connection) = config.connect(NoTls).await?;
    let messages = stream::poll_fn(move |context| connection.poll_message(context));
    let mut notes = std::pin::pin!(messages.take_while(|message| future::ready(message.is_ok())));
    let mut listening = std::pin::pin!(client.batch_execute("listen tidegate"));
    // The answer to the first request comes only while messages are read.
    let mut is_listening = false;
    loop {
        tokio::select! {
            result = &mut listening, if !is_listening => {
                result?;
                is_listening = true;
                // Whatever was said before is said again by looking.
                wake();
            }
            note = timeout(PAUSE, notes.next()) => match note {
                Ok(Some(Ok(AsyncMessage::Notification(_)))) => wake(),
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(_) if overlay.is_stopped() => return Ok(()),
                Err(_) => {}
            }
        }
    }
}
