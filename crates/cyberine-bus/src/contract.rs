//! The contract of the port, as a suite that any implementation can run.
//!
//! Call [`every_check`] with a factory; each check gets a fresh, empty bus.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use cyberine_types::{InstanceId, ManualClock};

use crate::address::{Address, AddressKind};
use crate::envelope::{Channel, From, FromKind, Outgoing, Sender};
use crate::port::{Bus, Durability, Page, ReadRequest, Receipt};

mod acknowledging;
mod publishing;
mod reading;

/// A fresh bus to be checked.
pub struct Subject<B> {
    /// The bus.
    pub bus: B,
    /// Another handle on the same mailboxes, as a second process would have one.
    pub other: B,
    /// The clock both of them tell the time by.
    pub clock: Arc<ManualClock>,
}

type Check<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Runs every check, one after the other.
///
/// # Panics
/// Where the implementation breaks the contract.
pub async fn every_check<B: Bus>(make: impl Fn() -> Subject<B>) {
    for check in checks::<B>() {
        check(&make()).await;
    }
}

fn checks<B: Bus>() -> Vec<for<'a> fn(&'a Subject<B>) -> Check<'a>> {
    vec![
        |subject| Box::pin(publishing::messages_are_numbered_from_one_without_holes(subject)),
        |subject| Box::pin(publishing::a_message_is_read_as_it_was_sent(subject)),
        |subject| Box::pin(publishing::any_text_comes_back_byte_for_byte(subject)),
        |subject| Box::pin(publishing::what_is_too_long_is_refused_and_leaves_nothing(subject)),
        |subject| Box::pin(publishing::an_attempt_repeated_is_published_once(subject)),
        |subject| Box::pin(publishing::an_attempt_is_looked_for_beyond_what_was_there_before(subject)),
        |subject| Box::pin(publishing::many_who_publish_at_once_lose_nothing(subject)),
        |subject| Box::pin(publishing::each_id_has_a_mailbox_of_its_own(subject)),
        |subject| Box::pin(publishing::a_clock_that_goes_back_moves_no_message(subject)),
        |subject| Box::pin(reading::a_mailbox_nobody_wrote_to_is_empty(subject)),
        |subject| Box::pin(reading::reading_takes_nothing_away(subject)),
        |subject| Box::pin(reading::a_cursor_gives_each_message_once(subject)),
        |subject| Box::pin(reading::every_cursor_finds_its_place_among_long_messages(subject)),
        |subject| Box::pin(reading::a_cursor_beyond_the_end_goes_on_at_the_end(subject)),
        |subject| Box::pin(reading::the_newest_come_in_order(subject)),
        |subject| Box::pin(reading::since_means_later(subject)),
        |subject| Box::pin(reading::since_holds_where_the_clock_was_followed_back(subject)),
        |subject| Box::pin(reading::a_page_has_room_for_so_many_bytes(subject)),
        |subject| Box::pin(reading::a_change_ends_the_wait_for_it(subject)),
        |subject| Box::pin(reading::a_wait_without_a_change_ends_in_time(subject)),
        |subject| Box::pin(acknowledging::a_mark_moves_forward_only(subject)),
        |subject| Box::pin(acknowledging::each_reader_has_a_mark_of_its_own(subject)),
        |subject| Box::pin(acknowledging::what_cannot_name_a_reader_is_refused(subject)),
    ]
}

fn chat(id: &str) -> Address {
    Address::new(AddressKind::Chat, id).unwrap_or_else(|error| unreachable!("{error}"))
}

fn note(to: &Address, text: &str) -> Outgoing {
    let from = From { kind: FromKind::Mcp, id: "client@1".to_owned() };
    let principal = "local/user".to_owned();
    let sender = Sender { principal, channel: Channel::Mcp, pid: 7, instance_id: InstanceId::random() };
    Outgoing::note(to.clone(), from, sender, text)
}

/// Publishes; what is checked elsewhere must succeed here.
async fn send<B: Bus>(bus: &B, message: Outgoing) -> Receipt {
    let sent = bus.publish(message, Durability::Durable).await;
    sent.unwrap_or_else(|error| unreachable!("a message is published: {error}"))
}

async fn fill<B: Bus>(bus: &B, to: &Address, count: u64) {
    for number in 1..=count {
        send(bus, note(to, &format!("text {number}"))).await;
    }
}

async fn read<B: Bus>(bus: &B, from: &Address, request: ReadRequest) -> Page {
    let page = bus.read(from.clone(), request).await;
    page.unwrap_or_else(|error| unreachable!("a mailbox is read: {error}"))
}

fn seqs(page: &Page) -> Vec<u64> {
    page.messages.iter().map(|envelope| envelope.seq).collect()
}
