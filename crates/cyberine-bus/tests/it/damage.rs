//! Files that were cut, changed, replaced or removed.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::time::Duration;

use cyberine_bus::{Address, AddressKind, Bus as _, BusError, Durability, Outgoing, ReadRequest};
use cyberine_fs::PrivateDir;

use crate::support::{Place, block_on, chat, note, read, send, seqs};

/// A place whose mailbox holds so many messages, and the bytes of its file.
fn filled(count: u64) -> (Place, Vec<u8>) {
    let place = Place::new();
    block_on(async {
        let bus = place.bus();
        for number in 1..=count {
            send(&bus, &format!("text {number}")).await;
        }
    });
    let bytes = std::fs::read(place.segment()).unwrap();
    (place, bytes)
}

/// Where the record of a number begins, and where its line ends.
fn line(bytes: &[u8], number: usize) -> (usize, usize) {
    let ends: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    (if number == 1 { 0 } else { ends[number - 2] }, ends[number - 1])
}

async fn texts(place: &Place) -> (Vec<(u64, String)>, u64) {
    let page = read(&place.bus(), 0).await;
    let texts = page.messages.iter().map(|envelope| (envelope.seq, envelope.text.clone()));
    (texts.collect(), page.skipped)
}

#[test]
fn a_record_cut_anywhere_costs_nothing_but_itself() {
    let (place, bytes) = filled(3);
    let (start, end) = line(&bytes, 3);
    block_on(async {
        for cut in start..=end {
            std::fs::write(place.segment(), &bytes[..cut]).unwrap();
            let before = texts(&place).await.0.len() as u64;
            assert_eq!(before, if cut == end { 3 } else { 2 }, "what has no end is not there yet");
            let sent = place.bus().publish(note("new"), Durability::Fast).await.unwrap();
            let (found, skipped) = texts(&place).await;
            // A record that lacks its line feed only is whole, and gets it.
            let is_whole = cut + 1 >= end;
            assert_eq!(sent.seq, if is_whole { 4 } else { 3 }, "cut at {cut}");
            assert_eq!(found.last(), Some(&(sent.seq, "new".to_owned())), "cut at {cut}");
            assert_eq!(found.len() as u64, sent.seq, "cut at {cut}: {found:?}");
            assert_eq!(skipped, u64::from(!is_whole && cut > start), "cut at {cut}");
            let report = place.bus().check().await.unwrap();
            assert_eq!((report[0].bad_lines, report[0].torn_lines), (0, skipped), "cut at {cut}");
        }
    });
}

#[test]
fn a_flipped_bit_costs_one_record_and_is_never_read() {
    let (place, bytes) = filled(3);
    let originals: BTreeSet<(u64, String)> =
        (1..=3).map(|number| (number, format!("text {number}"))).collect();
    block_on(async {
        for number in [2, 3] {
            let (start, end) = line(&bytes, number);
            for at in start..end {
                let mut broken = bytes.clone();
                broken[at] ^= 1 << (at % 8);
                std::fs::write(place.segment(), &broken).unwrap();
                let sent = place.bus().publish(note("new"), Durability::Fast).await.unwrap();
                // The number of what may have been acknowledged is not given to anything else.
                assert!(sent.seq >= 4, "byte {at}: {sent:?}");
                let (found, skipped) = texts(&place).await;
                let mut expected = originals.clone();
                expected.retain(|(seq, _)| *seq != number as u64);
                expected.insert((sent.seq, "new".to_owned()));
                assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected, "byte {at}");
                assert!((1..=2).contains(&skipped), "byte {at}: {skipped} skipped");
            }
        }
    });
}

#[test]
fn a_bad_line_in_the_middle_is_skipped_counted_and_reported() {
    let (place, bytes) = filled(4);
    let (start, end) = line(&bytes, 3);
    let lines = [&bytes[..start], b"not a record\n\n", b"{\"seq\":3}\n", &bytes[end..]];
    std::fs::write(place.segment(), lines.concat()).unwrap();
    block_on(async {
        let bus = place.bus();
        let page = read(&bus, 0).await;
        assert_eq!((seqs(&page), page.skipped, page.next), (vec![1, 2, 4], 2, 4));
        let page = read(&bus, 2).await;
        assert_eq!((seqs(&page), page.skipped), (vec![4], 2));
        assert_eq!(read(&bus, 4).await.skipped, 0, "counted once");
        let newest = ReadRequest { newest: true, limit: 2, ..ReadRequest::default() };
        let page = bus.read(chat(), newest).await.unwrap();
        assert_eq!((seqs(&page), page.skipped), (vec![2, 4], 2));
        let report = bus.check().await.unwrap();
        assert_eq!((report.len(), report[0].messages, report[0].bad_lines), (1, 3, 2));
        assert_eq!(report[0].mailbox, Some(chat()));
        assert_eq!(send(&bus, "new").await.seq, 5);
    });
}

#[test]
fn a_message_of_another_mailbox_is_not_read_as_one_of_this() {
    let (place, bytes) = filled(2);
    block_on(async {
        let bus = place.bus();
        let elsewhere = Address::new(AddressKind::Chat, "elsewhere").unwrap();
        let message = Outgoing { to: elsewhere.clone(), ..note("mine") };
        bus.publish(message, Durability::Fast).await.unwrap();
        let file = place.home().join("bus/chat/elsewhere").join(place.segment().file_name().unwrap());
        std::fs::write(file, &bytes).unwrap();
        let page = bus.read(elsewhere, ReadRequest::default()).await.unwrap();
        assert_eq!(page.messages, []);
    });
}

#[test]
fn a_file_cut_or_replaced_under_a_reader_neither_stops_nor_repeats_it() {
    let (place, bytes) = filled(5);
    block_on(async {
        let bus = place.bus();
        let mut after = read(&bus, 0).await.next;
        bus.acknowledge(chat(), "reader".to_owned(), 5).await.unwrap();
        for left in [&bytes[..0], &bytes[..line(&bytes, 2).1], b"rubbish without an end"] {
            std::fs::remove_file(place.segment()).unwrap();
            std::fs::write(place.segment(), left).unwrap();
            let page = read(&bus, after).await;
            assert_eq!((page.messages.len(), page.more), (0, false));
            // A process that knows nothing of before.
            let sent = place.bus().publish(note("new"), Durability::Durable).await.unwrap();
            let page = read(&bus, page.next).await;
            assert!(page.messages.iter().any(|envelope| envelope.id == sent.id), "{left:?}: {page:?}");
            assert!(!page.more && page.next == sent.seq);
            after = page.next;
        }
        // Cut to nothing, the numbers go on behind those that readers and this process know of.
        std::fs::write(place.segment(), b"").unwrap();
        assert!(send(&bus, "new").await.seq > 5);
        std::fs::write(place.segment(), b"").unwrap();
        assert!(send(&place.bus(), "new").await.seq > 5);
    });
}

#[test]
fn a_home_removed_while_in_use_is_an_error_once() {
    let (place, _) = filled(1);
    block_on(async {
        let bus = place.bus();
        send(&bus, "before").await;
        std::fs::remove_dir_all(place.home()).unwrap();
        let refused = bus.publish(note("lost"), Durability::Durable).await.unwrap_err();
        assert_eq!(refused.code(), "mailbox_gone");
        assert!(refused.to_string().contains("bus/chat/here") && !refused.advice().is_empty());
        assert!(send(&bus, "after").await.seq > 2, "numbers that were given away are not used again");
        assert_eq!(read(&bus, 0).await.messages.len(), 1);
        // Moved away, mail does not go where nobody looks.
        std::fs::rename(place.home(), place.root.path().join("elsewhere")).unwrap();
        assert!(matches!(bus.publish(note("lost"), Durability::Fast).await, Err(BusError::Gone { .. })));
        assert_eq!(read(&bus, 0).await.messages, []);
    });
}

#[test]
fn what_is_planted_is_refused() {
    let (place, _) = filled(1);
    block_on(async {
        let target = place.root.path().join("target");
        std::fs::write(&target, b"").unwrap();
        std::fs::remove_file(place.segment()).unwrap();
        symlink(&target, place.segment()).unwrap();
        let refused = place.bus().publish(note("text"), Durability::Durable).await.unwrap_err();
        assert_eq!(refused.code(), "bus_refused", "{refused:?}");
        assert!(place.bus().read(chat(), ReadRequest::default()).await.is_err());
        assert_eq!(std::fs::read(&target).unwrap(), b"");
        std::fs::remove_file(place.segment()).unwrap();
        std::fs::hard_link(&target, place.segment()).unwrap();
        assert!(place.bus().publish(note("text"), Durability::Durable).await.is_err());
        std::fs::remove_file(place.segment()).unwrap();
        assert_eq!(send(&place.bus(), "text").await.seq, 1);
    });
}

#[test]
fn a_lock_that_is_not_let_go_is_waited_for_in_bounds() {
    let (place, _) = filled(1);
    let held = PrivateDir::open_or_create(&place.mailbox()).unwrap().try_lock("lock").unwrap().unwrap();
    block_on(async {
        let bus = place.bus();
        let started = std::time::Instant::now();
        let refused = bus.publish(note("text"), Durability::Durable).await.unwrap_err();
        assert_eq!(refused.code(), "mailbox_busy");
        assert!(started.elapsed() < Duration::from_secs(10));
        assert_eq!(read(&bus, 0).await.last, 1, "reading needs no lock");
        drop(held);
        assert_eq!(send(&bus, "text").await.seq, 2);
    });
}

#[test]
fn mailboxes_are_listed_and_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    block_on(async {
        let bus = place.bus();
        assert_eq!(bus.mailboxes(9).await.unwrap().addresses, []);
        assert!(!place.home().exists(), "looking makes nothing");
        let long = "x".repeat(1000);
        let mut sent = Vec::new();
        for (kind, id) in [(AddressKind::Run, "a/b"), (AddressKind::Chat, &long), (AddressKind::Mcp, "é")] {
            let to = Address::new(kind, id).unwrap();
            bus.publish(Outgoing { to: to.clone(), ..note("text") }, Durability::Fast).await.unwrap();
            sent.push(to);
        }
        let listed = bus.mailboxes(9).await.unwrap();
        assert_eq!((listed.addresses, listed.truncated), (sent.clone(), false));
        let listed = bus.mailboxes(2).await.unwrap();
        assert_eq!((listed.addresses.len(), listed.truncated), (2, true));
        assert_eq!(bus.check().await.unwrap().len(), 3);
        let mut left = vec![place.home()];
        while let Some(path) = left.pop() {
            let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
            if path.is_dir() {
                left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
    });
}

/// A whole record, as a newer program or another mailbox would have it.
fn strange(line: &[u8], changes: [(&str, &str); 2]) -> Vec<u8> {
    let mut text = String::from_utf8(line.trim_ascii_end().to_vec()).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{from} in {text}");
        text = text.replacen(from, to, 1);
    }
    let body = &text[..text.rfind(",\"crc\"").unwrap()];
    format!("{body},\"crc\":\"{:08x}\"}}\n", crc32fast::hash(body.as_bytes())).into_bytes()
}

#[test]
fn whole_records_that_are_no_messages_of_the_mailbox_are_passed_and_counted() {
    let (place, bytes) = filled(2);
    let second = &bytes[line(&bytes, 2).0..];
    for change in [("\"topic\":\"note\"", "\"topic\":\"newer\""), ("\"id\":\"here\"", "\"id\":\"there\"")] {
        let third = strange(second, [("\"seq\":2", "\"seq\":3"), change]);
        let fourth = strange(second, [("\"seq\":2", "\"seq\":4"), change]);
        std::fs::write(place.segment(), [bytes.clone(), third, fourth].concat()).unwrap();
        block_on(async {
            let bus = place.bus();
            let page = read(&bus, 0).await;
            assert_eq!((seqs(&page), page.skipped, page.next, page.more), (vec![1, 2], 2, 4, false));
            let page = read(&bus, 2).await;
            assert_eq!((seqs(&page), page.skipped, page.next, page.more), (vec![], 2, 4, false));
            let page = read(&bus, 3).await;
            assert_eq!((page.skipped, page.next, page.more), (1, 4, false));
            let page = read(&bus, 4).await;
            assert_eq!((page.skipped, page.next, page.more, page.last), (0, 4, false, 4));
            let one = ReadRequest { limit: 1, after: 1, ..ReadRequest::default() };
            let page = bus.read(chat(), one).await.unwrap();
            assert_eq!((seqs(&page), page.next, page.more), (vec![2], 2, true));
            for (limit, seen) in [(1, vec![2]), (9, vec![1, 2])] {
                let newest = ReadRequest { newest: true, limit, ..ReadRequest::default() };
                let page = bus.read(chat(), newest).await.unwrap();
                assert_eq!((seqs(&page), page.skipped, page.next, page.more), (seen, 2, 4, false));
            }
            // Whoever has passed them waits.
            let waited = bus.changed(chat(), 4, Duration::from_secs(60));
            assert!(tokio::time::timeout(Duration::from_millis(50), waited).await.is_err());
            let sent = send(&place.bus(), "new").await;
            assert_eq!(sent.seq, 5, "their numbers are used up");
            let page = read(&bus, 2).await;
            assert_eq!((seqs(&page), page.skipped, page.next, page.more), (vec![5], 2, 5, false));
        });
    }
}

#[test]
fn one_odd_directory_costs_no_other_mailbox() {
    use std::os::unix::fs::PermissionsExt;
    let (place, _) = filled(1);
    let kind = place.home().join("bus/chat");
    std::fs::create_dir(kind.join("shared")).unwrap();
    std::fs::set_permissions(kind.join("shared"), PermissionsExt::from_mode(0o777)).unwrap();
    symlink(place.mailbox(), kind.join("link")).unwrap();
    symlink(&kind, place.home().join("bus/mcp")).unwrap();
    std::fs::create_dir(kind.join("linked")).unwrap();
    std::fs::set_permissions(kind.join("linked"), PermissionsExt::from_mode(0o700)).unwrap();
    symlink(place.segment(), kind.join("linked").join(place.segment().file_name().unwrap())).unwrap();
    std::fs::write(kind.join("file"), b"").unwrap();
    block_on(async {
        let found = place.bus().mailboxes(9).await.unwrap();
        assert!(found.addresses.contains(&chat()) && !found.truncated, "{found:?}");
        let refused = ["bus/chat/link", "bus/chat/shared", "bus/mcp"];
        let named: Vec<_> = found.unusable.iter().map(|one| one.path.clone()).collect();
        assert_eq!(named, refused.map(|name| place.home().join(name)));
        assert!(found.unusable.iter().all(|one| !one.problem.is_empty()), "{found:?}");
        let reports = place.bus().check().await.unwrap();
        let sound = reports.iter().find(|report| report.mailbox == Some(chat())).unwrap();
        assert_eq!((sound.messages, &sound.problem), (1, &None));
        let bad = reports.iter().filter(|report| report.problem.is_some()).map(|report| report.path.clone());
        let named = ["bus/chat/link", "bus/chat/linked", "bus/chat/shared", "bus/mcp"];
        assert_eq!(bad.collect::<BTreeSet<_>>(), named.map(|name| place.home().join(name)).into());
        assert_eq!(reports.len(), 5);
    });
}

#[test]
fn a_file_with_a_second_name_takes_no_more_mail_from_whoever_has_it_open() {
    let (place, _) = filled(1);
    let other = place.root.path().join("other");
    block_on(async {
        let bus = place.bus();
        send(&bus, "open").await;
        std::fs::hard_link(place.segment(), &other).unwrap();
        let refused = bus.publish(note("text"), Durability::Durable).await.unwrap_err();
        assert_eq!(refused.code(), "bus_refused", "{refused:?}");
        std::fs::remove_file(&other).unwrap();
        assert_eq!(send(&bus, "text").await.seq, 3);
        assert_eq!(seqs(&read(&bus, 0).await), [1, 2, 3]);
    });
}

#[test]
fn a_lock_whose_file_is_removed_again_and_again_still_keeps_writers_apart() {
    const WRITERS: u64 = 4;
    const EACH: u64 = 400;
    let place = Place::new();
    block_on(send(&place.bus(), "first"));
    let left = std::sync::atomic::AtomicU64::new(WRITERS);
    let order = std::sync::atomic::Ordering::SeqCst;
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                block_on(async {
                    let bus = place.bus();
                    for _ in 0..EACH {
                        bus.publish(note(&"x".repeat(3_000)), Durability::Fast).await.unwrap();
                    }
                });
                left.fetch_sub(1, order);
            });
        }
        while left.load(order) > 0 {
            // Not there yet, as often as not.
            let _ = std::fs::remove_file(place.mailbox().join("lock"));
        }
    });
    block_on(async {
        let page = read(&place.bus(), 0).await;
        assert_eq!(seqs(&page), (1..=WRITERS * EACH + 1).collect::<Vec<_>>());
        assert_eq!(place.bus().check().await.unwrap()[0].bad_lines, 0);
    });
}
