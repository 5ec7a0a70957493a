//! Who is calling: from facts of the transport to an identity, or to a refusal.
