//! Any document: add, then take out, is where one began.

use cyberine_install::{Host, Overwrite, Plan, Withdrawal, plan, withdraw};
use proptest::prelude::*;

use crate::{added, entry, full_entry};

/// White space and comments that may stand between any two signs.
fn trivia() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => Just(String::new()),
        4 => Just(" ".to_owned()),
        3 => Just("\n".to_owned()),
        2 => Just("\n    ".to_owned()),
        1 => Just("\r\n\t".to_owned()),
        1 => "// [a-z,{}\"]{0,6}\n",
        1 => "/\\*[a-z,{}\"\n]{0,6}\\*/",
    ];
    prop::collection::vec(piece, 0..3).prop_map(|pieces| pieces.concat())
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,5}", Just("é \\\" // {".to_owned()), Just("\\u0041".to_owned())]
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("-1.5e3".to_owned()),
        Just("\"/* no */ , // }\"".to_owned()),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            object(prop::collection::vec((name(), inner.clone()), 0..3).boxed()),
            (prop::collection::vec(inner, 0..3), trivia())
                .prop_map(|(items, gap)| { format!("[{gap}{}]", items.join(&format!(",{gap}"))) }),
        ]
    })
}

/// An object of these members, its signs parted by trivia, perhaps with a trailing comma.
fn object(members: BoxedStrategy<Vec<(String, String)>>) -> impl Strategy<Value = String> {
    (members, prop::collection::vec(trivia(), 16), any::<bool>()).prop_map(|(members, gaps, trailing)| {
        let mut gaps = gaps.iter().cycle().map(String::as_str);
        let mut gap = || gaps.next().unwrap_or_default();
        let mut text = format!("{{{}", gap());
        let count = members.len();
        for (index, (name, value)) in members.into_iter().enumerate() {
            text.push_str(&format!("\"{name}{index}\"{}:{}{value}{}", gap(), gap(), gap()));
            if index + 1 < count || trailing {
                text.push_str(&format!(",{}", gap()));
            }
        }
        text.push('}');
        text
    })
}

/// A document with or without servers, of these or none.
fn document() -> impl Strategy<Value = String> {
    let servers = object(prop::collection::vec((name(), value()), 0..3).boxed());
    let members = (
        prop::collection::vec((name(), value()), 0..3),
        prop::option::of(servers),
        any::<prop::sample::Index>(),
    )
        .prop_map(|(mut members, servers, place)| {
            if let Some(servers) = servers {
                let at = place.index(members.len() + 1);
                members.insert(at, ("mcpServers\u{0}".to_owned(), servers));
            }
            members
        });
    let root = object(members.boxed()).prop_map(|text| {
        // The servers' key is the one without a number.
        let Some(at) = text.find("mcpServers\u{0}") else { return text };
        let end = text[at..].find('"').map_or(text.len(), |length| at + length);
        format!("{}mcpServers{}", &text[..at], &text[end..])
    });
    (any::<bool>(), trivia(), root, trivia()).prop_map(|(mark, before, root, after)| {
        format!("{}{before}{root}{after}", if mark { MARK } else { "" })
    })
}

const MARK: &str = "\u{feff}";

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn add_and_take_out_is_the_identity(before in prop_oneof![9 => document(), 1 => trivia()], long in any::<bool>()) {
        let entry = if long { full_entry() } else { entry() };
        let after = added(Host::Cursor, Some(&before), &entry);
        prop_assert_eq!(plan(Host::Cursor, Some(&after), &entry, Overwrite::Refuse).unwrap(), Plan::Nothing);
        let taken = withdraw(Host::Cursor, &after, std::slice::from_ref(&before), Overwrite::Refuse).unwrap();
        prop_assert_eq!(taken, Withdrawal::GiveBack(before));
    }

    /// Also where the file is not the one `plan` wrote, so that it is the entry that is taken out.
    #[test]
    fn taking_the_entry_out_leaves_every_other_byte(before in document()) {
        let after = added(Host::Cursor, Some(&before), &entry());
        let changed = format!("{after}\n/* since */\n");
        let taken = withdraw(Host::Cursor, &changed, std::slice::from_ref(&before), Overwrite::Refuse).unwrap();
        let Withdrawal::Write(rest) = taken else { panic!("{taken:?}") };
        prop_assert_eq!(rest, format!("{before}\n/* since */\n"));
    }

    #[test]
    fn any_text_is_edited_or_refused(text in ".{0,60}") {
        for host in Host::ALL {
            let _ = plan(host, Some(&text), &entry(), Overwrite::Allow);
            let _ = withdraw(host, &text, &[], Overwrite::Allow);
        }
    }
}
