// What each CLI makes of each thing that happens on its wire, as a host sees it: one table.
import assert from 'node:assert/strict';
import { CLIS } from './clis.mjs';
import { House, held, marked, until } from './world.mjs';

/** What is answered where all is well. */
const TEXTS = {
  text: 'Six times seven is 42 — said in a café.',
  slow: 'Six times seven is 42 — said slowly.',
  tool: 'The tool has spoken: 42.',
};

// A row is what the model's server does; a cell is `done` with the text, or the code of the failure. Not
// everything that happens is visible from outside a CLI: over ACP an answer that was cut short is
// whole, and opencode asks a server that is down again and again, without a word.
const COLUMNS = Object.keys(CLIS);
const CASES = {
  text: ['done', 'done', 'done', 'done', 'done', 'done', 'done'],
  tool: ['done', 'done', 'done', 'done', 'done', 'done', 'done'],
  slow: ['done', 'done', 'done', 'done', 'done', 'done', 'done'],
  cancel: ['cancelled', 'cancelled', 'cancelled', 'cancelled', 'cancelled', 'cancelled', 'cancelled'],
  empty: ['empty', 'empty', 'empty', 'empty', 'empty', 'empty', 'empty'],
  auth: ['auth', 'auth', 'auth', 'auth', 'auth', 'auth', 'auth'],
  payment: ['billing', 'billing', 'billing', 'billing', 'billing', 'billing', 'billing'],
  rate: ['rate-limit', 'rate-limit', 'rate-limit', 'rate-limit', 'rate-limit', 'rate-limit', 'rate-limit'],
  overloaded: ['overloaded', 'overloaded', 'overloaded', 'overloaded', 'overloaded', 'timeout-idle', 'timeout-idle'],
  cut: ['unreachable', 'cut', 'cut', 'cut', 'cut', 'timeout-idle', 'cut'],
  refusal: ['refused', 'empty', 'empty', 'empty', 'refused', 'empty', 'empty'],
  filter: ['refused', 'refused', 'refused', 'empty', 'cut', 'refused', 'refused'],
  length: ['truncated', 'truncated', 'truncated', 'done', 'done', 'done', 'truncated'],
};

/** What is counted of `text`: input, of it from the cache and to it, output, of it reasoning. */
const COUNTED = {
  claude: [2150, 2000, 30, 25, 0],
  codex: [2150, 2000, 30, 25, 5],
  'codex-app-server': [2150, 2000, 30, 25, 5],
  gemini: [2150, 0, 0, 20, 0],
  'gemini-run': [2150, 2000, 0, 25, 5],
  opencode: [2150, 2000, 0, 25, 5],
  'opencode-run': [2150, 2000, 0, 25, 5],
};

/** What each row is called in the table. */
const ROWS = {
  text: 'text',
  tool: 'tool call',
  slow: 'slow',
  cancel: 'slow, cancelled',
  empty: 'empty',
  auth: '401',
  payment: '402',
  rate: '429, Retry-After',
  overloaded: '503',
  cut: 'cut stream',
  refusal: 'refusal',
  filter: 'content filter',
  length: 'max tokens',
};

/** The rows of every change; the others take longer. */
export const THIN = ['text', 'auth', 'empty', 'cancel'];

const cells = new Map();

/** One case of one CLI: what came of it, once it is what it should be. */
function cell(name, cli, expected) {
  return async () => {
    const began = Date.now();
    const note = mark => cells.set(`${name} ${cli}`, `${mark} ${((Date.now() - began) / 1000).toFixed(1)} s`);
    const model = { cancel: 'held', tool: `tool-${CLIS[cli].bin}` }[name] ?? name;
    // Silence is all that is seen of some; elsewhere a busy machine is no reason to give up.
    const idle = expected === 'timeout-idle' ? 20 : 100;
    const house = new House(name, cli, { model, more: `idle_seconds = ${idle}\nwall_seconds = 240` });
    let got = 'nothing';
    try {
      const { view, candidate } = await house.ask(name === 'cancel' ? cancel(house, model) : undefined);
      got = candidate.error?.code ?? candidate.state;
      assert.equal(got, expected, JSON.stringify(candidate));
      const state = { done: 'done', cancelled: 'cancelled' }[expected] ?? 'error';
      assert.equal(view.state, state);
      assert.equal(candidate.output, expected === 'done' ? (TEXTS[name] ?? candidate.output) : '', JSON.stringify(candidate));
      if (name === 'text') {
        const { input, cachedRead, cacheWrite, output, reasoning } = candidate.usage;
        assert.deepEqual([input, cachedRead, cacheWrite, output, reasoning], COUNTED[cli]);
      }
      note(expected);
      return candidate.error?.message ?? JSON.stringify(candidate.usage);
    } catch (error) {
      note(`**${got}**, not ${expected},`);
      throw error;
    }
  };
}

/** Cancels a run once its answer is held. */
const cancel = (house, model) => async (host, runId) => {
  await until('the answer is held', () => held(model));
  const before = marked(runId);
  assert.ok(before.some(one => one.command.includes(house.program)), `the CLI is unmarked: ${JSON.stringify(before)}`);
  await host.call('cancel_run', { runId, reason: 'no longer needed' });
};

/** The cases of these rows and CLIs, each under its CLI: those of one CLI share its home. */
export function matrix(rows, columns) {
  return columns.flatMap(cli => {
    const at = COLUMNS.indexOf(cli);
    return rows.map(name => ({ cli, name: ROWS[name], run: cell(name, cli, CASES[name][at]) }));
  });
}

export const ALL_ROWS = Object.keys(CASES);

/** The table, as far as it was filled. */
export function table(columns) {
  const line = words => `| ${words.join(' | ')} |`;
  const rows = ALL_ROWS.filter(name => columns.some(cli => cells.has(`${name} ${cli}`)));
  return [
    line(['', ...columns]),
    line(['---', ...columns.map(() => '---')]),
    ...rows.map(name => line([ROWS[name], ...columns.map(cli => cells.get(`${name} ${cli}`) ?? '-')])),
  ].join('\n');
}
