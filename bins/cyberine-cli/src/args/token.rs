use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token for somebody who calls over HTTP. It is shown once; the configuration keeps its
    /// digest.
    New(NewToken),
}

#[derive(Debug, Args)]
pub(crate) struct NewToken {
    /// Who will bring it.
    pub(crate) name: String,
    /// That one's tenant (else that of [identity], else `local`).
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// An audience that one belongs to; may be given several times.
    #[arg(long = "audience", value_name = "NAME")]
    pub(crate) audiences: Vec<String>,
    /// The part of an organisation that one acts in.
    #[arg(long, value_name = "NAME")]
    pub(crate) org_scope: Option<String>,
    /// After how many days it counts no more; without this it counts until its entry is removed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub(crate) days: Option<u32>,
    /// Put its entry into the home's configuration, and print the token alone.
    #[arg(long)]
    pub(crate) write: bool,
}
