use std::sync::Arc;
use std::time::Duration;

use cyberine_bus::{AddressKind, Channel, Durability, From, FromKind, MAX_TEXT_BYTES, MemoryBus, NoBus};
use cyberine_bus::{Outgoing, Sender, Topic};
use cyberine_server::{Progress, ToolSet as _};
use cyberine_types::{Billing, Identity, InstanceId, ManualClock, MessageId, Principal, RunId, Timestamp};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};

use crate::stage::{Setting, Stage};

fn texts(polled: &Value) -> Vec<&str> {
    polled["messages"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_message_carries_the_principal_of_its_caller() {
    let stage = Stage::free(&[]);
    let letter = json!({ "to_kind": "chat", "to_id": "review", "text": "one" });
    let mut call = stage.call_of("send_message", letter, Progress::none());
    let ada = Principal { tenant: "acme".to_owned(), name: "ada".to_owned() };
    call.caller.identity = Arc::new(Identity::of(ada.clone()));
    stage.tools.call(call).await.unwrap();
    let envelope = &stage.mail(AddressKind::Chat, "review").await[0];
    assert_eq!(envelope.sender, Sender::new(&ada, Channel::Mcp, stage.instance));
}

#[tokio::test]
async fn a_message_lies_in_its_mailbox_and_reading_takes_nothing_away() {
    let stage = Stage::free(&[]);
    let to = json!({ "to_kind": "chat", "to_id": "review", "text": "one", "thread": "t", "importance": "high", "ackRequired": true });
    let first = stage.call("send_message", to).await;
    assert_eq!((&first["ok"], &first["seq"], &first["delivered"]), (&json!(true), &json!(1), &json!(false)));
    assert!(first["note"].as_str().unwrap().contains("the message is kept"), "{first}");
    let answer = json!({ "to_kind": "chat", "to_id": "review", "text": "two", "replyTo": first["messageId"], "topic": "steer" });
    stage.call("send_message", answer).await;

    let envelope = &stage.mail(AddressKind::Chat, "review").await[0];
    assert_eq!(envelope.from, From { kind: FromKind::Mcp, id: "host@1.2".into() });
    assert_eq!(envelope.sender, Sender::new(&Principal::local("me"), Channel::Mcp, stage.instance));

    let poll = json!({ "kind": "chat", "id": "review" });
    let all = stage.call("poll_inbox", poll.clone()).await;
    assert_eq!((texts(&all), &all["nextCursor"]), (vec!["one", "two"], &json!(2)));
    let [one, two] = [&all["messages"][0], &all["messages"][1]];
    assert_eq!(
        (&one["id"], &one["thread"], &one["importance"], &one["ackRequired"]),
        (&first["messageId"], &json!("t"), &json!("high"), &json!(true))
    );
    assert_eq!((&two["replyTo"], &two["topic"]), (&first["messageId"], &json!("steer")));
    assert_eq!(stage.call("poll_inbox", poll).await, all, "a poll takes nothing away");
    let rest = stage.call("poll_inbox", json!({ "kind": "chat", "id": "review", "cursor": 1 })).await;
    assert_eq!((texts(&rest), &rest["more"]), (vec!["two"], &json!(false)));
    let none = stage.call("poll_inbox", json!({ "kind": "chat", "id": "review", "cursor": 2 })).await;
    assert_eq!((texts(&none), &none["nextCursor"]), (vec![], &json!(2)));
}

#[tokio::test]
async fn only_what_was_sent_later_is_read_where_that_is_asked() {
    let clock = Arc::new(ManualClock::at(Timestamp::from_unix_ms(1_000)));
    let stage = Stage::set(Setting::on(Arc::new(MemoryBus::new(clock.clone()))), &[], Billing::Free);
    for text in ["at 1000", "at 2000", "at 3000"] {
        stage.call("send_message", json!({ "to_kind": "chat", "to_id": "c", "text": text })).await;
        clock.step(1_000);
    }
    for (since, expected) in [(999, 3), (1_000, 2), (2_500, 1), (3_000, 0)] {
        let polled = stage.call("poll_inbox", json!({ "kind": "chat", "id": "c", "sinceMs": since })).await;
        assert_eq!(texts(&polled).len(), expected, "{since}");
        assert_eq!(polled["nextCursor"], 3);
    }
}

#[tokio::test]
async fn a_run_is_looked_at_before_it_is_written_to() {
    let stage = Stage::free(&[("a", "x")]);
    let nobody = RunId::random();
    let absent = stage.call("send_message", json!({ "to_kind": "run", "to_id": nobody, "text": "x" })).await;
    assert_eq!(absent["ok"], false);
    assert!(absent["reason"].as_str().unwrap().contains("there is no run"), "{absent}");
    assert_eq!(stage.mail(AddressKind::Run, &nobody.to_string()).await, []);

    let id = stage.start("x").await;
    let spelled = id.to_string().to_uppercase();
    let steer = json!({ "to_kind": "run", "to_id": spelled, "text": "be brief", "topic": "steer" });
    let live = stage.call("send_message", steer).await;
    assert_eq!((&live["ok"], &live["delivered"], live.get("note")), (&json!(true), &json!(true), None));
    let to_worker = |name: &str| json!({ "to_kind": "worker", "to_id": format!("{id}/{name}"), "text": "x" });
    let known = stage.call("send_message", to_worker("a")).await;
    assert_eq!((&known["ok"], &known["delivered"]), (&json!(true), &json!(true)));
    let unknown = stage.call("send_message", to_worker("nope")).await;
    assert_eq!(unknown["ok"], false);
    assert!(unknown["reason"].as_str().unwrap().contains("no candidate `nope`"), "{unknown}");
    stage.gate.send_replace(true);
    stage.see(id, |run| run.state.is_terminal()).await;
    let late = stage.call("send_message", json!({ "to_kind": "run", "to_id": id, "text": "too late" })).await;
    assert_eq!((&late["ok"], &late["delivered"]), (&json!(true), &json!(false)));
    assert!(late["note"].as_str().unwrap().contains("the run is over (done)"), "{late}");
    let polled = stage.call("poll_inbox", json!({ "kind": "run", "id": id })).await;
    let ours: Vec<_> =
        polled["messages"].as_array().unwrap().iter().filter(|one| one["from"]["kind"] == "mcp").collect();
    assert_eq!((&ours[0]["text"], &ours[1]["text"]), (&json!("be brief"), &json!("too late")));
    let worker = json!({ "to_kind": "worker", "to_id": format!("{nobody}/a"), "text": "x" });
    assert_eq!(stage.call("send_message", worker).await["ok"], false);
}

#[tokio::test]
async fn an_address_is_taken_as_it_is_or_refused_by_its_field() {
    let stage = Stage::free(&[]);
    let mcp = InstanceId::random().to_string();
    let fine = [
        ("chat", "../../x".to_owned()),
        ("chat", "a/b\\c:*?\"<>|".to_owned()),
        ("chat", "x".repeat(300)),
        ("chat", "x".repeat(1024)),
        ("chat", "Ünïcödé 🦉".to_owned()),
        ("chat", "u\u{308}".to_owned()),
        ("chat", "ü".to_owned()),
        ("mcp", mcp.to_uppercase()),
    ];
    for (kind, id) in &fine {
        let sent = stage.call("send_message", json!({ "to_kind": kind, "to_id": id, "text": id })).await;
        assert_eq!((&sent["ok"], &sent["seq"]), (&json!(true), &json!(1)), "{id}: {sent}");
        let polled = stage.call("poll_inbox", json!({ "kind": kind, "id": id })).await;
        assert_eq!(texts(&polled), [id]);
    }
    assert_eq!(stage.mail(AddressKind::Mcp, &mcp).await.len(), 1, "in the spelling its server has");
    let refused = [
        ("chat", String::new()),
        ("chat", " ".to_owned()),
        ("chat", "x".repeat(1025)),
        ("chat", "a\0b".to_owned()),
        ("chat", "a\nb".to_owned()),
        ("chat", "a\u{202e}b".to_owned()),
        ("run", "../../x".to_owned()),
        ("run", "x".repeat(300)),
        ("mcp", "test-host@1".to_owned()),
        ("worker", RunId::random().to_string()),
        ("worker", "x/a".to_owned()),
    ];
    for (kind, id) in refused {
        let error = stage.refused("send_message", json!({ "to_kind": kind, "to_id": id, "text": "x" })).await;
        assert!(error.starts_with("bad arguments: `to_id`: "), "{kind} {id:?}: {error}");
        let error = stage.refused("poll_inbox", json!({ "kind": kind, "id": id })).await;
        assert!(error.starts_with("bad arguments: `id`: "), "{kind} {id:?}: {error}");
    }
}

#[tokio::test]
async fn bad_arguments_of_messages_name_the_field() {
    let stage = Stage::free(&[]);
    let cases = [
        ("send_message", json!({ "to_id": "c", "text": "x" }), "`to_kind`: it is missing"),
        (
            "send_message",
            json!({ "to_kind": "broadcast", "to_id": "c", "text": "x" }),
            "`to_kind`: it must be one of `run`",
        ),
        ("send_message", json!({ "to_kind": "human", "to_id": "c", "text": "x" }), "`to_kind`: "),
        (
            "send_message",
            json!({ "to_kind": "chat", "to_id": 7, "text": "x" }),
            "`to_id`: it must be a string",
        ),
        ("send_message", json!({ "to_kind": "chat", "to_id": "c" }), "`text`: it is missing"),
        ("send_message", json!({ "to_kind": "chat", "to_id": "c", "text": "" }), "`text`: it is empty"),
        (
            "send_message",
            json!({ "to_kind": "chat", "to_id": "c", "text": "x", "topic": "progress" }),
            "`topic`: it must be one of `note`, `steer`",
        ),
        (
            "send_message",
            json!({ "to_kind": "chat", "to_id": "c", "text": "x", "replyTo": "1" }),
            "`replyTo`: ",
        ),
        (
            "send_message",
            json!({ "to_kind": "chat", "to_id": "c", "text": "x", "importance": "urgent" }),
            "`importance`: ",
        ),
        (
            "send_message",
            json!({ "to_kind": "chat", "to_id": "c", "text": "x", "ackRequired": "yes" }),
            "`ackRequired`: it must be true or false",
        ),
        (
            "send_message",
            json!({ "to_kind": "chat", "to_id": "c", "text": "x", "thread": "t".repeat(201) }),
            "`thread`: ",
        ),
        (
            "poll_inbox",
            json!({ "kind": "chat", "id": "c", "cursor": -1 }),
            "`cursor`: it must be a whole number",
        ),
        ("poll_inbox", json!({ "kind": "chat", "id": "c", "sinceMs": "now" }), "`sinceMs`: "),
        ("poll_inbox", json!({ "kind": "chat", "id": "c", "ackSeq": 0 }), "`ackSeq`: it must be at least 1"),
        ("poll_inbox", json!({ "kind": "chat", "id": "c", "ackSeq": "1" }), "`ackSeq`: "),
        ("list_team", json!({ "joinRuns": 1 }), "`joinRuns`: it must be true or false"),
        ("send_to_team", json!({ "team": " ", "text": "x" }), "`team`: "),
        ("send_to_team", json!({ "team": "t".repeat(129), "text": "x" }), "`team`: it may have 128"),
        ("send_to_role", json!({ "role": "r" }), "`text`: it is missing"),
        ("approve_run", json!({ "runId": RunId::random(), "comment": "c".repeat(4_001) }), "`comment`: "),
        ("reject_run", json!({ "runId": "../../x" }), "`runId`: "),
    ];
    for (tool, arguments, part) in cases {
        let error = stage.refused(tool, arguments.clone()).await;
        assert!(error.contains(part), "{tool} {arguments}: {error}");
    }
}

#[tokio::test]
async fn a_text_is_kept_as_it_is_up_to_a_mebibyte_and_refused_beyond_it() {
    let stage = Stage::free(&[]);
    let send =
        |text: String| stage.call("send_message", json!({ "to_kind": "chat", "to_id": "c", "text": text }));
    let odd = "\0 \u{1b}[31mred\u{1b}]0;t\u{7} \n\r\u{2028} 🦉".to_owned();
    let kept = [odd, "x".repeat(64 << 10), "\u{1}".repeat(1 << 10), "x".repeat(MAX_TEXT_BYTES)];
    for text in kept.clone() {
        assert_eq!(send(text).await["ok"], true);
    }
    let error = stage
        .refused(
            "send_message",
            json!({ "to_kind": "chat", "to_id": "c", "text": "x".repeat(MAX_TEXT_BYTES + 1) }),
        )
        .await;
    assert!(error.contains("`text`") && error.contains("1048577") && error.contains("1048576"), "{error}");
    let stored: Vec<String> =
        stage.mail(AddressKind::Chat, "c").await.into_iter().map(|one| one.text).collect();
    assert!(stored == kept);

    // Whole, by tools alone: what does not fit comes piece by piece.
    let (mut cursor, mut read) = (json!(0), Vec::new());
    while read.len() < kept.len() {
        let polled = stage.call("poll_inbox", json!({ "kind": "chat", "id": "c", "cursor": cursor })).await;
        for message in polled["messages"].as_array().unwrap() {
            let mut text = message["text"].as_str().unwrap().to_owned();
            let mut rest = message.get("rest").cloned();
            while let Some(at) = rest {
                let arguments = json!({ "kind": "chat", "id": "c", "cursor": at["cursor"], "textOffset": at["textOffset"] });
                let polled = stage.call("poll_inbox", arguments).await;
                text.push_str(texts(&polled)[0]);
                rest = polled["messages"][0].get("rest").cloned();
            }
            read.push(text);
        }
        cursor = polled["nextCursor"].clone();
    }
    assert!(read == kept);
}

#[tokio::test(start_paused = true)]
async fn a_poll_waits_for_a_message_and_no_longer_than_it_was_told() {
    let stage = Stage::free(&[]);
    let poll = json!({ "kind": "chat", "id": "c", "waitMs": 45_000 });
    let begun = tokio::time::Instant::now();
    let none = stage.call("poll_inbox", json!({ "kind": "chat", "id": "c", "waitMs": 1_500 })).await;
    assert_eq!((texts(&none), begun.elapsed().as_millis() / 100), (vec![], 15));
    let writing = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        stage.call("send_message", json!({ "to_kind": "chat", "to_id": "c", "text": "here" })).await
    };
    let begun = tokio::time::Instant::now();
    // The stage gives a call twenty seconds.
    let (polled, _) = tokio::join!(stage.call("poll_inbox", poll), writing);
    assert_eq!(texts(&polled), ["here"]);
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_leave_room_for_those_that_do_not() {
    let stage = Stage::free(&[("a", "x")]);
    let run = stage.start("x").await;
    let poll = |wait_ms: u64| {
        let arguments = json!({ "kind": "chat", "id": "c", "waitMs": wait_ms });
        stage.tools.call(stage.call_of("poll_inbox", arguments, Progress::none()))
    };
    let mut waiting: FuturesUnordered<_> = (0..128).map(|_| poll(45_000)).collect();
    let begun = tokio::time::Instant::now();
    let others = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let refused = stage.call("poll_inbox", json!({ "kind": "chat", "id": "c", "waitMs": 45_000 })).await;
        let inspected = stage.call("inspect_run", json!({ "runId": run, "waitMs": 45_000 })).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(1), "neither has waited");
        for answer in [&refused, &inspected] {
            assert!(answer["note"].as_str().unwrap().contains("128 calls wait already"), "{answer}");
        }
        assert_eq!((texts(&refused), &inspected["state"]), (vec![], &json!("running")));
        stage.call("send_message", json!({ "to_kind": "chat", "to_id": "c", "text": "here" })).await
    };
    let all = async { while waiting.next().await.is_some() {} };
    let ((), sent) = tokio::join!(all, others);
    assert_eq!(sent["ok"], true);
    assert!(begun.elapsed() < Duration::from_secs(5), "the message ended all the waits");
    let again = stage.call("poll_inbox", json!({ "kind": "chat", "id": "d", "waitMs": 500 })).await;
    assert_eq!(again.get("note"), None, "there is room again");
}

#[tokio::test(start_paused = true)]
async fn a_cursor_beyond_the_end_is_told_and_waits_for_nothing() {
    let stage = Stage::free(&[]);
    stage.call("send_message", json!({ "to_kind": "chat", "to_id": "c", "text": "one" })).await;
    let begun = tokio::time::Instant::now();
    let beyond =
        stage.call("poll_inbox", json!({ "kind": "chat", "id": "c", "cursor": 5, "waitMs": 15_000 })).await;
    assert!(begun.elapsed().is_zero());
    assert_eq!((texts(&beyond), &beyond["nextCursor"], &beyond["last"]), (vec![], &json!(1), &json!(1)));
    let note = beyond["note"].as_str().unwrap();
    assert!(note.contains("cursor 5 is beyond the last message, 1") && note.contains("cursor 0"), "{note}");
    let end = stage.call("poll_inbox", json!({ "kind": "chat", "id": "c", "cursor": 1 })).await;
    assert_eq!(end.get("note"), None);
}

#[tokio::test]
async fn a_text_does_not_go_on_in_another_message() {
    let stage = Stage::free(&[]);
    stage.call("send_message", json!({ "to_kind": "chat", "to_id": "c", "text": "one" })).await;
    let at = |cursor: u64, offset: u64| json!({ "kind": "chat", "id": "c", "cursor": cursor, "textOffset": offset });
    assert_eq!(texts(&stage.call("poll_inbox", at(0, 1)).await), ["ne"]);
    let error = stage.refused("poll_inbox", at(1, 1)).await;
    assert!(error.contains("`textOffset`: message 2 is not in the mailbox any more"), "{error}");
    assert_eq!(
        texts(&stage.call("poll_inbox", at(1, 0)).await),
        Vec::<&str>::new(),
        "0 is as if it were left out"
    );
}

#[tokio::test]
async fn a_sender_sees_who_has_read() {
    let stage = Stage::free(&[]);
    for text in ["one", "two"] {
        stage.call("send_message", json!({ "to_kind": "chat", "to_id": "c", "text": text })).await;
    }
    let mailbox = cyberine_bus::Address::new(AddressKind::Chat, "c").unwrap();
    stage.bus.acknowledge(mailbox, "ada".into(), 1).await.unwrap();
    let polled = stage.call("poll_inbox", json!({ "kind": "chat", "id": "c" })).await;
    assert_eq!(polled["readers"], json!([{ "reader": "ada", "through": 1, "unread": 1 }]));
}

#[tokio::test]
async fn a_poll_acknowledges_what_the_caller_has_read_and_still_gives_it() {
    let stage = Stage::free(&[]);
    let acknowledge =
        |seq: u64| stage.call("poll_inbox", json!({ "kind": "chat", "id": "c", "ackSeq": seq }));
    let empty = acknowledge(3).await;
    assert_eq!((texts(&empty), empty.get("readers")), (vec![], None), "there is nothing to have read");
    for text in ["one", "two", "three"] {
        let ask = json!({ "to_kind": "chat", "to_id": "c", "text": text, "ackRequired": true });
        stage.call("send_message", ask).await;
    }
    // Never back, and never beyond what is there.
    for (seq, through) in [(2, 2), (1, 2), (2, 2), (99, 3)] {
        let polled = acknowledge(seq).await;
        assert_eq!(texts(&polled), ["one", "two", "three"], "{seq}");
        let read = json!([{ "reader": "host@1.2", "through": through, "unread": 3 - through }]);
        assert_eq!(polled["readers"], read, "{seq}");
    }
    let mailbox = cyberine_bus::Address::new(AddressKind::Chat, "c").unwrap();
    for at in 0..30 {
        stage.bus.acknowledge(mailbox.clone(), format!("a{at}"), 1).await.unwrap();
    }
    let polled = stage.call("poll_inbox", json!({ "kind": "chat", "id": "c", "cursor": 3 })).await;
    let readers = polled["readers"].as_array().unwrap();
    assert_eq!((readers.len(), &readers[0]["reader"]), (20, &json!("host@1.2")), "the caller is among them");
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_does_not_wait_for_the_mail_its_poll_waits_for() {
    let stage = Stage::free(&[]);
    stage.call("send_message", json!({ "to_kind": "chat", "to_id": "c", "text": "one" })).await;
    let poll = json!({ "kind": "chat", "id": "c", "cursor": 1, "ackSeq": 1, "waitMs": 5_000 });
    let mailbox = cyberine_bus::Address::new(AddressKind::Chat, "c").unwrap();
    let looking = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stage.bus.readers(mailbox).await.unwrap()
    };
    let (polled, readers) = tokio::join!(stage.call("poll_inbox", poll), looking);
    assert_eq!((readers.len(), readers[0].through), (1, 1));
    assert_eq!((texts(&polled), &polled["readers"][0]["through"]), (vec![], &json!(1)));
}

#[tokio::test]
async fn without_a_bus_nothing_is_sent_or_read_and_both_say_so() {
    let stage = Stage::set(Setting::on(Arc::new(NoBus)), &[("a", "x")], Billing::Free);
    let id = stage.finished("x").await;
    let sends = [
        ("send_message", json!({ "to_kind": "chat", "to_id": "c", "text": "x" })),
        ("send_message", json!({ "to_kind": "run", "to_id": id, "text": "x" })),
        ("send_to_team", json!({ "team": "red", "text": "x" })),
        ("send_to_role", json!({ "role": "reviewer", "text": "x" })),
    ];
    for (tool, arguments) in sends {
        let result = stage.call(tool, arguments).await;
        assert_eq!(result["ok"], false, "{tool}: {result}");
        assert!(result["reason"].as_str().unwrap().contains("CYBERINE_BUS_BACKEND=none"), "{tool}: {result}");
    }
    let polls = [
        json!({ "kind": "run", "id": id, "waitMs": 45_000 }),
        json!({ "kind": "run", "id": id, "ackSeq": 1 }),
    ];
    for poll in polls {
        let polled = stage.call("poll_inbox", poll).await;
        assert_eq!((&polled["ok"], &polled["messages"]), (&json!(false), &json!([])));
        assert!(polled["reason"].as_str().unwrap().contains("switched off"));
    }
}

#[tokio::test]
async fn a_human_is_shown_as_one_where_a_human_wrote() {
    let stage = Stage::free(&[]);
    let message = Outgoing {
        id: MessageId::random(),
        again: None,
        to: cyberine_bus::Address::new(AddressKind::Chat, "c").unwrap(),
        from: From { kind: FromKind::Human, id: "ada".into() },
        sender: Sender::new(&Principal::local("ada"), Channel::Cli, InstanceId::random()),
        topic: Topic::Note,
        text: "hello".into(),
        thread: None,
        reply_to: None,
        importance: cyberine_bus::Importance::Normal,
        ack_required: false,
    };
    stage.bus.publish(message, Durability::Durable).await.unwrap();
    let polled = stage.call("poll_inbox", json!({ "kind": "chat", "id": "c" })).await;
    let message = &polled["messages"][0];
    assert_eq!((&message["from"]["kind"], &message["sender"]["channel"]), (&json!("human"), &json!("cli")));
}
