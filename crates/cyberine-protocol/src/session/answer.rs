use super::effect::Answer;
use super::table::{Flight, Method};
use crate::jsonrpc::RpcError;
use crate::model::ClientCapabilities;

/// Whether this answer may go out to this request (2026-07-28, `basic/patterns/mrtr` and the
/// tasks extension: a server never sends what the client did not declare).
pub(super) fn admissible(flight: &Flight, answer: Answer) -> Result<Answer, RpcError> {
    let fits = match flight.method {
        Method::ListTools => matches!(answer, Answer::Tools(_)),
        Method::CallTool => matches!(answer, Answer::Call(_) | Answer::InputRequired(_) | Answer::Task(_)),
        Method::ListResources => matches!(answer, Answer::Resources(_)),
        Method::ListTemplates => matches!(answer, Answer::Templates(_)),
        Method::ReadResource => matches!(answer, Answer::Contents(_)),
        Method::Subscribe | Method::Unsubscribe => matches!(answer, Answer::Empty),
        Method::Listen => matches!(answer, Answer::ListenEnded),
    };
    if !fits {
        return Err(RpcError::internal("the server's answer does not fit the method"));
    }
    let required = match &answer {
        Answer::InputRequired(outcome) => {
            if outcome.requests.is_empty() && outcome.request_state.is_none() {
                return Err(RpcError::internal("the server asked for input without a question"));
            }
            let form = !outcome.requests.is_empty();
            Some(ClientCapabilities { elicitation_form: form, ..ClientCapabilities::default() })
        }
        Answer::Task(_) => Some(ClientCapabilities { tasks: true, ..ClientCapabilities::default() }),
        _ => None,
    };
    let Some(required) = required else { return Ok(answer) };
    if !flight.revision.is_stateless() {
        return Err(RpcError::internal("this revision of the protocol has no such answer"));
    }
    let has = flight.capabilities;
    let missing = (required.elicitation_form && !has.elicitation_form) || (required.tasks && !has.tasks);
    if missing { Err(RpcError::missing_capability(required)) } else { Ok(answer) }
}
