//! No bus at all.

use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::address::Address;
use crate::envelope::Outgoing;
use crate::error::BusError;
use crate::port::{Bus, Durability, Page, ReadRequest, Reader, Receipt};

/// The bus of those who switched it off: nothing is sent, nothing is read, and both say so.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBus;

fn off<T: Send + 'static>() -> BoxFuture<'static, Result<T, BusError>> {
    Box::pin(std::future::ready(Err(BusError::Off)))
}

impl Bus for NoBus {
    fn publish(
        &self,
        _message: Outgoing,
        _durability: Durability,
    ) -> BoxFuture<'_, Result<Receipt, BusError>> {
        off()
    }

    fn read(&self, _mailbox: Address, _request: ReadRequest) -> BoxFuture<'_, Result<Page, BusError>> {
        off()
    }

    fn acknowledge(
        &self,
        _mailbox: Address,
        _reader: String,
        _through: u64,
    ) -> BoxFuture<'_, Result<Reader, BusError>> {
        off()
    }

    fn readers(&self, _mailbox: Address) -> BoxFuture<'_, Result<Vec<Reader>, BusError>> {
        off()
    }

    fn changed(&self, _mailbox: Address, _after: u64, timeout: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(timeout))
    }
}
