//! A page of Markdown, as steps to carry out.

/// How long a block may take where nothing else is said, in seconds.
const LIMIT: u64 = 30;
/// The longest a block may ask for, in seconds.
const LONGEST: u64 = 300;
/// The info strings of fences that are commands.
const SHELLS: &[&str] = &["sh", "bash", "shell", "console", "zsh"];
const MARK: &str = "docs-run:";
/// What ends a fence that is written into a file; no page has such a line.
const END: &str = "docs-run-end-of-file";

/// A page in the order it is read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) parts: Vec<Part>,
}

/// One step, and where it stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The line of the fence or comment, from 1.
    pub(super) line: usize,
    pub(super) terminal: u32,
    /// Seconds.
    pub(super) limit: u64,
    /// A program that not every machine has, and without which the step is left out.
    pub(super) needs: Option<String>,
    pub(super) step: Step,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Not run, and why.
    Skip(String),
    /// Commands that end. Without a code, each of them has to end well.
    Run { commands: String, exit: Option<i32> },
    /// Commands that go on while the page does.
    Stay { commands: String },
    /// What the terminal has said since it was last asked.
    Output(String),
}

/// What a mark says, before the fence it belongs to is known.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    what: What,
    terminal: Option<u32>,
    limit: u64,
    needs: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Skip(String),
    Ends(Option<i32>),
    Stays,
    Output,
    Before(String),
    File(String),
}

impl Page {
    /// Reads a page.
    ///
    /// # Errors
    /// `line: what is wrong`, for a block without a mark, a mark nobody understands, a mark without
    /// a block, a fence without an end.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        let mut parts: Vec<Part> = Vec::new();
        let mut mark: Option<(usize, Mark)> = None;
        // The terminal whose output a `text` fence is and what that needs, while nothing but blank lines
        // came since.
        let mut printing: Option<(u32, Option<String>)> = None;
        while let Some((number, line)) = lines.next() {
            let trimmed = line.trim_start();
            if let Some(fence) = Fence::opened_by(line) {
                let body = fence.body(&mut lines).ok_or_else(|| format!("{number}: the fence has no end"))?;
                let found = part(number, &fence.info, body, mark.take(), printing.take())?;
                printing = found.as_ref().and_then(|part| match part.step {
                    Step::Run { .. } | Step::Stay { .. } => Some((part.terminal, part.needs.clone())),
                    Step::Skip(_) | Step::Output(_) => None,
                });
                parts.extend(found);
            } else if let Some(comment) = trimmed.strip_prefix("<!--") {
                let comment = comment_of(comment, &mut lines)
                    .ok_or_else(|| format!("{number}: the comment has no end"))?;
                let Some(words) = comment.trim_start().strip_prefix(MARK) else { continue };
                if let Some((line, _)) = mark {
                    return Err(format!("{line}: this mark stands before no fence"));
                }
                let read = Mark::read(words).map_err(|fault| format!("{number}: {fault}"))?;
                if let What::Before(commands) = read.what {
                    let step = Step::Run { commands, exit: None };
                    parts.push(Part {
                        line: number,
                        terminal: read.terminal.unwrap_or(1),
                        limit: read.limit,
                        needs: read.needs,
                        step,
                    });
                } else {
                    mark = Some((number, read));
                }
            } else if !trimmed.is_empty() {
                if let Some((line, _)) = mark {
                    return Err(format!("{line}: this mark stands before no fence"));
                }
                printing = None;
            }
        }
        match mark {
            Some((line, _)) => Err(format!("{line}: this mark stands before no fence")),
            None => Ok(Self { parts }),
        }
    }
}

/// The step a fence is, if any.
fn part(
    line: usize,
    info: &str,
    body: String,
    mark: Option<(usize, Mark)>,
    printing: Option<(u32, Option<String>)>,
) -> Result<Option<Part>, String> {
    let mark = mark.map(|(_, mark)| mark);
    if let Some(Mark { what: What::File(name), terminal, limit, needs }) = mark {
        let commands = format!("cat > '{name}' <<'{END}'\n{body}{END}\n");
        let (terminal, step) = (terminal.unwrap_or(1), Step::Run { commands, exit: None });
        return Ok(Some(Part { line, terminal, limit, needs, step }));
    }
    if !SHELLS.contains(&info) {
        let said = match mark {
            Some(Mark { what: What::Output, terminal, limit, needs }) => {
                Some((terminal.unwrap_or(1), limit, needs))
            }
            Some(Mark { what: What::Skip(_), .. }) => None,
            Some(_) => {
                return Err(format!("{line}: a `{info}` fence holds no commands, so it cannot be run"));
            }
            None if info == "text" => printing.map(|(terminal, needs)| (terminal, LIMIT, needs)),
            None => None,
        };
        return Ok(said.map(|(terminal, limit, needs)| Part {
            line,
            terminal,
            limit,
            needs,
            step: Step::Output(body),
        }));
    }
    let Some(Mark { what, terminal, limit, needs }) = mark else {
        return Err(format!(
            "{line}: nothing says whether these commands are run: put `<!-- docs-run: ok -->` or \
             `<!-- docs-run: skip, the reason -->` before them"
        ));
    };
    let step = match what {
        What::Skip(why) => Step::Skip(why),
        What::Ends(exit) => Step::Run { commands: body, exit },
        What::Stays => Step::Stay { commands: body },
        What::Output | What::Before(_) | What::File(_) => {
            return Err(format!("{line}: these are commands; mark them `ok`, `exit N`, `stays` or `skip`"));
        }
    };
    Ok(Some(Part { line, terminal: terminal.unwrap_or(1), limit, needs, step }))
}

impl Mark {
    fn read(words: &str) -> Result<Self, String> {
        let (first, rest) = words.split_once('\n').unwrap_or((words, ""));
        let mut items = first.split(',').map(str::trim);
        let head = items.next().unwrap_or_default();
        if head == "skip" {
            let why = first.split_once(',').map_or("", |(_, why)| why).trim().to_owned();
            return if why.is_empty() {
                Err("a skip says why: `<!-- docs-run: skip, needs an account -->`".to_owned())
            } else {
                Ok(Self { what: What::Skip(why), terminal: None, limit: LIMIT, needs: None })
            };
        }
        let what = match head.split_once(' ') {
            None if head == "ok" => What::Ends(None),
            None if head == "stays" => What::Stays,
            None if head == "output" => What::Output,
            None if head == "before" => What::Before(rest.to_owned()),
            Some(("file", name)) => What::File(name.to_owned()),
            Some(("exit", code)) => What::Ends(Some(number(code, "exit")?)),
            _ => {
                return Err(format!(
                    "`{head}` is no mark: ok, exit N, stays, output, file NAME, before, skip"
                ));
            }
        };
        let mut mark = Self { what, terminal: None, limit: LIMIT, needs: None };
        for item in items {
            match item.split_once(' ') {
                Some(("terminal", which)) => mark.terminal = Some(number(which, "terminal")?),
                Some(("limit", seconds)) => mark.limit = number::<u64>(seconds, "limit")?.clamp(1, LONGEST),
                Some(("needs", program)) => mark.needs = Some(program.to_owned()),
                _ => {
                    return Err(format!(
                        "`{item}` is nothing a mark can say: terminal N, limit SECONDS, needs PROGRAM"
                    ));
                }
            }
        }
        Ok(mark)
    }
}

fn number<T: std::str::FromStr>(text: &str, of: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("`{of}` wants a number, not `{text}`"))
}

/// The opening line of a fenced block.
struct Fence {
    indent: usize,
    length: usize,
    sign: char,
    info: String,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let trimmed = line.trim_start();
        let sign = trimmed.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
        let length = trimmed.chars().take_while(|c| *c == sign).count();
        let info = trimmed.get(length..)?.trim();
        if length < 3 || (sign == '`' && info.contains('`')) {
            return None;
        }
        let info = info.split([' ', ',', '{']).next().unwrap_or_default().to_owned();
        Some(Self { indent: line.len() - trimmed.len(), length, sign, info })
    }

    /// The lines up to the closing one, without the fence's own indentation.
    fn body<'a>(&self, lines: &mut impl Iterator<Item = (usize, &'a str)>) -> Option<String> {
        let mut body = String::new();
        for (_, line) in lines {
            let trimmed = line.trim();
            if trimmed.len() >= self.length && trimmed.chars().all(|c| c == self.sign) {
                return Some(body);
            }
            let indent = line.len() - line.trim_start().len();
            body.push_str(line.get(indent.min(self.indent)..).unwrap_or_default());
            body.push('\n');
        }
        None
    }
}

/// The text of a comment, from behind its opening to before its end.
fn comment_of<'a>(first: &str, lines: &mut impl Iterator<Item = (usize, &'a str)>) -> Option<String> {
    if let Some((text, _)) = first.split_once("-->") {
        return Some(text.to_owned());
    }
    let mut text = format!("{first}\n");
    for (_, line) in lines {
        if let Some((last, _)) = line.split_once("-->") {
            text.push_str(last);
            return Some(text);
        }
        text.push_str(line);
        text.push('\n');
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<(u32, Step)> {
        Page::read(text).unwrap().parts.into_iter().map(|part| (part.terminal, part.step)).collect()
    }

    fn runs(commands: &str) -> Step {
        Step::Run { commands: commands.to_owned(), exit: None }
    }

    #[test]
    fn a_block_is_run_as_its_mark_says_and_the_text_behind_it_is_its_output() {
        let page = "# T\n\n<!-- docs-run: ok -->\n```sh\na\nb\n```\n\n```text\nout\n```\n\n```text\nnot its\n```\n\
                    <!-- docs-run: exit 75, terminal 2 -->\n\n```bash\nc\n```\n";
        let exit = Step::Run { commands: "c\n".into(), exit: Some(75) };
        assert_eq!(steps(page), [(1, runs("a\nb\n")), (1, Step::Output("out\n".into())), (2, exit)]);
    }

    #[test]
    fn prose_parts_a_block_from_a_text_unless_a_mark_joins_them() {
        let page = "<!-- docs-run: stays, terminal 2 -->\n```sh\na\n```\nThen:\n```text\nno\n```\n\
                    <!-- docs-run: output, terminal 2, limit 5 -->\n```text\nyes\n```\n";
        assert_eq!(
            steps(page),
            [(2, Step::Stay { commands: "a\n".into() }), (2, Step::Output("yes\n".into()))]
        );
        assert_eq!(Page::read(page).unwrap().parts[1].limit, 5);
    }

    #[test]
    fn hidden_commands_skips_other_fences_and_indentation_are_understood() {
        let page = "<!-- a remark -->\n<!-- docs-run: before\nmkdir x\ncd x\n-->\n- item\n\n  \
                    <!-- docs-run: skip, needs an account, and money -->\n  ```sh\n  a\n  ```\n\
                    ````md\n```sh\nb\n```\n````\n```toml\n[a]\n```\n";
        assert_eq!(
            steps(page),
            [(1, runs("mkdir x\ncd x\n")), (1, Step::Skip("needs an account, and money".into()))]
        );
    }

    #[test]
    fn a_fence_can_be_a_file() {
        let page = "<!-- docs-run: file a.conf -->\n```nginx\nserver {\n}\n```\n";
        let commands = format!("cat > 'a.conf' <<'{END}'\nserver {{\n}}\n{END}\n");
        assert_eq!(steps(page), [(1, runs(&commands))]);
    }

    #[test]
    fn what_a_block_needs_its_output_needs_too() {
        let page = "<!-- docs-run: ok, needs nginx -->\n```sh\na\n```\n```text\nout\n```\n\
                    <!-- docs-run: ok -->\n```sh\nb\n```\n```text\nmore\n```\n";
        let needs: Vec<Option<String>> =
            Page::read(page).unwrap().parts.into_iter().map(|part| part.needs).collect();
        assert_eq!(needs, [Some("nginx".into()), Some("nginx".into()), None, None]);
    }

    #[test]
    fn what_cannot_be_understood_is_an_error_with_its_line() {
        for (page, line, words) in [
            ("x\n```sh\na\n```\n", "2:", "whether these commands are run"),
            ("<!-- docs-run: skip -->\n```sh\na\n```\n", "1:", "says why"),
            ("<!-- docs-run: perhaps -->\n```sh\na\n```\n", "1:", "`perhaps` is no mark"),
            ("<!-- docs-run: ok, quickly -->\n```sh\na\n```\n", "1:", "`quickly`"),
            ("<!-- docs-run: ok -->\nprose\n", "1:", "before no fence"),
            ("<!-- docs-run: ok -->\n", "1:", "before no fence"),
            ("<!-- docs-run: ok -->\n```toml\n```\n", "2:", "holds no commands"),
            ("<!-- docs-run: output -->\n```sh\na\n```\n", "2:", "these are commands"),
            ("\n```sh\na\n", "2:", "no end"),
            ("<!-- docs-run: exit many -->\n```sh\n```\n", "1:", "wants a number"),
        ] {
            let fault = Page::read(page).unwrap_err();
            assert!(fault.starts_with(line) && fault.contains(words), "{page:?}: {fault}");
        }
    }
}
