//! Connections to servers: shared, bounded, and only to addresses that a flow may ask.
//!
//! HTTP/1.1 only, so that giving a request up closes its connection and the server notices. Proxies are not asked.

use crate::tls;
use hyper::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_service::Service;

pub(super) type Client =
    hyper_util::client::legacy::Client<Connector, http_body_util::Full<hyper::body::Bytes>>;

type Transport = HttpsConnector<HttpConnector<Resolver>>;
type Connected = <Transport as Service<Uri>>::Response;
type BoxError = Box<dyn std::error::Error + Send + Sync>;
type BoxFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// A connection that nobody uses is kept for so long, and so many of them a server.
const IDLE: Duration = Duration::from_secs(30);
const IDLE_EACH: usize = 8;
/// A server that is gone without a word is noticed after a few of these.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Where the metadata of virtual machines, and so their credentials, are found besides link-local addresses.
const METADATA: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254)),
];

/// Which addresses may be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reach {
    pub link_local: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is link-local or a metadata service, which this worker does not ask unless it is allowed to")]
pub(super) struct Forbidden(pub IpAddr);

impl Reach {
    pub(super) fn check(self, address: IpAddr) -> Result<(), Forbidden> {
        match !self.link_local && is_link_local(address) {
            true => Err(Forbidden(address)),
            false => Ok(()),
        }
    }
}

fn is_link_local(address: IpAddr) -> bool {
    let address = address.to_canonical();
    METADATA.contains(&address)
        || match address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => {
                // An address of the old kind, as translators write it.
                let translated = match address.segments() {
                    [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                        Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
                    }
                    _ => None,
                };
                address.is_unicast_link_local()
                    || translated.is_some_and(|address| is_link_local(address.into()))
            }
        }
}

/// Reads the certificates of this machine, so it blocks for a moment. The error is a sentence.
pub(super) fn client(reach: Reach, patience: Duration) -> Result<Client, String> {
    let tls = tls::config(None)?;
    let mut plain = HttpConnector::new_with_resolver(Resolver { reach });
    plain.enforce_http(false);
    plain.set_nodelay(true);
    plain.set_keepalive(Some(KEEPALIVE));
    let transport = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(plain);
    Ok(hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_EACH)
        .build(Connector { transport, patience }))
}

/// A connection that does not come about in time is an error.
#[derive(Clone)]
pub(super) struct Connector {
    transport: Transport,
    patience: Duration,
}

impl Service<Uri> for Connector {
    type Response = Connected;
    type Error = BoxError;
    type Future = BoxFuture<Connected, BoxError>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.transport.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connecting, patience) = (self.transport.call(uri), self.patience);
        Box::pin(async move {
            let late = |_| io::Error::from(io::ErrorKind::TimedOut);
            tokio::time::timeout(patience, connecting).await.map_err(late)?
        })
    }
}

/// Looks names up, and gives only addresses that may be asked: whatever a name stood for a moment ago, these are the
/// ones that are connected to.
#[derive(Clone)]
pub(super) struct Resolver {
    reach: Reach,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = BoxFuture<Self::Response, BoxError>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let reach = self.reach;
        Box::pin(async move {
            let (mut good, mut bad) = (Vec::new(), None);
            for address in tokio::net::lookup_host((name.as_str(), 0)).await? {
                match reach.check(address.ip()) {
                    Ok(()) => good.push(address),
                    Err(forbidden) => bad = Some(forbidden),
                }
            }
            match (good.is_empty(), bad) {
                (true, Some(forbidden)) => Err(forbidden.into()),
                (true, None) => Err(io::Error::from(io::ErrorKind::HostUnreachable).into()),
                (false, _) => Ok(good.into_iter()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_machines_own_network_are_known_in_every_form() {
        let forbidden = [
            "169.254.169.254",
            "169.254.0.1",
            "100.100.100.200",
            "fe80::1",
            "fd00:ec2::254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
        ];
        let allowed =
            ["127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "8.8.8.8", "fd00::1", "64:ff9b::808:808"];
        let check = |address: &str, link_local| Reach { link_local }.check(address.parse().unwrap());
        for address in forbidden {
            assert!(check(address, false).is_err(), "{address}");
            assert!(check(address, true).is_ok(), "{address}");
        }
        for address in allowed {
            assert!(check(address, false).is_ok(), "{address}");
        }
    }
}
