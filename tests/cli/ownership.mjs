// With a command of the CLI running, and another that left its session: nothing of a run is left
// within five seconds of its end, however it ends.
import assert from 'node:assert/strict';
import { CLIS } from './clis.mjs';
import { House, PROMPT, SECONDS, ended, marked, until } from './world.mjs';

const LIMIT = 5 * SECONDS;

const kill = pid => process.kill(pid, 'SIGKILL');
const sleepers = run => marked(run).filter(one => one.command === 'sleep 987').length;

/** Dispatches a run whose CLI starts the commands, lets it be ended, and waits until nothing is left. */
function owned(name, cli, end, more = '') {
  return async () => {
    const house = new House(name, cli, { model: `live-${CLIS[cli].bin}`, live: true, more });
    const host = await house.host();
    const runId = await host.dispatch(PROMPT);
    try {
      await until('the commands run', () => sleepers(runId) === 2, 60 * SECONDS);
      const before = marked(runId);
      const { enginePid } = await host.call('inspect_run', { runId });
      await end({ host, runId, enginePid });
      const began = Date.now();
      await until(`nothing is left of ${JSON.stringify(before)}`, () => marked(runId).length === 0, LIMIT);
      const took = Date.now() - began;
      const { view } = await house.cyberine(['inspect', '--wait', runId]);
      await until('the runner ends', () => ended(enginePid));
      assert.deepEqual(marked(runId), []);
      return { took, before: before.length, view };
    } finally {
      await host.close();
      // Whatever failed, the run does not outlive its case.
      for (const { pid } of marked(runId)) kill(pid);
    }
  };
}

/** Says how it went, once the run has ended as it should. */
function told(run, state, code) {
  return async () => {
    const { took, before, view } = await run();
    const candidate = view.steps[0].candidates[0];
    assert.deepEqual([view.state, candidate.error?.code], [state, code], JSON.stringify(view));
    return `${before} processes, none after ${took} ms: ${code}`;
  };
}

/** Waits until the time of a turn is over; its processes have five seconds from then. */
const outlast = cli => async ({ host, runId }) => {
  const { durationMs } = (await host.settled(runId)).steps[0].candidates[0];
  assert.ok(durationMs < CLIS[cli].seconds * SECONDS + LIMIT, `the turn ended after ${durationMs} ms`);
};

const ENDS = {
  'cancelled with a live tool': cli =>
    told(owned('live-cancel', cli, ({ host, runId }) => host.call('cancel_run', { runId })), 'cancelled', 'cancelled'),
  'out of time with a live tool': cli =>
    told(owned('live-timeout', cli, outlast(cli), `wall_seconds = ${CLIS[cli].seconds}`), 'error', 'timeout-wall'),
  // The server that started it sees its runner die.
  'runner killed with a live tool': cli =>
    told(owned('live-runner', cli, ({ enginePid }) => kill(enginePid)), 'error', 'interrupted'),
  // Its guardian sees the server die, and the houses have it cancel the run then.
  'server killed with a live tool': cli => told(owned('live-server', cli, ({ host }) => host.kill()), 'cancelled', 'cancelled'),
  // No server is there to see it: its guardian settles it.
  'server and runner killed with a live tool': cli =>
    told(
      owned('live-both', cli, ({ host, enginePid }) => {
        kill(enginePid);
        return host.kill();
      }),
      'error',
      'interrupted',
    ),
};

export const ownership = clis => clis.flatMap(cli => Object.entries(ENDS).map(([name, run]) => ({ cli, name, run: run(cli) })));
