//! The words by which the rules go, in lower case and of plain letters.

/// Whoever judges.
pub(super) const JUDGES: &[&str] = &[
    "judge",
    "judges",
    "grader",
    "graders",
    "evaluator",
    "evaluators",
    "referee",
    "reviewer",
    "reviewers",
    "juror",
    "jurors",
    "jury",
    "rater",
    "raters",
    "assessor",
    "critic",
    "critics",
    "arbiter",
    "assistant",
    "llm",
    "ai",
    "model",
    "system",
    "richter",
    "gutachter",
    "juez",
    "juge",
    "evaluador",
    "evaluateur",
];
/// What may stand before a judge that is spoken to.
pub(super) const GREETINGS: &[&str] = &[
    "dear",
    "hey",
    "hi",
    "hello",
    "attention",
    "note",
    "message",
    "notice",
    "reminder",
    "instruction",
    "instructions",
    "important",
    "listen",
    "to",
    "for",
    "the",
    "all",
    "any",
    "our",
    "my",
    "ai",
    "llm",
    "system",
    "whoever",
    "honourable",
    "honorable",
    "esteemed",
    "ps",
    "lieber",
    "liebe",
    "hinweis",
    "an",
    "den",
    "die",
    "estimado",
    "querido",
    "nota",
    "al",
    "cher",
    "chere",
    "au",
];
/// Orders that name whom to prefer.
pub(super) const CHOOSE: &[&str] = &[
    "pick",
    "choose",
    "select",
    "prefer",
    "favor",
    "favour",
    "elect",
    "crown",
    "rank",
    "rate",
    "score",
    "grade",
    "vote",
    "approve",
    "award",
    "declare",
    "name",
    "reward",
    "wahle",
    "nimm",
    "bewerte",
    "elige",
    "prefiere",
    "choisis",
    "choisissez",
    "prefere",
];
/// Orders of which "me" alone is no object.
pub(super) const NOT_ME: &[&str] = &["name", "award", "declare", "approve", "grade"];
/// Orders that hand out a score.
pub(super) const GIVE: &[&str] =
    &["give", "grant", "award", "assign", "rate", "score", "grade", "mark", "rank", "gib", "bewerte"];
/// What may stand before an order.
pub(super) const LEADERS: &[&str] = &[
    "and",
    "then",
    "now",
    "please",
    "kindly",
    "must",
    "should",
    "shall",
    "will",
    "to",
    "so",
    "always",
    "just",
    "simply",
    "you",
    "can",
    "not",
    "also",
    "only",
    "therefore",
    "or",
    "but",
    "do",
    "dont",
    "never",
    "bitte",
    "und",
    "por",
    "favor",
];
pub(super) const OWN: &[&str] = &["this", "my", "our", "diese", "meine", "esta", "mi", "cette", "ma"];
pub(super) const ANSWERS: &[&str] = &[
    "answer",
    "response",
    "candidate",
    "submission",
    "reply",
    "antwort",
    "kandidat",
    "kandidaten",
    "respuesta",
    "candidato",
    "reponse",
    "candidat",
];
pub(super) const MOST: &[&str] =
    &["highest", "top", "best", "full", "maximum", "max", "perfect", "high", "hochste", "volle"];
pub(super) const SCORES: &[&str] =
    &["score", "scores", "mark", "marks", "points", "rating", "grade", "grades", "punktzahl"];
pub(super) const SET_ASIDE: &[&str] =
    &["ignore", "disregard", "forget", "override", "bypass", "ignoriere", "vergiss"];
pub(super) const QUALIFIERS: &[&str] = &[
    "all",
    "any",
    "every",
    "the",
    "these",
    "those",
    "your",
    "previous",
    "prior",
    "preceding",
    "earlier",
    "above",
    "of",
    "other",
    "system",
    "judging",
    "grading",
    "scoring",
    "original",
    "my",
    "alle",
    "vorherigen",
    "deine",
];
pub(super) const INSTRUCTIONS: &[&str] = &[
    "instruction",
    "instructions",
    "prompt",
    "prompts",
    "guidelines",
    "rubric",
    "criteria",
    "directions",
    "candidates",
    "anweisungen",
];
pub(super) const LIES: &[&str] =
    &["lie", "lies", "lying", "malicious", "untrusted", "hacked", "cheat", "cheats", "cheated"];
/// What in a sentence to a judge is about the judging.
pub(super) const ADDRESSED: &[&str] =
    &["winner", "gewinner", "verdict", "best", "wins", "marks", "ganador", "gagnant", "attack"];
/// The least and the most that an answer can score.
pub(super) const EXTREMES: &[&str] = &["0", "zero", "10", "ten"];
/// What may follow a score, and no count of something.
pub(super) const ENDS_A_SCORE: &[&str] =
    &["and", "or", "for", "in", "on", "to", "out", "points", "each", "please"];
