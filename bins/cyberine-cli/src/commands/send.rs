//! `cyberine send`.

use std::collections::BTreeSet;

use cyberine_app::{Exit, Problem, Workplace};
use cyberine_bus::{Address, AddressKind, Durability, Importance, MAX_TEXT_BYTES, Outgoing, Topic};
use cyberine_presence::{Member, matching};
use cyberine_run_store::Run;
use cyberine_types::{MessageId, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{self, Send};
use crate::out::{Out, Style};
use crate::plain::escaped;
use crate::target::{Target, spelled};
use crate::{human, input, mail};

/// A message that is in its mailbox.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    to: Address,
    ok: bool,
    message_id: MessageId,
    seq: u64,
    sent_at: Timestamp,
    /// How many processes are live there: of a run, its runner. Unset where nobody can know, as with
    /// a broadcast.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<usize>,
    /// Who will see it, in words.
    detail: String,
}

/// Sends one message, or one to everybody who has the role. It is durable when this says so.
pub(crate) async fn run(args: Send, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    let target = Target::parse(&args.to)?;
    if !matches!(target, Target::Role(_)) && (args.team.is_some() || args.name.is_some()) {
        return Err(Problem::new(
            Exit::Usage,
            "--team and --name choose among those with a role: send to role:ROLE",
        ));
    }
    let reply_to = args.reply_to.as_deref().map(message_id).transpose()?;
    let text = input::text(args.text.clone(), "the message", MAX_TEXT_BYTES)?;
    if text.is_empty() {
        return Err(Problem::new(Exit::Usage, "the message is empty: nothing was sent"));
    }
    let draft = Draft { args, reply_to, text };
    let sent = match target {
        Target::Role(role) => {
            let live = mail::roster(workplace).await?;
            draft.send_to_role(&role, &live, workplace).await?
        }
        other => {
            let (to, run) = mail::mailbox(workplace, other).await?;
            // Who is there changes nothing about a message: not to know it stops none.
            let live = mail::roster(workplace).await.inspect_err(|problem| out.note(problem)).ok();
            vec![draft.send(to, run.as_ref(), live.as_deref(), workplace).await?]
        }
    };
    tell(&sent, out);
    Ok(Exit::Done)
}

fn message_id(text: &str) -> Result<MessageId, Problem> {
    text.parse().map_err(|_| {
        Problem::new(
            Exit::Usage,
            format!("`{text}` is no message's id; `cyberine inbox … --json` shows them"),
        )
    })
}

fn tell(sent: &[Sent], out: &Out) {
    if out.is_json() {
        return out.json(&document(sent));
    }
    for one in sent {
        let to = out.paint(Style::Strong, escaped(&spelled(&one.to)));
        out.line(format_args!("sent to {to} as #{}, message {}", one.seq, one.message_id));
        out.line(format_args!("  {}", one.detail));
    }
}

/// What was sent, in the shape of the tools that send.
fn document(sent: &[Sent]) -> Value {
    let is_seen = |one: &Sent| one.live.is_none_or(|count| count > 0);
    let mut document = json!({
        "ok": true, "delivered": sent.iter().any(is_seen), "matched": sent.len(), "sends": sent,
    });
    if let [only] = sent {
        document["messageId"] = json!(only.message_id);
        document["seq"] = json!(only.seq);
    }
    document
}

/// A message that has no mailbox yet.
struct Draft {
    args: Send,
    reply_to: Option<MessageId>,
    text: String,
}

impl Draft {
    fn outgoing(&self, to: Address, workplace: &Workplace) -> Outgoing {
        let (from, sender) = human::identity(workplace);
        Outgoing {
            topic: if self.args.steer { Topic::Steer } else { Topic::Note },
            thread: self.args.thread.clone(),
            reply_to: self.reply_to,
            importance: match self.args.importance {
                args::Importance::Low => Importance::Low,
                args::Importance::Normal => Importance::Normal,
                args::Importance::High => Importance::High,
            },
            ack_required: self.args.ack,
            ..Outgoing::note(to, from, sender, self.text.clone())
        }
    }

    async fn send(
        &self,
        to: Address,
        run: Option<&Run>,
        live: Option<&[Member]>,
        workplace: &Workplace,
    ) -> Result<Sent, Problem> {
        let message = self.outgoing(to.clone(), workplace);
        let receipt = workplace.bus.publish(message, Durability::Durable).await.map_err(mail::problem)?;
        let there = match run {
            Some(run) if to.kind() == AddressKind::Run || run.state.is_terminal() => {
                Some(usize::from(!run.state.is_terminal()))
            }
            _ => live.and_then(|live| there(&to, live)),
        };
        let detail = self.detail(&to, run, there);
        Ok(Sent {
            to,
            ok: true,
            message_id: receipt.id,
            seq: receipt.seq,
            sent_at: receipt.sent_at,
            live: there,
            detail,
        })
    }

    /// Who will see it.
    fn detail(&self, to: &Address, run: Option<&Run>, there: Option<usize>) -> String {
        match (run, there) {
            (Some(run), _) if run.state.is_terminal() => format!(
                "That run is over ({}): the message is kept and can be read, but nobody will react to it.",
                run.state.name()
            ),
            (Some(run), _) if to.kind() == AddressKind::Run && self.args.steer => format!(
                "The run is {}: what reaches it before its answers are judged is put before the judges.",
                run.state.name()
            ),
            (Some(run), _) if to.kind() == AddressKind::Run => {
                format!(
                    "The run is {}. A note is kept for whoever reads; --steer would guide it.",
                    run.state.name()
                )
            }
            (_, Some(0)) => "Nobody live is there now: the message waits until somebody reads it.".to_owned(),
            (_, Some(1)) => "One process is live there.".to_owned(),
            (_, Some(count)) => format!("{count} processes are live there."),
            (_, None) => "Whoever reads that mailbox will see it.".to_owned(),
        }
    }

    /// One message to every address at which somebody live has the role.
    async fn send_to_role(
        &self,
        role: &str,
        live: &[Member],
        workplace: &Workplace,
    ) -> Result<Vec<Sent>, Problem> {
        let members = matching(live, self.args.team.as_deref(), Some(role), self.args.name.as_deref());
        let addresses: BTreeSet<Address> =
            members.into_iter().filter_map(|member| mail::address_of(&member.record.addr)).collect();
        if addresses.is_empty() {
            return Err(Problem::new(
                Exit::Unavailable,
                format!(
                    "nothing was sent: nobody live has the role `{role}` there; `cyberine team` shows who is there"
                ),
            ));
        }
        let mut sent = Vec::new();
        for to in &addresses {
            match self.send(to.clone(), None, Some(live), workplace).await {
                Ok(one) => sent.push(one),
                Err(problem) => {
                    let (done, all) = (sent.len(), addresses.len());
                    let message = format!("sent to {done} of {all}, then not to {}: {problem}", spelled(to));
                    return Err(Problem::new(problem.exit, message));
                }
            }
        }
        Ok(sent)
    }
}

/// How many processes are live at `to`; of a team, its members.
fn there(to: &Address, live: &[Member]) -> Option<usize> {
    if to.kind() != AddressKind::Broadcast {
        let at = |member: &&Member| mail::address_of(&member.record.addr).as_ref() == Some(to);
        return Some(live.iter().filter(at).count());
    }
    let team = to.id().strip_prefix("team-")?;
    Some(live.iter().filter(|member| member.record.team.as_deref() == Some(team)).count())
}
