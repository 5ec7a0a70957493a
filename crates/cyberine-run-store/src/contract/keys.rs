//! What becomes of calls that carry a key.

use serde_json::{Value, json};

use super::Subject;
use crate::error::StoreError;
use crate::port::{Begun, Idempotency, IdempotencyKey};

const DAY_MS: i64 = 86_400_000;

fn key(scope: &str, key: &str, fingerprint: &str) -> IdempotencyKey {
    let (scope, key, fingerprint) = (scope.to_owned(), key.to_owned(), fingerprint.to_owned());
    IdempotencyKey { scope, key, fingerprint }
}

async fn begun<S: Idempotency>(store: &S, key: &IdempotencyKey, draft: &str) -> Begun {
    store.begin(key.clone(), draft.to_owned()).await.expect("a key is answered")
}

async fn finished<S: Idempotency>(store: &S, key: &IdempotencyKey, result: Value) {
    store.finish(key.clone(), result).await.expect("a result is kept");
}

fn unfinished(draft: &str) -> Begun {
    Begun::Unfinished { draft: draft.to_owned() }
}

pub(super) async fn the_first_draft_and_the_first_result_of_a_key_stand<S: Idempotency>(
    subject: &Subject<S>,
) {
    let one = key("p", "k\0\u{1b}", "orchestrate 1");
    assert_eq!(begun(&subject.store, &one, "first").await, Begun::Fresh);
    assert_eq!(begun(&subject.other, &one, "second").await, unfinished("first"));
    let result = json!({"runId": "r", "n": 1.5, "text": "\u{0}"});
    finished(&subject.other, &one, result.clone()).await;
    finished(&subject.store, &one, json!("late")).await;
    for (store, draft) in [(&subject.store, "third"), (&subject.other, "fourth")] {
        assert_eq!(begun(store, &one, draft).await, Begun::Finished(result.clone()));
    }
}

pub(super) async fn a_key_that_was_given_for_something_else_is_a_conflict<S: Idempotency>(
    subject: &Subject<S>,
) {
    let (one, other) = (key("p", "k", "send 1"), key("p", "k", "send 2"));
    assert_eq!(begun(&subject.store, &one, "first").await, Begun::Fresh);
    assert_eq!(begun(&subject.other, &other, "second").await, Begun::Conflict);
    let refused = subject.other.finish(other.clone(), json!(2)).await;
    assert!(matches!(&refused, Err(StoreError::KeyNotOpen { key }) if key == "k"), "{refused:?}");
    finished(&subject.store, &one, json!(1)).await;
    assert_eq!(begun(&subject.other, &other, "second").await, Begun::Conflict);
    assert_eq!(begun(&subject.other, &one, "second").await, Begun::Finished(json!(1)));
}

pub(super) async fn a_key_of_another_scope_is_another_key<S: Idempotency>(subject: &Subject<S>) {
    let (one, other) = (key("p", "k", "send 1"), key("q", "k", "send 2"));
    assert_eq!(begun(&subject.store, &one, "one").await, Begun::Fresh);
    assert_eq!(begun(&subject.store, &other, "other").await, Begun::Fresh);
    finished(&subject.store, &one, json!(1)).await;
    assert_eq!(begun(&subject.other, &other, "x").await, unfinished("other"));
    assert_eq!(begun(&subject.other, &key("", "pk", "send 1"), "x").await, Begun::Fresh);
    let unopened = subject.store.finish(key("r", "k", "send 1"), json!(1)).await;
    assert!(matches!(unopened, Err(StoreError::KeyNotOpen { .. })), "{unopened:?}");
}

pub(super) async fn a_key_is_known_for_thirty_days<S: Idempotency>(subject: &Subject<S>) {
    let keys: Vec<_> = (0..80).map(|n| key("p", &n.to_string(), "send")).collect();
    for known in &keys {
        assert_eq!(begun(&subject.store, known, "old").await, Begun::Fresh);
    }
    finished(&subject.store, &keys[0], json!(0)).await;
    subject.clock.step(30 * DAY_MS);
    assert_eq!(begun(&subject.other, &keys[0], "new").await, Begun::Finished(json!(0)));
    assert_eq!(begun(&subject.other, &keys[79], "new").await, unfinished("old"));
    subject.clock.step(1);
    // Opening any key drops some old ones; which, no caller can tell.
    for known in keys.iter().rev() {
        assert_eq!(begun(&subject.other, known, "new").await, Begun::Fresh);
        assert_eq!(begun(&subject.store, known, "newer").await, unfinished("new"));
    }
}

pub(super) async fn what_is_kept_of_a_key_is_bounded<S: Idempotency>(subject: &Subject<S>) {
    let one = key("p", "k", "send");
    assert_eq!(begun(&subject.store, &one, "draft").await, Begun::Fresh);
    let most = json!("x".repeat((64 << 10) - 2));
    let refused = subject.store.finish(one.clone(), json!("x".repeat((64 << 10) - 1))).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { what: "result", .. })), "{refused:?}");
    assert_eq!(begun(&subject.other, &one, "x").await, unfinished("draft"));
    finished(&subject.store, &one, most.clone()).await;
    assert_eq!(begun(&subject.other, &one, "x").await, Begun::Finished(most));
    let long = key("p", &"k".repeat((8 << 10) + 1), "send");
    let refused = subject.store.begin(long, String::new()).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { what: "key", .. })), "{refused:?}");
}

pub(super) async fn work_that_came_to_nothing_is_named_anew_once<S: Idempotency>(subject: &Subject<S>) {
    let one = key("p", "k", "orchestrate 1");
    let redraft = async |store: &S, old: &str, new: &str| {
        store.redraft(one.clone(), old.to_owned(), new.to_owned()).await
    };
    let unknown = redraft(&subject.store, "first", "second").await;
    assert!(matches!(unknown, Err(StoreError::KeyNotOpen { .. })), "{unknown:?}");
    begun(&subject.store, &one, "first").await;
    assert_eq!(redraft(&subject.store, "first", "second").await.expect("it is open"), Begun::Fresh);
    let late = redraft(&subject.other, "first", "third").await;
    assert_eq!(late.expect("it is answered"), unfinished("second"));
    assert_eq!(begun(&subject.other, &one, "fourth").await, unfinished("second"));
    let other = key("p", "k", "orchestrate 2");
    let conflict = subject.other.redraft(other, "second".to_owned(), "fifth".to_owned()).await;
    assert_eq!(conflict.expect("it is answered"), Begun::Conflict);
    finished(&subject.store, &one, json!(1)).await;
    let done = redraft(&subject.other, "second", "sixth").await;
    assert_eq!(done.expect("it is answered"), Begun::Finished(json!(1)));
}
