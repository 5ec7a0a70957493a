//! What is left alone, and what is said about it.

use cyberine_install::{Host, Overwrite, Plan, PlanError, Withdrawal, plan, registered, withdraw};

use crate::{entry, full_entry};

fn refusal(host: Host, text: &str) -> String {
    plan(host, Some(text), &entry(), Overwrite::Allow).unwrap_err().to_string()
}

#[test]
fn a_file_that_does_not_parse_is_refused_with_its_place() {
    for (host, text, place) in [
        (Host::Cursor, "{\n  \"mcpServers\": {\n    oops\n  }\n}\n", "3:5: "),
        (Host::Cursor, "{\"a\": 1", "1:"),
        (Host::Cursor, "{\"a\": 1 \"b\": 2}", "1:"),
        (Host::Cursor, "{'a': 1}", "1:2: "),
        (Host::ClaudeDesktop, "{\n  \"mcpServers\": {},\n}\n", "2:"),
        (Host::ClaudeDesktop, "{\n  // no\n}\n", "2:3: "),
        (Host::ClaudeCode, "\u{feff}{\n  é\n}\n", "2:3: "),
        (Host::Codex, "a = 1\nb =\n", "2:"),
        (Host::Codex, "a = 1\na = 2\n", "2:"),
    ] {
        let said = refusal(host, text);
        assert!(said.starts_with(place) && said.contains("nothing was touched"), "{text:?}: {said}");
        assert!(withdraw(host, text, &[], Overwrite::Allow).is_err());
    }
}

#[test]
fn what_stands_where_the_servers_should_is_not_overwritten() {
    for (host, text, words) in [
        (Host::Cursor, "[]", "the whole file` is a list"),
        (Host::Cursor, "{\"mcpServers\": []}", "1:16: `mcpServers` is a list"),
        (Host::VsCode, "{\n\"servers\": null}", "2:12: `servers` is null"),
        (Host::Zed, "{\"context_servers\": {}, \"context_servers\": {}}", "a second time"),
        (Host::Gemini, "{\"mcpServers\": {\"cyberine\": {}, \"cyberine\": {}}}", "a second time"),
        (Host::Codex, "mcp_servers = {}\n", "inline table"),
        (Host::Codex, "[[mcp_servers]]\n", "a list of tables"),
        (Host::Codex, "mcp_servers = 1\n", "a value"),
        (Host::Codex, "[mcp_servers]\ncyberine = { command = \"x\" }\n", "no table of its own"),
    ] {
        let said = refusal(host, text);
        assert!(said.contains(words), "{text:?}: {said}");
    }
}

#[test]
fn another_entry_of_the_name_is_shown_and_replaced_only_on_request() {
    for (host, text) in [
        (Host::Cursor, "{\"mcpServers\": {\"cyberine\": {\"url\": \"https://example.com\"}, \"b\": {}}}"),
        (
            Host::Cursor,
            "{\n  \"mcpServers\": {\n    \"cyberine\": { \"command\": \"other\" } // hm\n  }\n}\n",
        ),
        (
            Host::Codex,
            "[mcp_servers.cyberine]\ncommand = \"other\"\n\n[mcp_servers.cyberine.env]\nA = \"1\"\n\n[x]\n",
        ),
    ] {
        let refused = plan(host, Some(text), &full_entry(), Overwrite::Refuse).unwrap_err();
        let PlanError::Taken { existing } = &refused else { panic!("{refused}") };
        assert!(text.contains(existing.trim()) || host == Host::Codex, "{existing}");
        let Plan::Write(after) = plan(host, Some(text), &full_entry(), Overwrite::Allow).unwrap() else {
            panic!("nothing to write")
        };
        assert!(!after.contains("other") && !after.contains("example.com"), "{after}");
        assert_eq!(plan(host, Some(&after), &full_entry(), Overwrite::Refuse).unwrap(), Plan::Nothing);
        // Taken out, the other one is there again.
        let taken = withdraw(host, &after, &[text.to_owned()], Overwrite::Refuse).unwrap();
        assert_eq!(taken, Withdrawal::GiveBack(text.to_owned()));
    }
}

#[test]
fn an_entry_of_somebody_else_is_not_taken_out_unless_asked() {
    let text = "{\"mcpServers\": {\"cyberine\": {\"command\": \"other\"}}}";
    let refused = withdraw(Host::Cursor, text, &[], Overwrite::Refuse).unwrap_err();
    assert!(matches!(refused, PlanError::Foreign { .. }), "{refused}");
    let taken = withdraw(Host::Cursor, text, &[], Overwrite::Allow).unwrap();
    assert_eq!(taken, Withdrawal::Write("{\"mcpServers\": {}}".into()));
    assert_eq!(registered(Host::Cursor, text).unwrap().as_deref(), Some("{\"command\": \"other\"}"));
    for text in ["{}", "", "{\"mcpServers\": {\"b\": {}}}"] {
        assert_eq!(withdraw(Host::Cursor, text, &[], Overwrite::Refuse).unwrap(), Withdrawal::Nothing);
    }
}

#[test]
fn what_a_user_added_to_the_entry_is_left_alone() {
    let text = "{\"servers\": {\"cyberine\": {\"command\": \"/opt/cyberine/bin/cyberine-mcp\", \"dev\": {}, \"args\": []}}}";
    assert_eq!(plan(Host::VsCode, Some(text), &entry(), Overwrite::Allow).unwrap(), Plan::Nothing);
}

#[test]
fn a_file_nested_beyond_reason_is_an_error_and_no_overflow() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(plan(Host::Cursor, Some(&deep), &entry(), Overwrite::Refuse).is_err());
    assert!(plan(Host::Codex, Some(&format!("a = {deep}")), &entry(), Overwrite::Refuse).is_err());
}
