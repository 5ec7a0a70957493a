//! Listing and search.

use cyberine_types::{Billing, RunId};

use super::{Subject, answered, asked, settled, won};
use crate::error::StoreError;
use crate::event::{RunEvent, RunState};
use crate::money::Ledger;
use crate::port::{Cursor, Registry, RunStore, RunSummary};

pub(super) async fn the_newest_run_comes_first<S: RunStore + Registry + Ledger>(subject: &Subject<S>) {
    let mut claims = Vec::new();
    for name in ["one of it", "two of it", "three of it", "none"] {
        claims.push(subject.admitted(name).await);
    }
    // A clock that is set back does not change the order.
    subject.clock.step(-3_600_000);
    claims.push(subject.admitted("four of it").await);
    assert_eq!(subject.titles("", 2).await, ["four of it", "none"]);
    assert_eq!(subject.titles("of it", 3).await, ["four of it", "three of it", "two of it"]);
    assert_eq!(subject.titles("of it", 0).await, [""; 0]);
    let all = subject.other.query(String::new(), 200).await.expect("they are listed");
    assert_eq!(all.len(), 5);
    assert_eq!((all[0].run_id, all[0].state), (claims[4].run(), RunState::Queued));
}

pub(super) async fn every_listed_field_is_searched<S: RunStore + Registry + Ledger>(subject: &Subject<S>) {
    let long = format!("{} needle at the far end", "hay ".repeat(500));
    let first = subject.admitted(&long).await;
    let second = subject.admitted("rivers").await;
    subject.append(&second, asked(Billing::Free)).await;
    assert_eq!(subject.titles("Danube", 9).await, [""; 0]);
    subject.append(&second, vec![answered("The Danube is one", None), won(), settled(RunState::Done)]).await;
    assert_eq!(subject.titles("needle at the far", 9).await.len(), 1);
    assert_eq!(subject.titles(&long.to_uppercase(), 9).await.len(), 1);
    assert_eq!(subject.titles(&format!("{long}."), 9).await, [""; 0]);
    assert_eq!(subject.titles("the danube IS", 9).await, ["rivers"]);
    assert_eq!(subject.titles("don", 9).await, ["rivers"], "by state");
    assert_eq!(subject.titles("queue", 9).await.len(), 1, "by state");
    assert_eq!(subject.titles(&second.run().to_string().to_uppercase(), 9).await, ["rivers"]);
    assert_eq!(subject.titles("mcp-ORCH", 9).await.len(), 2);
    assert_eq!(subject.titles(&subject.project, 9).await.len(), 2);
    let found = subject.other.query("danube".to_owned(), 9).await.expect("a search is answered");
    assert_eq!(found[0].winner_preview.as_deref(), Some("The Danube is one"));
    drop(first);
}

pub(super) async fn a_search_is_literal<S: RunStore + Registry + Ledger>(subject: &Subject<S>) {
    let texts = [
        "100% sure",
        "snake_case",
        "say \"hi\" now",
        "a.*b",
        "back\\slash",
        "x OR y AND",
        "star*",
        "it's (here)",
    ];
    for text in texts {
        drop(subject.admitted(text).await);
    }
    for text in texts {
        assert_eq!(subject.titles(text, 9).await, [text]);
    }
    for absent in ["%%%", "___", "s.*e", "\"\"\"", "hi\" OR \"sure", "prompt:sure", "sn*", "\0\0\0"] {
        assert_eq!(subject.titles(absent, 9).await, [""; 0], "{absent:?}");
    }
}

pub(super) async fn short_texts_are_found<S: RunStore + Registry + Ledger>(subject: &Subject<S>) {
    for text in ["zz top ~", "Ünal % ~", "plain ~"] {
        drop(subject.admitted(text).await);
    }
    assert_eq!(subject.titles("ZZ", 9).await, ["zz top ~"]);
    assert_eq!(subject.titles("%", 9).await, ["Ünal % ~"]);
    assert_eq!(subject.titles("Ün", 9).await, ["Ünal % ~"]);
    assert_eq!(subject.titles("~", 2).await, ["plain ~", "Ünal % ~"]);
    assert_eq!(subject.titles("_%", 9).await, [""; 0]);
}

pub(super) async fn recent_runs_are_ordered_by_their_last_change<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    let mut claims = Vec::new();
    for name in ["one", "two", "three"] {
        claims.push(subject.admitted(name).await);
        subject.clock.step(1_000);
    }
    subject.append(&claims[0], vec![RunEvent::Started { pid: 1 }]).await;
    let recent =
        |after, limit| async move { subject.other.recent(after, limit).await.expect("they are listed") };
    let titles = |found: &[RunSummary]| -> Vec<String> {
        found.iter().map(|summary| summary.task_preview.clone()).collect()
    };
    let all = recent(None, 9).await;
    assert_eq!(titles(&all), ["one", "three", "two"]);
    assert_eq!(titles(&recent(Some(Cursor::from(&all[0])), 1).await), ["three"]);
    assert_eq!(titles(&recent(Some(Cursor::from(&all[2])), 9).await), [""; 0]);
    assert_eq!(titles(&recent(Some(Cursor::from(&all[1])), 0).await), [""; 0]);
    let stranger = Cursor { run: RunId::random(), ..Cursor::from(&all[0]) };
    let refused = subject.other.recent(Some(stranger), 9).await;
    assert!(matches!(refused, Err(StoreError::NotFound { .. })), "{refused:?}");
}

pub(super) async fn a_change_between_two_pages_moves_no_other_run<S: RunStore + Registry + Ledger>(
    subject: &Subject<S>,
) {
    let mut claims = Vec::new();
    // Some of them at the same time.
    for number in 0..9 {
        claims.push(subject.admitted(&format!("run {number}")).await);
        subject.clock.step(number % 2);
    }
    let page = |after| async move { subject.other.recent(after, 3).await.expect("they are listed") };
    let first = page(None).await;
    subject.clock.step(1_000);
    subject.append(&claims[7], vec![RunEvent::Started { pid: 1 }]).await;
    drop(subject.admitted("a new one").await);
    let second = page(first.last().map(Cursor::from)).await;
    subject.append(&claims[4], vec![RunEvent::Started { pid: 1 }]).await;
    let third = page(second.last().map(Cursor::from)).await;
    let shown = [first, second, third].concat();
    let titles: Vec<_> = shown.iter().map(|summary| summary.task_preview.as_str()).collect();
    assert_eq!(titles, ["run 8", "run 7", "run 6", "run 5", "run 4", "run 3", "run 2", "run 1", "run 0"]);
}
