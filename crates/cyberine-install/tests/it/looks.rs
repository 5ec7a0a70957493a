//! What is written looks as if its user had written it.

use cyberine_install::{Entry, Host, snippet};

use crate::{added, entry, full_entry};

fn short() -> Entry {
    Entry::new("/b/cyberine-mcp").unwrap()
}

#[test]
fn a_member_goes_behind_the_last_one_and_its_remarks() {
    let before = "{\n\t\"mcpServers\": {\n\t\t\"a\": { \"url\": \"u\" } // mine\n\t\t// end\n\t}\n}\n";
    let after = "{\n\t\"mcpServers\": {\n\t\t\"a\": { \"url\": \"u\" }, // mine\n\t\t\"cyberine\": {\n\
                 \t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"/b/cyberine-mcp\"\n\t\t}\n\t\t// end\n\t}\n}\n";
    assert_eq!(added(Host::Cursor, Some(before), &short()), after);
}

#[test]
fn a_trailing_comma_is_followed_by_a_trailing_comma() {
    let before = "{\n  \"context_servers\": {\n    \"a\": {}, // mine\n  },\n}\n";
    let after = "{\n  \"context_servers\": {\n    \"a\": {}, // mine\n    \"cyberine\": {\n      \
                 \"command\": \"/b/cyberine-mcp\",\n      \"args\": []\n    },\n  },\n}\n";
    assert_eq!(added(Host::Zed, Some(before), &short()), after);
}

#[test]
fn one_line_stays_one_line() {
    let before = r#"{"mcpServers":{"a":{"command":"a"}},"b":1}"#;
    let after = r#"{"mcpServers":{"a":{"command":"a"}, "cyberine": {"command":"/b/cyberine-mcp"}},"b":1}"#;
    assert_eq!(added(Host::ClaudeDesktop, Some(before), &short()), after);
}

#[test]
fn servers_are_made_where_there_are_none() {
    let before = "{\n    \"theme\": \"dark\"\n}\n";
    let after = "{\n    \"theme\": \"dark\",\n    \"mcpServers\": {\n        \"cyberine\": {\n            \
                 \"command\": \"/b/cyberine-mcp\"\n        }\n    }\n}\n";
    assert_eq!(added(Host::Gemini, Some(before), &short()), after);
    assert_eq!(
        added(Host::VsCode, Some("{}"), &short()),
        "{\n  \"servers\": {\n    \"cyberine\": {\n      \"type\": \"stdio\",\n      \
         \"command\": \"/b/cyberine-mcp\"\n    }\n  }\n}"
    );
}

#[test]
fn a_table_is_put_at_the_end_of_a_toml_file() {
    assert_eq!(
        added(Host::Codex, Some("model = \"o\"\n"), &full_entry()),
        "model = \"o\"\n\n[mcp_servers.cyberine]\ncommand = '/opt/my \"tools\"/é/cyberine-mcp'\n\
         args = [\"--team\", '''re'd\\x''']\n\
         env = { CYBERINE_HOME = \"/home/me/.cyberine\", CYBERINE_PROJECT = \"/home/me/work\" }\n"
    );
}

#[test]
fn what_is_pasted_by_hand_is_what_a_new_file_would_hold() {
    for host in Host::ALL {
        assert_eq!(snippet(host, &entry()).unwrap(), added(host, None, &entry()));
    }
}
