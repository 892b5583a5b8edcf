//! Which of the pods behind a place a client is led to: one after the other, or, where a Service
//! wants it so, to the same one each time.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::time::Instant;

/// When so many clients are remembered, half of them are forgotten: those who came least lately.
const CLIENTS_MAX: usize = 1024;

/// Whose turn it is at a place, and who was led where.
#[derive(Debug, Default)]
pub(super) struct Turns {
    next: usize,
    clients: HashMap<IpAddr, Visit>,
}

#[derive(Debug)]
struct Visit {
    to: SocketAddr,
    /// When the client came last.
    at: Instant,
}

impl Turns {
    /// The number of the pod that a client is led to. With `affinity`, that is the one it was led
    /// to before, as long as it is there and the client comes again within that time.
    pub(super) fn take(
        &mut self,
        client: IpAddr,
        backends: &[SocketAddr],
        affinity: Option<Duration>,
        now: Instant,
    ) -> usize {
        let in_turn = self.next % backends.len().max(1);
        let Some(affinity) = affinity else {
            self.next = self.next.wrapping_add(1);
            return in_turn;
        };
        let is_known = |visit: &Visit| now.saturating_duration_since(visit.at) < affinity;
        let known = self.clients.get(&client).filter(|visit| is_known(visit));
        let known = known.and_then(|visit| backends.iter().position(|it| *it == visit.to));
        let taken = known.unwrap_or_else(|| {
            self.next = self.next.wrapping_add(1);
            in_turn
        });
        if self.clients.len() >= CLIENTS_MAX {
            let mut visits: Vec<Instant> = self.clients.values().map(|visit| visit.at).collect();
            let (_, &mut middle, _) = visits.select_nth_unstable(CLIENTS_MAX / 2);
            self.clients.retain(|_, visit| visit.at > middle);
        }
        if let Some(to) = backends.get(taken) {
            self.clients.insert(client, Visit { to: *to, at: now });
        }
        taken
    }
}
