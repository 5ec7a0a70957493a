// What only Claude Code is asked: its registration, its own words for failures, and a judge.
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { readdirSync } from 'node:fs';
import { House, KEY, bins, env, outcome, world } from './world.mjs';

/** A case whose candidate fails with `code`. */
function fails(model, code, words, options) {
  return async () => {
    const { view, candidate } = await new House(model, 'claude', options).ask();
    assert.equal(candidate.error?.code, code, JSON.stringify(candidate));
    assert.ok(candidate.error.message.includes(words) && !candidate.error.message.includes(KEY), candidate.error.message);
    assert.deepEqual([view.state, candidate.state, candidate.output], ['error', 'error', '']);
    return candidate.error.message;
  };
}

/** A case whose candidate answers with exactly `text`. */
function answers(model, text) {
  return async () => {
    const { candidate } = await new House(model, 'claude').ask();
    assert.deepEqual([candidate.state, candidate.output], ['done', text], JSON.stringify(candidate));
    return candidate;
  };
}

export const core = {
  async usage() {
    const { candidate } = await new House('usage', 'claude', { model: 'text' }).ask();
    assert.deepEqual([candidate.kind, candidate.model, candidate.billing], ['claude-cli', 'text', 'metered']);
    const { usd, ...usage } = candidate.usage;
    assert.deepEqual(usage, { basis: 'reported', input: 2150, cachedRead: 2000, cacheWrite: 30, output: 25, reasoning: 0 });
    assert.ok(usd > 0 && usd < 0.1, `${usd}`);
    return `${candidate.tokens} tokens, ${usd} USD`;
  },
  async install() {
    const house = new House('install', 'claude');
    const { program } = house;
    // The CLI keeps a cache in the user's home, which no other case may touch.
    const own = { HOME: house.home, PATH: `${dirname(program)}:${bins}:${env.PATH}`, CYBERINE_HOME: house.home, CYBERINE_PROJECT: house.project };
    const install = async more => {
      const { code, stderr } = await outcome(join(bins, 'cyberine'), ['install', 'claude-code', ...more], own);
      assert.equal(code, 0, stderr);
    };
    const listed = async () => (await outcome(program, ['mcp', 'list'], own)).stdout;
    await install([]);
    await install([]);
    const list = await listed();
    assert.ok(/^cyberine: .*Connected/m.test(list) && list.split('cyberine: ').length === 2, list);
    await install(['--uninstall']);
    assert.ok(!(await listed()).includes('cyberine: '), 'it is still registered');
    return 'registered, connected, registered once, taken out again';
  },
};

export const rest = {
  credit: fails('credit', 'billing', 'Credit balance'),
  529: fails('busy', 'overloaded', '529'),
  'nobody logged in': fails('nobody', 'auth', 'Not logged in', { key: false }),
  'nobody listens': fails('unreachable', 'unreachable', '', { variables: { ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' } }),
  'cut, then whole': answers('cut-once', 'the whole answer'),
  'too long for one message': answers('length-once', 'the first half, and the second'),
  async judge() {
    const agent = (name, text) =>
      `[providers.${name}]\nkind = "command"\ncommand = ["sh", "-c", "cat > /dev/null; echo ${text}"]\n`;
    const rest =
      agent('right', 'the right answer') +
      agent('wrong', 'another answer') +
      '[orchestrate]\ncandidates = ["right", "wrong"]\njudges = ["llm-judge"]\njudge_providers = ["claude"]\n';
    const { view } = await new House('judge', 'claude', { rest }).ask();
    const { outcome, winner, rationale } = view.steps[0].verdict;
    assert.deepEqual([outcome, winner], ['winner', 'right'], rationale);
    return rationale;
  },
};

/** What must hold after every case: it left the user's home alone. */
export function untouched() {
  assert.deepEqual(readdirSync(join(world, 'claude', 'user')), [], 'the CLI wrote into the home');
}
