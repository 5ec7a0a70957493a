// The cases: each has its own home, its own configuration and its own rule of the script.
// Arguments: an empty directory, the binaries, the CLI, and `all` for every case.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const [world, bins, claude, which] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const KEY = 'sk-ant-scripted-0123456789';
const SECONDS = 1000;

// The provider hands these on; whatever else the CLI wants of the world meets a proxy that is
// not there.
const handed = {
  ANTHROPIC_BASE_URL: '',
  CLAUDE_CONFIG_DIR: join(world, 'claude'),
  CLAUDE_CODE_MAX_RETRIES: '1',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
};
const env = {
  ...process.env,
  ...handed,
  HOME: join(world, 'user'),
  TMPDIR: join(world, 'tmp'),
  HTTPS_PROXY: 'http://127.0.0.1:9',
  NO_PROXY: '127.0.0.1',
  CYBERINE_DISCOVERY: 'off',
  SCRIPTED_KEY: KEY,
};
for (const name of ['user', 'tmp', 'claude']) mkdirSync(join(world, name), { mode: 0o700 });

/** Runs a program to its end; never rejects. */
async function outcome(program, args, more = {}) {
  try {
    const options = { env: { ...env, ...more }, timeout: 120 * SECONDS, maxBuffer: 16 << 20 };
    return { code: 0, ...(await promisify(execFile)(program, args, options)) };
  } catch (error) {
    return { code: error.code, stdout: error.stdout, stderr: error.stderr };
  }
}

/** A home and a project whose only configured agents are these. */
class House {
  constructor(name, { model = name, more = '', rest = '', key = true } = {}) {
    this.home = join(world, name, 'home');
    this.project = join(world, name, 'project');
    for (const path of [this.home, this.project]) mkdirSync(path, { recursive: true, mode: 0o700 });
    const lines = [
      '[providers.claude]',
      'kind = "claude-cli"',
      `program = ${JSON.stringify(claude)}`,
      `model = ${JSON.stringify(model)}`,
      `env = ${JSON.stringify(Object.keys(handed))}`,
      key ? 'api_key_env = "SCRIPTED_KEY"' : '',
      more,
      rest,
    ];
    writeFileSync(join(this.home, 'config.toml'), lines.join('\n'), { mode: 0o600 });
  }

  /** A command of `cyberine` that prints JSON. */
  async cyberine(args, more = {}) {
    const own = { CYBERINE_HOME: this.home, CYBERINE_PROJECT: this.project, ...more };
    const { code, stdout, stderr } = await outcome(join(bins, 'cyberine'), ['--json', ...args], own);
    assert.ok(stdout, `cyberine ${args[0]} printed nothing (${code}): ${stderr}`);
    return { code, view: JSON.parse(stdout) };
  }

  /** One prompt, carried out to its end. */
  async ask(more) {
    const { code, view } = await this.cyberine(['orchestrate', 'six times seven?'], more);
    await over(view);
    return { code, view, candidate: view.steps[0].candidates[0] };
  }

  /**
   * Dispatches a run, waits until `busy` holds of it, cancels it, and shows that nothing of it is
   * left. Whatever fails, the run does not outlive the case.
   */
  async cancelled(what, busy) {
    const run = (await this.cyberine(['orchestrate', '--no-wait', 'six times seven?'])).view.runId;
    let before;
    try {
      await until(what, () => busy(run));
      before = marked(run);
      assert.ok(before.some(one => one.command.startsWith(claude)), `the CLI is unmarked: ${JSON.stringify(before)}`);
    } finally {
      await this.cyberine(['cancel', run, '--reason', 'no longer needed']);
    }
    const { code, view } = await this.cyberine(['inspect', '--wait', run]);
    await over(view);
    assert.deepEqual([code, view.state], [1, 'cancelled'], JSON.stringify(view));
    assert.equal(view.steps[0].candidates[0].error.code, 'cancelled');
    return `cancelled; processes of the run before: ${before.length}, after: 0`;
  }
}

/** The processes that carry the mark of a run, with their command lines. */
function marked(run) {
  const found = [];
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    try {
      const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
      if (!variables.includes(`CYBERINE_RUN=${run}`)) continue;
      found.push({ pid, command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() });
    } catch {
      // It ended meanwhile.
    }
  }
  return found;
}

async function until(what, holds) {
  for (const end = Date.now() + 90 * SECONDS; Date.now() < end; await pause(50)) if (await holds()) return;
  assert.fail(`waited in vain until ${what}`);
}

/** Whether the server holds a request of `model`. */
async function held(model) {
  const state = await (await fetch(`${env.ANTHROPIC_BASE_URL}/control/state`)).json();
  return state.held.some(one => one.model === `scripted/${model}`);
}

/** A settled run has no process at once, and no runner soon. */
async function over(view) {
  assert.deepEqual(marked(view.runId), [], 'processes of a settled run are left');
  await until('the runner ends', () => {
    try {
      return / [ZX] /.test(readFileSync(`/proc/${view.enginePid}/stat`, 'utf8'));
    } catch {
      return true;
    }
  });
}

/** A case whose candidate fails with `code`. */
function fails(name, code, { words = '', options, more } = {}) {
  return async () => {
    const { code: exit, view, candidate } = await new House(name, options).ask(more);
    assert.equal(candidate.error?.code, code, JSON.stringify(candidate));
    assert.ok(candidate.error.message.includes(words), candidate.error.message);
    assert.deepEqual([exit, view.state, candidate.state, candidate.output], [1, 'error', 'error', '']);
    return candidate.error.message;
  };
}

/** A case whose candidate answers with exactly `text`. */
function answers(name, text, options) {
  return async () => {
    const { code, view, candidate } = await new House(name, options).ask();
    assert.equal(candidate.output, text, JSON.stringify(candidate));
    assert.deepEqual([code, view.state, candidate.state], [0, 'done', 'done']);
    return candidate;
  };
}

const core = {
  async success() {
    const candidate = await answers('success', 'Six times seven is 42 — said in a café.', { model: 'claude-sonnet-4-5' })();
    assert.deepEqual([candidate.kind, candidate.model, candidate.billing], ['claude-cli', 'claude-sonnet-4-5', 'metered']);
    const { usd, ...usage } = candidate.usage;
    assert.deepEqual(usage, { basis: 'reported', input: 2150, cachedRead: 2000, cacheWrite: 30, output: 25, reasoning: 0 });
    assert.ok(usd > 0 && usd < 0.01, `${usd}`);
    return `${candidate.tokens} tokens, ${usd} USD`;
  },
  auth: fails('auth', 'auth', { words: '401' }),
  cancel: () => new House('held').cancelled('the answer is held', () => held('held')),
  async install() {
    const house = new House('install');
    // The CLI keeps a cache in the user's home, which no other case may touch.
    const own = { HOME: house.home, PATH: `${dirname(claude)}:${bins}:${env.PATH}`, CYBERINE_HOME: house.home, CYBERINE_PROJECT: house.project };
    const install = async more => {
      const { code, stderr } = await outcome(join(bins, 'cyberine'), ['install', 'claude-code', ...more], own);
      assert.equal(code, 0, stderr);
    };
    const listed = async () => (await outcome(claude, ['mcp', 'list'], own)).stdout;
    await install([]);
    await install([]);
    const list = await listed();
    assert.ok(/^cyberine: .*Connected/m.test(list) && list.split('cyberine: ').length === 2, list);
    await install(['--uninstall']);
    assert.ok(!(await listed()).includes('cyberine: '), 'it is still registered');
    return 'registered, connected, registered once, taken out again';
  },
};

const rest = {
  empty: fails('empty', 'empty'),
  payment: fails('payment', 'billing', { words: '402' }),
  credit: fails('credit', 'billing', { words: 'Credit balance' }),
  rate: fails('rate', 'rate-limit', { words: '429' }),
  overloaded: fails('overloaded', 'overloaded', { words: '529' }),
  'nobody logged in': fails('nobody', 'auth', { words: 'Not logged in', options: { key: false } }),
  'nobody listens': fails('unreachable', 'unreachable', { more: { ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' } }),
  'connection lost': fails('lost', 'unreachable', { words: 'ECONNRESET' }),
  refusal: fails('refusal', 'refused'),
  'cut, then whole': async () => (await answers('cut', 'the whole answer')()).output,
  'too long for one message': async () => (await answers('length', 'the first half, and the second')()).output,
  async judge() {
    const agent = (name, text) =>
      `[providers.${name}]\nkind = "command"\ncommand = ["sh", "-c", "cat > /dev/null; echo ${text}"]\n`;
    const rest =
      agent('right', 'the right answer') +
      agent('wrong', 'another answer') +
      '[orchestrate]\ncandidates = ["right", "wrong"]\njudges = ["llm-judge"]\njudge_providers = ["claude"]\n';
    const { view } = await new House('judge', { rest }).ask();
    const { outcome, winner, rationale } = view.steps[0].verdict;
    assert.deepEqual([outcome, winner], ['winner', 'right'], rationale);
    return rationale;
  },
  async 'cancel while a tool runs'() {
    // Our own plan mode would not let the command run.
    const args = 'args = ["--permission-mode=default", "--allowedTools=Bash"]';
    const house = new House('tool', { more: `tools = ["Bash"]\n${args}` });
    const tails = run => marked(run).filter(one => one.command === 'tail -f /dev/null').length;
    return house.cancelled('the tool and what left it run', run => tails(run) === 2);
  },
};

/** Starts the scripted server; it ends with its standard input, so it cannot outlive this. */
async function serve() {
  const script = join(here, 'script.toml');
  const server = spawn(join(bins, 'cyberine-scripted-llm'), ['serve', '--script', script, '--until-eof'], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [url] = await once(createInterface(server.stdout), 'line', { signal: AbortSignal.timeout(30 * SECONDS) });
  env.ANTHROPIC_BASE_URL = url;
  return server;
}

/** What must hold after every case: the key is in no file, and the user's home was left alone. */
async function aftermath() {
  assert.deepEqual(readdirSync(join(world, 'user')), [], 'the CLI wrote into the home');
  const { stdout } = await outcome('grep', ['-rlF', '--exclude-dir=claude', KEY, world]);
  assert.equal(stdout, '', 'the key is in a file');
  return 'no key in a file, nothing in the home';
}

const version = (await outcome(claude, ['--version'])).stdout;
const pinned = JSON.parse(readFileSync(join(here, 'package.json'))).dependencies['@anthropic-ai/claude-code'];
assert.ok(version.startsWith(`${pinned} `), `the CLI is ${version}, and ${pinned} is pinned`);
console.log(`Claude Code ${version.trim()}`);

const server = await serve();
const chosen = { ...core, ...(which === 'all' ? rest : {}), aftermath };
let failed = 0;
for (const [name, run] of Object.entries(chosen)) {
  const began = Date.now();
  const took = () => `${((Date.now() - began) / SECONDS).toFixed(1)} s`;
  try {
    const said = await run();
    console.log(`ok ${name} (${took()}): ${said}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name} (${took()}): ${error.message}`);
  }
}
server.stdin.end();
console.log(`${Object.keys(chosen).length - failed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
