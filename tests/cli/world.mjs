// What every case has: the binaries, the scripted server, a home and a project of its own, and a look
// at the processes of a run.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { CLIS } from './clis.mjs';
import { Host } from './host.mjs';

export const [world, bins, clis] = process.argv.slice(2);
export const here = dirname(fileURLToPath(import.meta.url));
export const KEY = 'sk-ant-scripted-0123456789';
export const SECONDS = 1000;
export const PROMPT = 'what is six times seven?';

/** The scripted server's address, once it is there. */
export const served = { url: '' };

// Whatever a CLI wants of the world besides the scripted server meets a proxy that is not there.
export const env = {
  ...process.env,
  HTTPS_PROXY: 'http://127.0.0.1:9',
  NO_PROXY: '127.0.0.1',
  CYBERINE_DISCOVERY: 'off',
  SCRIPTED_KEY: KEY,
};

/** Starts the scripted server; it ends with its standard input, so it cannot outlive this. */
export async function serve() {
  const script = join(here, 'script.toml');
  const server = spawn(join(bins, 'cyberine-scripted-llm'), ['serve', '--script', script, '--until-eof'], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  [served.url] = await once(createInterface(server.stdout), 'line', { signal: AbortSignal.timeout(30 * SECONDS) });
  return server;
}

/** Runs a program to its end; never rejects. */
export async function outcome(program, args, more = {}) {
  try {
    const options = { env: { ...env, ...more }, timeout: 150 * SECONDS, maxBuffer: 16 << 20 };
    return { code: 0, ...(await promisify(execFile)(program, args, options)) };
  } catch (error) {
    return { code: error.code, stdout: error.stdout, stderr: error.stderr };
  }
}

/** A home and a project whose only configured agents are one CLI and what `rest` adds. */
export class House {
  /**
   * `live` lets the CLI run commands; `more` are further keys of the provider; `variables` go
   * to the CLI besides its own.
   */
  constructor(name, cli, { model = name, live = false, key = true, more = '', rest = '', variables = {} } = {}) {
    this.cli = CLIS[cli];
    this.program = join(clis, this.cli.bin);
    this.home = join(world, cli, name, 'home');
    this.project = join(world, cli, name, 'project');
    const user = join(world, cli, 'user');
    const config = join(world, cli, 'config');
    for (const path of [this.home, this.project, user, config, join(world, 'tmp')]) {
      mkdirSync(path, { recursive: true, mode: 0o700 });
    }
    const asked = { model, live, url: served.url, program: this.program, user, config, home: this.home };
    const { keyVariable } = this.cli;
    const own = { ...this.cli.variables(asked), ...variables, ...(keyVariable && key ? { [keyVariable]: KEY } : {}) };
    this.env = { HOME: user, TMPDIR: join(world, 'tmp'), CYBERINE_HOME: this.home, CYBERINE_PROJECT: this.project, ...own };
    const lines = [
      `[providers.${cli}]`,
      ...this.cli.provider(asked),
      `env = ${JSON.stringify(Object.keys(own))}`,
      !keyVariable && key ? 'api_key_env = "SCRIPTED_KEY"' : '',
      more,
      rest,
      // Should this be ended in the middle, what it started ends too.
      '[run]',
      'on_host_exit = "cancel"',
    ];
    writeFileSync(join(this.home, 'config.toml'), lines.join('\n'), { mode: 0o600 });
  }

  /** Starts the server as a host does. */
  host() {
    return Host.start(join(bins, 'cyberine-mcp'), { ...env, ...this.env });
  }

  /** A command of `cyberine` that prints JSON. */
  async cyberine(args) {
    const { code, stdout, stderr } = await outcome(join(bins, 'cyberine'), ['--json', ...args], this.env);
    assert.ok(stdout, `cyberine ${args[0]} printed nothing (${code}): ${stderr}`);
    return { code, view: JSON.parse(stdout) };
  }

  /**
   * One prompt, carried out to its end by a host, which does something with the run meanwhile. What the
   * host saw, and the candidate as it is recorded, in full.
   */
  async ask(meanwhile = async () => {}) {
    const host = await this.host();
    try {
      const runId = await host.dispatch(PROMPT);
      await meanwhile(host, runId);
      const view = await host.settled(runId);
      await over(view);
      const record = (await this.cyberine(['inspect', runId])).view;
      const [candidate, seen] = [record, view].map(one => one.steps[0].candidates[0]);
      assert.deepEqual([seen.state, seen.error], [candidate.state, candidate.error]);
      return { view, candidate };
    } finally {
      await host.close();
    }
  }
}

/** The processes that carry the mark of a run, with their command lines. */
export function marked(run) {
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

export async function until(what, holds, limit = 90 * SECONDS) {
  for (const end = Date.now() + limit; Date.now() < end; await pause(50)) if (await holds()) return;
  assert.fail(`waited in vain until ${what}`);
}

/** Whether a process has ended: its last thread too, since until then its locks are held. */
export function ended(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return 'ZX'.includes(fields[0]) && Number(fields[17]) <= 1;
  } catch {
    return true;
  }
}

/** A settled run has no process at once, and no runner soon. */
export async function over(view) {
  assert.deepEqual(marked(view.runId), [], 'processes of a settled run are left');
  await until('the runner ends', () => ended(view.enginePid));
}

/** Whether the server holds a request of `model`. */
export async function held(model) {
  const state = await (await fetch(`${served.url}/control/state`)).json();
  return state.held.some(one => one.model === `scripted/${model}`);
}
