//! `send_message`, `send_to_team`, `send_to_role`: words into mailboxes.
//!
//! A message lies in its mailbox whether or not anybody is there to read it. `delivered` says
//! that somebody was when it was sent: an address that is announced by a live process, a team
//! with a live member, a run that is not over. Whether it has been read, the readers of the
//! mailbox say (`poll_inbox`).

use std::collections::BTreeSet;

use cyberine_bus::{Address, AddressKind, BusError, Durability, From, FromKind, Outgoing, Receipt};
use cyberine_orchestrator::Plan;
use cyberine_presence::{Member, matching};
use cyberine_server::ToolResult;
use cyberine_types::{Principal, RunId};
use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::{Value, json};

use crate::arguments::{Letter, SendMessage, SendToRole, SendToTeam};
use crate::bounded::{MAX_RESULT, cut, size};
use crate::once::Draft;
use crate::services::{Services, no_such_run};

/// How many mailboxes are written to at once.
const AT_ONCE: usize = 16;
/// What a result takes beside the sends it lists.
const FRAME: usize = 512;
/// How many characters of a reason are told.
const REASON: usize = 400;

/// A caller that writes, and the work it writes for.
pub(crate) struct Writer<'a> {
    pub(crate) services: &'a Services,
    /// The client, as it calls itself.
    pub(crate) by: String,
    /// On whose authority.
    pub(crate) principal: &'a Principal,
    pub(crate) draft: &'a Draft,
}

/// A message that was not sent.
enum Failure {
    /// There is no bus: an answer, not an error.
    Off(String),
    /// The argument or the mailbox cannot be used.
    Refused(String),
}

/// Who is there to read a message.
enum Audience {
    /// Somebody.
    Somebody,
    /// Nobody, and why it is kept all the same.
    Nobody(String),
    /// There is no such mailbox: nothing is to be sent.
    Absent(String),
}

impl Writer<'_> {
    /// Sends to one address.
    pub(crate) async fn send_message(&self, arguments: SendMessage) -> Result<ToolResult, String> {
        let SendMessage { to, letter } = arguments;
        let audience = self.services.audience(&to).await?;
        if let Audience::Absent(reason) = audience {
            return Ok(not_sent(reason));
        }
        let receipt = self.publish(to, &letter).await;
        result(receipt, audience)
    }

    /// Sends to the mailbox of a team.
    pub(crate) async fn send_to_team(&self, arguments: SendToTeam) -> Result<ToolResult, String> {
        let SendToTeam { team, to, letter } = arguments;
        let members = self.services.known_roster().await;
        let audience = match matching(&members, Some(&team), None, None).is_empty() {
            false => Audience::Somebody,
            true => Audience::Nobody("nobody of the team is live; the message is kept".to_owned()),
        };
        let receipt = self.publish(to, &letter).await;
        result(receipt, audience)
    }

    /// Sends to every live address that matches, and tells of each.
    pub(crate) async fn send_to_role(&self, arguments: SendToRole) -> Result<ToolResult, String> {
        if let Some(reason) = self.services.bus_is_off().await {
            return Ok(not_sent(reason));
        }
        let SendToRole { team, role, name, letter } = arguments;
        let matched = self.services.matched(&team, &role, &name).await?;
        if matched.is_empty() {
            return Ok(not_sent("nobody live matches; `list_team` shows who is there".to_owned()));
        }
        let sends = stream::iter(matched).map(|(kind, id)| self.send_to(kind, id, &letter));
        let sends: Vec<Value> = sends.buffered(AT_ONCE).collect().await;
        Ok(ToolResult::ok(summary(sends)))
    }

    async fn send_to(&self, kind: String, id: String, letter: &Letter) -> Value {
        let to = json!({ "kind": kind, "id": cut(&id, REASON) });
        let receipt = match address(&kind, &id) {
            Ok(to) => self.publish(to, letter).await,
            Err(reason) => Err(Failure::Refused(reason)),
        };
        match receipt {
            Ok(Receipt { id, seq, .. }) => json!({ "to": to, "ok": true, "messageId": id, "seq": seq }),
            Err(Failure::Off(reason) | Failure::Refused(reason)) => {
                json!({ "to": to, "ok": false, "reason": cut(&reason, REASON) })
            }
        }
    }

    async fn publish(&self, to: Address, letter: &Letter) -> Result<Receipt, Failure> {
        let Letter { text, topic, thread, reply_to, importance, ack_required } = letter;
        let message = Outgoing {
            id: self.draft.message(&to).map_err(Failure::Refused)?,
            again: self.draft.again(&to),
            to,
            from: From { kind: FromKind::Mcp, id: self.by.clone() },
            sender: self.services.sender.for_principal(self.principal),
            topic: *topic,
            text: text.clone(),
            thread: thread.clone(),
            reply_to: *reply_to,
            importance: *importance,
            ack_required: *ack_required,
        };
        let receipt = self.services.bus.publish(message, Durability::Durable).await;
        receipt.map_err(|error| match error {
            BusError::Off => Failure::Off(error.to_string()),
            BusError::TooLong { .. } => {
                Failure::Refused(format!("bad arguments: `text`: {error}. {}", error.advice()))
            }
            error => Failure::Refused(format!("the message was not acknowledged: {}", told(&error))),
        })
    }
}

/// An error of the bus, its causes and what to do.
pub(crate) fn told(error: &BusError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    format!("{text}. {}", error.advice())
}

fn address(kind: &str, id: &str) -> Result<Address, String> {
    let known = AddressKind::ALL.into_iter().find(|known| known.name() == kind);
    let kind = known.ok_or_else(|| format!("`{}` is no kind of address", cut(kind, 40)))?;
    Address::new(kind, id).map_err(|error| error.to_string())
}

fn not_sent(reason: String) -> ToolResult {
    ToolResult::ok(json!({ "ok": false, "reason": reason }))
}

fn result(receipt: Result<Receipt, Failure>, audience: Audience) -> Result<ToolResult, String> {
    let Receipt { id, seq, .. } = match receipt {
        Ok(receipt) => receipt,
        Err(Failure::Off(reason)) => return Ok(not_sent(reason)),
        Err(Failure::Refused(error)) => return Err(error),
    };
    let mut sent = json!({ "ok": true, "messageId": id, "seq": seq, "delivered": true });
    if let Audience::Nobody(note) | Audience::Absent(note) = audience {
        sent["delivered"] = json!(false);
        sent["note"] = json!(note);
    }
    Ok(ToolResult::ok(sent))
}

/// What became of sends to several addresses: those that failed first, as many as fit.
fn summary(mut sends: Vec<Value>) -> Value {
    let matched = sends.len();
    let failed = |send: &Value| send["ok"] == json!(false);
    sends.sort_by_key(|send| !failed(send));
    let failures = sends.iter().filter(|send| failed(send)).count();
    let mut result = json!({
        "ok": failures == 0,
        "delivered": failures < matched,
        "matched": matched,
    });
    if failures > 0 {
        result["reason"] = json!(format!("{failures} of {matched} were not sent; `sends` says why"));
    }
    if let ([only], 0) = (sends.as_slice(), failures) {
        result["messageId"] = only["messageId"].clone();
        result["seq"] = only["seq"].clone();
    }
    let mut left = MAX_RESULT - FRAME;
    let shown = sends.iter().take_while(|send| {
        let needed = size(send) + 1;
        let fits = needed <= left;
        left = left.saturating_sub(needed);
        fits
    });
    let shown: Vec<Value> = shown.cloned().collect();
    if shown.len() < matched {
        result["truncated"] = json!(true);
    }
    result["sends"] = json!(shown);
    result
}

impl Services {
    /// The live members.
    pub(crate) async fn roster(&self) -> Result<Vec<Member>, String> {
        self.presence.roster().await.map_err(|error| {
            let cause = std::error::Error::source(&error);
            let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
            format!("{error}{cause}. Run `cyberine doctor`, then try again.")
        })
    }

    /// The live members as far as they can be told; a message is sent whether or not.
    async fn known_roster(&self) -> Vec<Member> {
        self.roster().await.unwrap_or_else(|error| {
            tracing::warn!("{error}");
            Vec::new()
        })
    }

    /// The addresses, each as its kind and its id, of the live members that match.
    async fn matched(
        &self,
        team: &Option<String>,
        role: &Option<String>,
        name: &Option<String>,
    ) -> Result<BTreeSet<(String, String)>, String> {
        let members = self.roster().await?;
        let matched = matching(&members, team.as_deref(), role.as_deref(), name.as_deref());
        let addresses = matched.into_iter().map(|member| &member.record.addr);
        Ok(addresses.map(|addr| (addr.kind.clone(), addr.id.clone())).collect())
    }

    /// The mailboxes that a message to a role goes to, as far as they can be told.
    pub(crate) async fn mailboxes_of(&self, to: &SendToRole) -> Vec<Address> {
        let matched = self.matched(&to.team, &to.role, &to.name).await.unwrap_or_default();
        matched.iter().filter_map(|(kind, id)| address(kind, id).ok()).collect()
    }

    /// Why there is no bus, where there is none.
    async fn bus_is_off(&self) -> Option<String> {
        let own = Address::new(AddressKind::Mcp, self.sender.instance_id.to_string()).ok()?;
        match self.bus.readers(own).await {
            Err(error @ BusError::Off) => Some(error.to_string()),
            _ => None,
        }
    }

    async fn audience(&self, to: &Address) -> Result<Audience, String> {
        let run = match to.kind() {
            AddressKind::Run => Some(to.id()),
            AddressKind::Worker => to.id().split('/').next(),
            AddressKind::Chat | AddressKind::Mcp | AddressKind::Broadcast => None,
        };
        if let Some(id) = run.and_then(|id| id.parse::<RunId>().ok()) {
            let Some(run) = self.look(id).await? else { return Ok(Audience::Absent(no_such_run(id))) };
            if run.state.is_terminal() {
                let state = run.state.name();
                return Ok(Audience::Nobody(format!(
                    "the run is over ({state}): the message is kept, and nothing acts on it"
                )));
            }
            let Some((_, candidate)) = to.id().split_once('/') else { return Ok(Audience::Somebody) };
            let plan = Plan::from_spec(&run.spec).ok();
            let known = plan.is_none_or(|plan| plan.candidates.iter().any(|one| one.name == candidate));
            return Ok(if known {
                Audience::Somebody
            } else {
                Audience::Absent(format!("run `{id}` has no candidate `{}`", cut(candidate, REASON)))
            });
        }
        let members = self.known_roster().await;
        let announced = members.iter().any(|member| {
            let addr = &member.record.addr;
            addr.kind == to.kind().name() && addr.id == to.id()
        });
        Ok(if announced {
            Audience::Somebody
        } else {
            Audience::Nobody("nobody live is announced at this address; the message is kept".to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_first_and_the_rest_as_far_as_it_fits() {
        let send = |at: usize, ok: bool| json!({ "to": { "kind": "chat", "id": format!("{at}{}", "\"".repeat(300)) }, "ok": ok });
        let told = summary((0..200).map(|at| send(at, at != 150)).collect());
        assert!(size(&told) <= MAX_RESULT, "{}", size(&told));
        assert_eq!(
            (&told["ok"], &told["delivered"], &told["matched"]),
            (&json!(false), &json!(true), &json!(200))
        );
        assert_eq!((&told["truncated"], &told["sends"][0]["ok"]), (&json!(true), &json!(false)));
        assert!(told["reason"].as_str().unwrap().starts_with("1 of 200"));
        let all_failed = summary(vec![send(1, false)]);
        assert_eq!((&all_failed["ok"], &all_failed["delivered"]), (&json!(false), &json!(false)));
        let one = summary(vec![json!({ "to": {}, "ok": true, "messageId": "m", "seq": 3 })]);
        assert_eq!((&one["ok"], &one["messageId"], &one["seq"]), (&json!(true), &json!("m"), &json!(3)));
        assert_eq!(one.get("truncated"), None);
    }

    #[test]
    fn what_a_record_calls_an_address_may_be_none() {
        assert_eq!(address("chat", "x"), Ok(Address::new(AddressKind::Chat, "x").unwrap()));
        assert!(address("shell", "x").unwrap_err().contains("`shell`"));
        assert!(address("chat", "a\nb").unwrap_err().contains("U+000A"));
    }
}
