use super::effect::Answer;
use super::flight::{Flight, Method};
use crate::jsonrpc::RpcError;
use crate::model::{ClientCapabilities, InputRequest};

/// Whether this answer may go out to this request (2026-07-28, `basic/patterns/mrtr` and the
/// tasks extension: a server never sends what the client did not declare).
pub(super) fn admissible(flight: &Flight, answer: &Answer) -> Result<(), RpcError> {
    let fits = match flight.method {
        Method::ListTools => matches!(answer, Answer::Tools(_)),
        Method::CallTool => matches!(answer, Answer::Call(_) | Answer::InputRequired(_) | Answer::Task(_)),
        Method::ListResources => matches!(answer, Answer::Resources(_)),
        Method::ListTemplates => matches!(answer, Answer::Templates(_)),
        Method::ReadResource => matches!(answer, Answer::Contents(_) | Answer::InputRequired(_)),
        Method::Subscribe | Method::Unsubscribe | Method::UpdateTask | Method::CancelTask => {
            matches!(answer, Answer::Empty)
        }
        Method::Listen => matches!(answer, Answer::ListenEnded),
        Method::ListPrompts => matches!(answer, Answer::Prompts(_)),
        Method::GetPrompt => matches!(answer, Answer::Prompt(_) | Answer::InputRequired(_)),
        Method::Complete => matches!(answer, Answer::Completion(_)),
        Method::GetTask => matches!(answer, Answer::TaskState(_)),
    };
    if !fits {
        return Err(RpcError::internal("the server's answer does not fit the method"));
    }
    let required = match answer {
        Answer::InputRequired(outcome) => {
            if outcome.requests.is_empty() && outcome.request_state.is_none() {
                return Err(RpcError::internal("the server asked for input without a question"));
            }
            required_by(outcome.requests.values())
        }
        Answer::Task(_) => ClientCapabilities { tasks: true, ..ClientCapabilities::default() },
        Answer::TaskState(_) => ClientCapabilities::default(),
        _ => return Ok(()),
    };
    if !flight.revision.is_stateless() {
        return Err(RpcError::internal("this revision of the protocol has no such answer"));
    }
    if flight.capabilities.covers(required) { Ok(()) } else { Err(RpcError::missing_capability(required)) }
}

/// What a client must have declared to be asked all of this.
fn required_by<'a>(requests: impl Iterator<Item = &'a InputRequest>) -> ClientCapabilities {
    requests.map(InputRequest::required).fold(ClientCapabilities::default(), ClientCapabilities::and)
}
