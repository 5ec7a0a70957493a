// An MCP host: `cyberine-mcp` as its child, a line of JSON at a time.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export class Host {
  #child;
  #gone;
  #answers = new Map();
  #ids = 0;

  static async start(program, env) {
    const host = new Host();
    host.#child = spawn(program, [], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    host.#child.stdin.on('error', () => {});
    host.#gone = once(host.#child, 'exit').then(([code, signal]) => ({ error: { ended: code ?? signal } }));
    createInterface({ input: host.#child.stdout }).on('line', line => {
      const message = JSON.parse(line);
      host.#answers.get(message.id)?.(message);
      host.#answers.delete(message.id);
    });
    const clientInfo = { name: 'cli-lane', version: '1' };
    await host.#ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
    host.#send({ method: 'notifications/initialized' });
    return host;
  }

  #send(message) {
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  async #ask(method, params) {
    const id = (this.#ids += 1);
    const answer = new Promise(resolve => this.#answers.set(id, resolve));
    this.#send({ id, method, params });
    const { result, error } = await Promise.race([answer, this.#gone]);
    assert.ok(result, `${method}: ${JSON.stringify(error)}`);
    return result;
  }

  /** Calls a tool; its answer is data. */
  async call(name, input) {
    const { isError, structuredContent, content } = await this.#ask('tools/call', { name, arguments: input });
    assert.ok(!isError, `${name}: ${content?.[0]?.text}`);
    return structuredContent;
  }

  /** Dispatches a run and returns its id. */
  async dispatch(prompt) {
    return (await this.call('orchestrate', { prompt })).runId;
  }

  /** Waits until the run is over, and returns what is seen of it then. */
  async settled(runId) {
    for (let since = 0; ; ) {
      const view = await this.call('inspect_run', { runId, sinceSeq: since, waitMs: 20_000 });
      if (['done', 'error', 'cancelled'].includes(view.state)) return view;
      since = view.nextSeq;
    }
  }

  /** Ends the server as a host does, by the end of its input. */
  async close() {
    this.#child.stdin.end();
    await this.#gone;
  }

  /** Ends it as nobody should. */
  async kill() {
    this.#child.kill('SIGKILL');
    await this.#gone;
  }
}
