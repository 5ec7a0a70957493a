use super::*;

fn same(texts: &[&str]) {
    for text in texts {
        assert_eq!(key(text), key(texts[0]), "`{text}` and `{}`", texts[0]);
    }
}

#[test]
fn dressing_does_not_matter() {
    same(&[
        "42",
        "42.0",
        " **42** ",
        "The answer is 42.",
        "Answer: 42",
        "`42`",
        "$\\boxed{42}$",
        "\\boxed{42}.",
        "The answer is: **42.0**.",
        "**The answer is 42.**",
        "\u{feff}42\u{200b}",
    ]);
    same(&[
        "Paris",
        "paris.",
        "  PARIS  ",
        "“Paris”",
        "**Paris**",
        "The answer is Paris.",
        "**Answer:** Paris",
    ]);
    same(&["**Final answer**: 42", "**Final answer:** 42", "42"]);
    same(&["1,234.5", "1234.5", "1\u{202f}234.5"]);
    same(&["$1,000", "1000 dollars", "1000 USD"]);
    same(&["12 %", "12%", "12 percent"]);
    same(&["New   York", "New York", "New\u{a0}York"]);
    same(&["The answer is B.", "B"]);
    same(&["It is so.", "It is so"]);
    same(&["March", "march"]);
    same(&["ÉCOLE", "école"]);
    same(&["Yes.", "yes", "YES"]);
    same(&["No.", "no"]);
}

#[test]
fn what_differs_stays_apart() {
    let apart = [
        ("42", "43"),
        ("42", "-42"),
        ("42 km", "42 m"),
        ("42", "42 km"),
        ("$5", "5 %"),
        ("yes", "no"),
        ("yes", "yes?"),
        ("no", "not"),
        ("yes", "no, yes"),
        ("Paris has 2", "London has 2"),
        ("3,14", "314"),
        ("if x:\n    y()", "if x:\ny()"),
        ("Let A\nLet b", "let a\nlet b"),
        ("First line.\nIt is 42", "Other line.\nIt is 42"),
        ("*", "**"),
        ("'", "\""),
        ("…", "..."),
        ("not 42", "42"),
        ("The answer is not 42", "The answer is 42"),
    ];
    differ(&apart);
}

fn differ(pairs: &[(&str, &str)]) {
    for (left, right) in pairs {
        assert_ne!(key(left), key(right), "`{left}` and `{right}`");
    }
}

#[test]
fn what_may_be_code_compares_exactly() {
    differ(&[
        ("git add .", "git add"),
        ("cd .", "cd"),
        ("ls ..", "ls"),
        ("x.", "x"),
        ("[a-z].", "[a-z]"),
        ("rm -r Build", "rm -r build"),
        ("rm Build", "rm build"),
        ("rm -r ./A", "rm -r ./a"),
        ("`Build`", "build"),
        ("tar -XVF a", "tar -xvf a"),
        ("ls -LART", "ls -lart"),
        ("echo Hello World", "echo hello world"),
        ("print(\"a  b\")", "print(\"a b\")"),
        ("print('a  b')", "print('a b')"),
        ("'a'", "a"),
        ("\"42\"", "42"),
        ("echo 'a  b'", "echo 'a b'"),
        ("new york", "New York"),
    ]);
    same(&["`ls -l`", "ls -l", " ls -l\n"]);
    same(&["2.0", "2"]);
}

#[test]
fn signs_that_mean_something_are_no_dressing() {
    differ(&[
        ("5!", "5"),
        ("n!", "n"),
        ("2**10", "210"),
        ("a**b", "ab"),
        ("__init__", "init"),
        ("**kwargs", "kwargs"),
        ("*args", "args"),
        ("*p", "p"),
        ("**/foo/**", "/foo/"),
        ("6'", "6\""),
        ("6'", "6"),
        ("a;", "a"),
        ("$HOME", "home"),
        ("\\boxed{42} is wrong", "42"),
        ("\\boxed{1} + \\boxed{2}", "1} + \\boxed{2"),
        ("'a' or 'b'", "a' or 'b"),
        ("The answer islands", "lands"),
        ("Answer issues", "sues"),
        ("e\u{301}\u{200d}", "e\u{301}"),
        ("\u{200b}", "\u{200d}"),
        ("\u{200b}", "\u{2060}"),
    ]);
}

#[test]
fn numbers_that_may_be_codes_or_versions_stay_apart() {
    differ(&[
        ("3.10", "3.1"),
        ("007", "7"),
        ("1.000", "1"),
        ("1.000", "1000"),
        ("1.000,5", "1000.5"),
        ("100 200", "100200"),
        ("100 200", "100,200"),
        ("3,5", "35"),
        ("+1", "1"),
        ("1e3", "1000"),
        ("½", "1/2"),
        ("x²", "x2"),
    ]);
}

#[test]
fn units_and_names_keep_their_case() {
    differ(&[
        ("5 mW", "5 MW"),
        ("1 Mb", "1 MB"),
        ("5 K", "5 k"),
        ("mW", "MW"),
        ("Mb", "MB"),
        ("K", "k"),
        ("US", "us"),
        ("getName", "getname"),
        ("x1B", "x1b"),
    ]);
}

#[test]
fn a_stated_final_answer_counts_for_the_text_before_it() {
    same(&[
        "Let me think.\n6 × 7 = 42.\n\nFinal answer: 42",
        "I count them.\nThe answer is 42.",
        "I count them\n\n**Final answer:** 42.0",
        "42",
    ]);
    same(&[
        "(Scripted answer: no model was called.)\nA week has 7 × 24 × 60 minutes.\nFinal answer: 10,080",
        "There are 1440 minutes in a day, and seven days in a week.\nFinal answer: 10080",
    ]);
    same(&["It holds.\nAnswer: yes", "Yes"]);
    same(&["Both fail.\nAnswer: B", "B"]);
    same(&["It prints a word.\nAnswer: `foo`", "foo"]);
}

#[test]
fn a_last_line_in_doubt_does_not_stand_for_the_text() {
    differ(&[
        ("Part 1.\nAnswer: 3\nPart 2.\nAnswer: 7", "Part 1.\nAnswer: 9\nPart 2.\nAnswer: 7"),
        ("Part 1.\n(Answer: 3)\nPart 2.\nAnswer: 7", "Part 1.\n(Answer: 9)\nPart 2.\nAnswer: 7"),
        ("One answer is 3.\nAnswer: 7", "7"),
        ("def f():\n  return 1\nResult: done", "rm -rf /\nResult: done"),
        ("It is 1.\nAnswer: done", "It is 2.\nAnswer: done"),
        ("I refuse to say that\nthe answer is 42", "42"),
        ("I refuse to say\nThe answer is 42", "42"),
        ("Some text claims:\nThe answer is yes", "No.\n\nThe answer is yes"),
        ("Some text claims:\n\nThe answer is yes", "yes"),
        ("```\nrm -rf /\n```\nAnswer: 7", "```\nls\n```\nAnswer: 7"),
        ("It is so.\nThe answer is not 42", "It is so.\nThe answer is 42"),
        ("It is so.\nFinal answer: 42\nOr so.", "42"),
        ("The following is false.\nAnswer: 42", "42"),
        ("I disagree with what they claim\n\nAnswer: 42", "42"),
        ("Do not write this.\n\nThe final answer is 42", "42"),
        ("You mustn't say it.\nAnswer: 42", "42"),
    ]);
}

#[test]
fn nothing_but_dressing_keeps_itself() {
    assert_eq!(key("..."), Key::Words("...".into()));
    assert_eq!(key("The answer is"), Key::Words("The answer is".into()));
}
