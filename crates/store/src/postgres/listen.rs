//! Hears of letters and leaders a little earlier than by looking now and then. Only a hint: where it cannot be had,
//! because a pool stands in between, nothing is missing.

use super::connect::Route;
use super::overlay::Overlay;
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::time::timeout;
use tokio_postgres::AsyncMessage;

/// How often to look whether all is over, and to try again what failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Calls `wake` from a thread of its own until the overlay says that all is over.
pub fn start(route: Route, overlay: Arc<Overlay>, wake: Box<dyn Fn() + Send + Sync>) {
    let work = move || {
        let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            while !overlay.is_stopped() {
                // A connection that cannot be had or is cut is tried again.
                let _ = hear(&route, &overlay, &wake).await;
                tokio::time::sleep(PAUSE).await;
            }
        });
    };
    // Without a thread there are no hints, which are not promised.
    let _ = std::thread::Builder::new().name("listener".to_owned()).spawn(work);
}

async fn hear(
    route: &Route,
    overlay: &Overlay,
    wake: &(dyn Fn() + Send + Sync),
) -> Result<(), tokio_postgres::Error> {
    let (client, mut messages) = route.connect().await?;
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
            message = timeout(PAUSE, messages.next()) => match message {
                Ok(Some(Ok(AsyncMessage::Notification(_)))) => wake(),
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(_)) | None) => return Ok(()),
                Err(_) if overlay.is_stopped() => return Ok(()),
                Err(_) => {}
            }
        }
    }
}
