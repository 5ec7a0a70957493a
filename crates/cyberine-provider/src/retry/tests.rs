//! Turns that are taken again, in time that passes when everybody waits.

use std::collections::VecDeque;
use std::sync::Mutex;

use cyberine_types::{Billing, Clock, Usage};
use futures_util::future::join_all;
use futures_util::stream;

use super::*;
use crate::gate::MemoryGate;
use crate::port::{Limits, Message, Role};

/// The wall clock of a time that tests hold.
struct TestClock(Instant);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(1_000_000_000_000 + i64::try_from(self.0.elapsed().as_millis()).unwrap())
    }
}

/// What a fake does when it is asked: its events, each after a while, and its end.
type Play = Vec<(u64, Result<TurnEvent, TurnError>)>;

/// Plays its parts in turn, the last one for ever, and notes when it was asked.
struct Fake {
    info: ProviderInfo,
    plays: Mutex<VecDeque<Play>>,
    begun: Instant,
    asked: Mutex<Vec<Duration>>,
}

impl Fake {
    fn new(plays: Vec<Play>) -> Arc<Self> {
        let info =
            ProviderInfo { name: "f".into(), kind: "openai".into(), model: None, billing: Billing::Free };
        Arc::new(Self {
            info,
            plays: Mutex::new(plays.into()),
            begun: Instant::now(),
            asked: Mutex::default(),
        })
    }

    /// When it was asked, in milliseconds.
    fn asked(&self) -> Vec<u128> {
        self.asked.lock().unwrap().iter().map(Duration::as_millis).collect()
    }
}

impl Provider for Fake {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn turn(
        &self,
        _turn: Turn,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<TurnEvent, TurnError>> {
        self.asked.lock().unwrap().push(self.begun.elapsed());
        let mut plays = self.plays.lock().unwrap();
        let play = if plays.len() > 1 { plays.pop_front().unwrap() } else { plays[0].clone() };
        let events = stream::iter(play).then(move |(ms, event)| {
            let cancel = cancel.clone();
            async move {
                let slept = cancel.run_until_cancelled(tokio::time::sleep(Duration::from_millis(ms))).await;
                if slept.is_none() { Err(TurnError::Cancelled) } else { event }
            }
        });
        events.boxed()
    }
}

fn says(text: &str) -> Play {
    vec![(0, Ok(TurnEvent::Text(text.to_owned()))), (0, Ok(TurnEvent::Stop(StopReason::EndTurn)))]
}

fn fails(error: TurnError) -> Play {
    vec![(0, Err(error))]
}

fn limited(seconds: u64) -> TurnError {
    TurnError::RateLimited { detail: "429".into(), retry_after: Some(Duration::from_secs(seconds)) }
}

fn overloaded() -> TurnError {
    TurnError::Overloaded { detail: "503".into(), retry_after: None }
}

fn cut() -> TurnError {
    TurnError::Cut { detail: "gone".into() }
}

fn gate() -> Arc<MemoryGate> {
    Arc::new(MemoryGate::new(Arc::new(TestClock(Instant::now())), None))
}

fn config(text: &str) -> ProviderConfig {
    serde_json::from_str(text).unwrap()
}

fn service() -> ProviderConfig {
    config(r#"{"kind":"openai","base_url":"https://h/v1","model":"m"}"#)
}

/// The provider behind `gate`, with chance held at `dice`.
fn behind(fake: &Arc<Fake>, config: &ProviderConfig, gate: Arc<dyn AccountGate>, dice: f64) -> Retrying {
    let inner: Arc<dyn Provider> = Arc::clone(fake) as _;
    Retrying::new(inner, config, 3, gate, Arc::new(move || dice))
}

fn turn(wall: u64) -> Turn {
    Turn {
        messages: vec![Message::new(Role::User, "q")],
        tools: Vec::new(),
        output_schema: None,
        limits: Limits { wall: Duration::from_secs(wall), ..Limits::default() },
        cwd: "/".into(),
        mark: "m".into(),
    }
}

async fn all(
    provider: &dyn Provider,
    wall: u64,
    cancel: CancellationToken,
) -> (Vec<TurnEvent>, Result<StopReason, TurnError>) {
    let mut stream = provider.turn(turn(wall), cancel);
    let mut events = Vec::new();
    while let Some(next) = stream.next().await {
        match next {
            Ok(TurnEvent::Stop(stop)) => return (events, Ok(stop)),
            Ok(event) => events.push(event),
            Err(error) => return (events, Err(error)),
        }
    }
    panic!("a stream without an end")
}

/// Takes a turn of a service that plays `plays`: its events, its end, and when it was asked.
async fn played(plays: Vec<Play>) -> (Vec<TurnEvent>, Result<StopReason, TurnError>, Vec<u128>) {
    let fake = Fake::new(plays);
    let provider = behind(&fake, &service(), gate(), 0.0);
    let (events, end) = all(&provider, 3_600, CancellationToken::new()).await;
    (events, end, fake.asked())
}

#[tokio::test(start_paused = true)]
async fn told_to_wait_it_waits_and_says_so_and_asks_once_more() {
    let (events, end, asked) = played(vec![fails(limited(5)), says("ok")]).await;
    assert_eq!((end, asked), (Ok(StopReason::EndTurn), vec![0, 5_000]));
    match events.as_slice() {
        [TurnEvent::Waiting { wait, reason }, TurnEvent::Text(text)] => {
            assert_eq!((wait.as_secs(), text.as_str()), (5, "ok"));
            assert_eq!(reason, "the provider limits the rate of requests: 429; it asks to wait 5 s");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_down_twice_is_asked_after_one_second_and_after_two_more() {
    let (_, end, asked) = played(vec![fails(overloaded()), fails(overloaded()), says("ok")]).await;
    assert_eq!((end, asked), (Ok(StopReason::EndTurn), vec![0, 1_000, 3_000]));
    let gone = TurnError::Unreachable { target: "h".into(), detail: "refused".into() };
    let (events, end, asked) = played(vec![fails(gone.clone()), fails(cut()), says("ok")]).await;
    assert_eq!((end, asked), (Ok(StopReason::EndTurn), vec![0, 1_000, 3_000]));
    let waits = events.iter().filter(|event| matches!(event, TurnEvent::Waiting { .. }));
    assert_eq!(waits.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn after_the_last_try_the_failure_is_told() {
    let (_, end, asked) = played(vec![fails(overloaded())]).await;
    assert_eq!((end, asked), (Err(overloaded()), vec![0, 1_000, 3_000, 7_000]));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_get_better_is_not_asked_again() {
    for error in [
        TurnError::Auth { detail: "401".into() },
        TurnError::Billing { detail: "402".into() },
        TurnError::Rejected { detail: "400".into() },
        TurnError::Refused { detail: "no".into() },
        TurnError::Empty,
    ] {
        let (events, end, asked) = played(vec![fails(error.clone()), says("ok")]).await;
        assert_eq!((events, end, asked), (vec![], Err(error), vec![0]));
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_begun_is_not_begun_again() {
    let call = crate::port::ToolCall {
        id: "1".into(),
        name: "t".into(),
        arguments: serde_json::Value::Null,
        signature: None,
    };
    for begun in [
        TurnEvent::Text("half".into()),
        TurnEvent::ToolCall(call),
        TurnEvent::Usage(Usage { input: 3, ..Usage::default() }),
    ] {
        for error in [cut(), limited(1), overloaded()] {
            let play = vec![(0, Ok(begun.clone())), (0, Err(error.clone()))];
            let (events, end, asked) = played(vec![play, says("ok")]).await;
            assert_eq!((events, end, asked), (vec![begun.clone()], Err(error), vec![0]));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_is_started_once_more_at_most() {
    let fake = Fake::new(vec![fails(overloaded())]);
    let provider = behind(&fake, &config(r#"{"kind":"claude-cli"}"#), gate(), 0.0);
    let (_, end) = all(&provider, 3_600, CancellationToken::new()).await;
    assert_eq!((end, fake.asked()), (Err(overloaded()), vec![0, 1_000]));
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_turns_time_fails_at_once_and_says_when_and_the_next_turn_does_not_ask() {
    let (fake, gate) = (Fake::new(vec![fails(limited(120)), says("ok")]), gate());
    let provider = behind(&fake, &service(), gate, 0.0);
    let (_, end) = all(&provider, 60, CancellationToken::new()).await;
    let said = end.unwrap_err();
    assert_eq!(said.code(), "rate-limit");
    assert!(said.to_string().contains("429; the account is asked again at "), "{said}");
    assert!(said.to_string().ends_with("and this turn has 60 s left; it asks to wait 120 s"), "{said}");
    let (_, end) = all(&provider, 60, CancellationToken::new()).await;
    let said = end.unwrap_err();
    assert_eq!(said.code(), "rate-limit");
    assert!(said.to_string().contains("an earlier turn of this account was told: "), "{said}");
    assert_eq!(fake.asked(), [0]);
    let (_, end) = all(&provider, 200, CancellationToken::new()).await;
    assert_eq!((end, fake.asked()), (Ok(StopReason::EndTurn), vec![0, 120_000]));
}

#[tokio::test(start_paused = true)]
async fn waiting_and_asking_again_share_the_time_of_one_turn() {
    let slow = vec![(60_000, Ok(TurnEvent::Text("late".into())))];
    let fake = Fake::new(vec![fails(limited(20)), slow]);
    let provider = behind(&fake, &service(), gate(), 0.0);
    let begun = Instant::now();
    let (_, end) = all(&provider, 30, CancellationToken::new()).await;
    assert_eq!(end, Err(TurnError::WallTimeout { limit: Duration::from_secs(30) }));
    assert_eq!((begun.elapsed().as_secs(), fake.asked()), (30, vec![0, 20_000]));
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_every_wait_at_once() {
    for plays in [vec![fails(limited(500))], vec![fails(cut())]] {
        let fake = Fake::new(plays);
        let provider = behind(&fake, &service(), gate(), 0.0);
        let (begun, cancel) = (Instant::now(), CancellationToken::new());
        let cancelling = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            cancel.cancel();
        };
        let ((_, end), ()) = tokio::join!(all(&provider, 3_600, cancel.clone()), cancelling);
        assert_eq!((end, begun.elapsed().as_millis()), (Err(TurnError::Cancelled), 300));
    }
}

/// A fake that refuses until `open` and answers then, asked by 16 turns at once. Chance is a row of
/// numbers that lie apart.
async fn crowd(first: Vec<Play>) -> (Vec<u128>, usize) {
    let (fake, gate) = (Fake::new(first), gate());
    let count = std::sync::atomic::AtomicU32::new(0);
    let dice: Dice =
        Arc::new(move || f64::from(count.fetch_add(7, std::sync::atomic::Ordering::SeqCst) % 16) / 16.0);
    let inner: Arc<dyn Provider> = Arc::clone(&fake) as _;
    let provider = Retrying::new(inner, &service(), 3, gate, dice);
    let ends = join_all((0..16).map(|_| all(&provider, 3_600, CancellationToken::new()))).await;
    (fake.asked(), ends.iter().filter(|(_, end)| end.is_ok()).count())
}

#[tokio::test(start_paused = true)]
async fn when_one_is_told_to_wait_all_wait_then_one_tries_and_the_rest_come_one_by_one() {
    // All 16 ask at once, and the first is told to wait 10 s; so are the others, which asked before
    // they could know.
    let mut plays = vec![vec![(100, Err(limited(10)))]; 16];
    plays
        .push(vec![(2_000, Ok(TurnEvent::Text("ok".into()))), (0, Ok(TurnEvent::Stop(StopReason::EndTurn)))]);
    let (asked, answered) = crowd(plays).await;
    assert_eq!((answered, asked.len()), (16, 32));
    let (before, after) = asked.split_at(16);
    assert!(before.iter().all(|at| *at == 0));
    assert!(after[0] >= 10_100, "nobody asks before the time is over: {after:?}");
    assert!(after[1] >= after[0] + 2_000, "the rest wait how the first fares: {after:?}");
    let mut moments = after[1..].to_vec();
    moments.dedup();
    assert!(moments.len() > 5, "they do not come at one moment: {after:?}");
}

#[tokio::test(start_paused = true)]
async fn a_first_turn_that_is_refused_again_keeps_the_others_away() {
    let mut plays = vec![vec![(100, Err(limited(10)))]; 17];
    plays.push(says("ok"));
    let (asked, answered) = crowd(plays).await;
    assert_eq!((answered, asked.len()), (16, 33));
    assert!(asked[17] >= asked[16] + 10_000, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_comes_later_waits_for_what_an_earlier_one_was_told() {
    let (fake, gate) = (Fake::new(vec![fails(limited(30)), says("ok")]), gate());
    let first = behind(&fake, &service(), gate.clone(), 0.0);
    let second = behind(&fake, &service(), gate, 0.0);
    let later = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        all(&second, 3_600, CancellationToken::new()).await
    };
    let (_, (events, end)) = tokio::join!(all(&first, 3_600, CancellationToken::new()), later);
    assert_eq!(end, Ok(StopReason::EndTurn));
    assert!(matches!(&events[0], TurnEvent::Waiting { wait, .. } if wait.as_secs() == 20), "{events:?}");
    assert!(fake.asked()[1..].iter().all(|at| *at >= 30_000), "{:?}", fake.asked());
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_fails_otherwise_lets_the_others_in() {
    let (fake, gate) = (Fake::new(vec![fails(limited(5)), fails(TurnError::Empty), says("ok")]), gate());
    let provider = behind(&fake, &service(), gate.clone(), 0.0);
    let (_, end) = all(&provider, 3_600, CancellationToken::new()).await;
    assert_eq!(end, Err(TurnError::Empty));
    assert_eq!(gate.enter(1).await, Ok(Entry::Open));
}

#[tokio::test(start_paused = true)]
async fn only_so_many_run_at_once_and_the_others_come_when_there_is_a_place() {
    let slow =
        vec![(10_000, Ok(TurnEvent::Text("ok".into()))), (0, Ok(TurnEvent::Stop(StopReason::EndTurn)))];
    let fake = Fake::new(vec![slow]);
    let gate = Arc::new(MemoryGate::new(Arc::new(TestClock(Instant::now())), Some(2)));
    let provider = behind(&fake, &service(), gate, 0.5);
    let ends = join_all((0..5).map(|_| all(&provider, 3_600, CancellationToken::new()))).await;
    assert!(ends.iter().all(|(_, end)| end.is_ok()));
    let asked: Vec<u128> = fake.asked().iter().map(|at| at / 1_000).collect();
    assert_eq!(asked, [0, 0, 10, 10, 20]);
}

/// A gate that does not work.
struct Broken;

fn broken<T: Send + 'static>() -> BoxFuture<'static, Result<T, GateError>> {
    Box::pin(std::future::ready(Err(GateError { detail: "no disk".into() })))
}

impl AccountGate for Broken {
    fn enter(&self, _turn: u64) -> BoxFuture<'_, Result<Entry, GateError>> {
        broken()
    }

    fn close(&self, _turn: u64, _wait: Duration, _reason: String) -> BoxFuture<'_, Result<(), GateError>> {
        broken()
    }

    fn leave(&self, _turn: u64, _let_in: bool) -> BoxFuture<'_, Result<(), GateError>> {
        broken()
    }

    fn place(&self) -> BoxFuture<'_, Result<Option<Place>, GateError>> {
        broken()
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_does_not_work_keeps_nobody_away_and_the_wait_is_kept_all_the_same() {
    let fake = Fake::new(vec![fails(limited(5)), says("ok")]);
    let provider = behind(&fake, &service(), Arc::new(Broken), 1.0);
    let (_, end) = all(&provider, 3_600, CancellationToken::new()).await;
    assert_eq!((end, fake.asked()), (Ok(StopReason::EndTurn), vec![0, 6_000]));
}
