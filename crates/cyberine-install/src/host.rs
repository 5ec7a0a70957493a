//! The hosts: where each keeps its servers, and in which words.

use std::path::{Path, PathBuf};

/// A program that starts MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// Claude Code, the command line.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// Codex, the command line.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Zed.
    Zed,
}

/// For whom the server is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// For the user, in every project.
    User,
    /// For everyone who works in one project, in a file of that project.
    Project,
}

/// A family of operating systems, as far as places of files go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// Linux and other systems that follow the XDG directories.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

/// Where things lie for this user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The system.
    pub platform: Platform,
    /// The user's home directory.
    pub home: PathBuf,
    /// `XDG_CONFIG_HOME` on Linux, `APPDATA` on Windows, where it is set.
    pub config: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`, where it is set.
    pub claude: Option<PathBuf>,
    /// `CODEX_HOME`, where it is set.
    pub codex: Option<PathBuf>,
}

/// What a host's file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON, nothing else: the host reads no file with a comment in it.
    Json,
    /// JSON with comments and trailing commas.
    Jsonc,
    /// TOML.
    Toml,
}

impl Platform {
    /// The system this program was built for.
    #[must_use]
    pub const fn of_this_build() -> Self {
        if cfg!(target_os = "macos") {
            Self::MacOs
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Linux
        }
    }
}

impl Places {
    /// Where programs keep a user's configuration: `~/.config`, `~/Library/Application Support`
    /// or `AppData\Roaming`.
    fn configuration(&self) -> PathBuf {
        match (self.platform, &self.config) {
            (Platform::MacOs, _) => self.home.join("Library/Application Support"),
            (_, Some(config)) => config.clone(),
            (Platform::Linux, None) => self.home.join(".config"),
            (Platform::Windows, None) => self.home.join("AppData").join("Roaming"),
        }
    }
}

impl Host {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::Gemini,
        Self::Zed,
    ];

    /// The word for it on a command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Zed => "zed",
        }
    }

    /// What people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Zed => "Zed",
        }
    }

    /// What its file is written in.
    #[must_use]
    pub const fn format(self) -> Format {
        match self {
            Self::ClaudeCode | Self::ClaudeDesktop => Format::Json,
            Self::Cursor | Self::VsCode | Self::Gemini | Self::Zed => Format::Jsonc,
            Self::Codex => Format::Toml,
        }
    }

    /// The key its servers stand under.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::ClaudeCode | Self::ClaudeDesktop | Self::Cursor | Self::Gemini => "mcpServers",
            Self::VsCode => "servers",
            Self::Codex => "mcp_servers",
            Self::Zed => "context_servers",
        }
    }

    /// The file of the user.
    #[must_use]
    pub fn user_file(self, places: &Places) -> PathBuf {
        let home = &places.home;
        match self {
            Self::ClaudeCode => places.claude.as_ref().unwrap_or(home).join(".claude.json"),
            Self::ClaudeDesktop => places.configuration().join("Claude").join("claude_desktop_config.json"),
            Self::Cursor => home.join(".cursor").join("mcp.json"),
            Self::VsCode => places.configuration().join("Code").join("User").join("mcp.json"),
            Self::Codex => places.codex.clone().unwrap_or_else(|| home.join(".codex")).join("config.toml"),
            Self::Gemini => home.join(".gemini").join("settings.json"),
            Self::Zed => match places.platform {
                Platform::Linux => places.configuration().join("zed"),
                Platform::MacOs => home.join(".config").join("zed"),
                Platform::Windows => places.configuration().join("Zed"),
            }
            .join("settings.json"),
        }
    }

    /// The file of a project; `None` for a host that has none.
    #[must_use]
    pub fn project_file(self, project: &Path) -> Option<PathBuf> {
        let file = match self {
            Self::ClaudeCode => project.join(".mcp.json"),
            Self::ClaudeDesktop => return None,
            Self::Cursor => project.join(".cursor").join("mcp.json"),
            Self::VsCode => project.join(".vscode").join("mcp.json"),
            Self::Codex => project.join(".codex").join("config.toml"),
            Self::Gemini => project.join(".gemini").join("settings.json"),
            Self::Zed => project.join(".zed").join("settings.json"),
        };
        Some(file)
    }

    /// How to see in the host that it works.
    #[must_use]
    pub const fn how_to_see(self, scope: Scope) -> &'static str {
        match (self, scope) {
            (Self::ClaudeCode, Scope::User) => "run `claude mcp list`, or /mcp in a session",
            (Self::ClaudeCode, Scope::Project) => {
                "run `claude` in the project and allow the server when it asks; /mcp then lists it"
            }
            (Self::ClaudeDesktop, _) => {
                "quit Claude Desktop, not only its window, and start it again; Settings > Developer shows the server"
            }
            (Self::Cursor, _) => "open Cursor's settings, MCP: the server is listed with its tools",
            (Self::VsCode, _) => "run `MCP: List Servers` from the command palette",
            (Self::Codex, Scope::User) => "run `codex mcp list`, or /mcp in a session",
            (Self::Codex, Scope::Project) => {
                "start `codex` in the project, which it must trust (else it does not read this file); /mcp lists the server"
            }
            (Self::Gemini, _) => "run `gemini mcp list`, or /mcp in a session",
            (Self::Zed, Scope::User) => {
                "open the agent panel's settings: a green dot stands beside the server"
            }
            (Self::Zed, Scope::Project) => {
                "open the project in Zed and trust it; the agent panel's settings then show the server"
            }
        }
    }

    /// Whether the host's entries name the transport.
    pub(crate) const fn names_transport(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::Cursor | Self::VsCode)
    }

    /// Whether the host's entries hold their arguments also where there are none.
    pub(crate) const fn wants_arguments(self) -> bool {
        matches!(self, Self::Zed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(platform: Platform, config: Option<&str>) -> Places {
        let home = PathBuf::from("/home/me");
        Places { platform, home, config: config.map(PathBuf::from), claude: None, codex: None }
    }

    #[test]
    fn every_host_has_its_place_on_every_system() {
        use Platform::{Linux, MacOs, Windows};
        for (host, platform, config, file) in [
            (Host::ClaudeCode, Linux, None, "/home/me/.claude.json"),
            (Host::ClaudeDesktop, Linux, None, "/home/me/.config/Claude/claude_desktop_config.json"),
            (
                Host::ClaudeDesktop,
                MacOs,
                None,
                "/home/me/Library/Application Support/Claude/claude_desktop_config.json",
            ),
            (Host::ClaudeDesktop, Windows, Some("/roaming"), "/roaming/Claude/claude_desktop_config.json"),
            (Host::Cursor, MacOs, None, "/home/me/.cursor/mcp.json"),
            (Host::VsCode, Linux, Some("/xdg"), "/xdg/Code/User/mcp.json"),
            (Host::VsCode, MacOs, Some("/xdg"), "/home/me/Library/Application Support/Code/User/mcp.json"),
            (Host::VsCode, Windows, None, "/home/me/AppData/Roaming/Code/User/mcp.json"),
            (Host::Codex, Linux, None, "/home/me/.codex/config.toml"),
            (Host::Gemini, Linux, None, "/home/me/.gemini/settings.json"),
            (Host::Zed, Linux, Some("/xdg"), "/xdg/zed/settings.json"),
            (Host::Zed, MacOs, None, "/home/me/.config/zed/settings.json"),
            (Host::Zed, Windows, Some("/roaming"), "/roaming/Zed/settings.json"),
        ] {
            assert_eq!(host.user_file(&places(platform, config)), Path::new(file), "{host:?} {platform:?}");
        }
        let moved = Places { claude: Some("/c".into()), codex: Some("/x".into()), ..places(Linux, None) };
        assert_eq!(Host::ClaudeCode.user_file(&moved), Path::new("/c/.claude.json"));
        assert_eq!(Host::Codex.user_file(&moved), Path::new("/x/config.toml"));
    }

    #[test]
    fn only_claude_desktop_knows_no_projects() {
        for host in Host::ALL {
            assert_eq!(host.project_file(Path::new("/p")).is_none(), host == Host::ClaudeDesktop, "{host:?}");
        }
    }
}
