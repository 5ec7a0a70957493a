use std::sync::Arc;

use cyberine_types::{Identity, Timestamp};

/// Who was let in, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// Who it is.
    pub identity: Arc<Identity>,
    /// From when on what the caller brought counts no more. `None` where it does not end by itself.
    pub until: Option<Timestamp>,
}

impl From<Arc<Identity>> for Admission {
    /// Without an end.
    fn from(identity: Arc<Identity>) -> Self {
        Self { identity, until: None }
    }
}
