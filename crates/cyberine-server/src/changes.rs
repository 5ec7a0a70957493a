//! Word that a list has changed, from the set that has it to everyone who follows it.

use tokio::sync::watch;

/// The sending half: a set keeps one for each list that may change while it is served, and calls
/// [`changed`](Self::changed) when it has. Clones speak of the same list.
///
/// ```
/// use cyberine_server::ListSignal;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let signal = ListSignal::new();
/// let mut changes = signal.changes();
/// signal.changed();
/// signal.changed();
/// // Both count as one.
/// changes.changed().await;
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ListSignal(watch::Sender<()>);

/// The following half. It sees every change from the moment it was made on; several count as one
/// until it is looked at.
#[derive(Debug, Clone)]
pub struct ListChanges(watch::Receiver<()>);

impl ListSignal {
    /// A signal nobody follows yet.
    #[must_use]
    pub fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    /// Says that the list has changed.
    pub fn changed(&self) {
        self.0.send_replace(());
    }

    /// Follows the list from now on.
    #[must_use]
    pub fn changes(&self) -> ListChanges {
        ListChanges(self.0.subscribe())
    }
}

impl Default for ListSignal {
    fn default() -> Self {
        Self::new()
    }
}

impl ListChanges {
    /// Resolves when the list has changed since the last time this resolved. Where the signal is
    /// gone it never does.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, no change is lost.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_change_is_told_once_and_only_after_it() {
        let signal = ListSignal::new();
        signal.changed();
        let mut changes = signal.changes();
        assert_eq!(changes.changed().now_or_never(), None, "it was before");
        signal.clone().changed();
        signal.changed();
        assert_eq!(changes.changed().now_or_never(), Some(()));
        assert_eq!(changes.changed().now_or_never(), None);
        drop(signal);
        assert_eq!(changes.changed().now_or_never(), None, "silence is no change");
    }
}
