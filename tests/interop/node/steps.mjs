// What every Node client does with the server, whatever its SDK calls it.
import assert from 'node:assert/strict';

export const EXPECTED = ['cancel_run', 'inspect_run', 'orchestrate', 'query_runs'];

export async function exercise(label, c) {
  const names = (await c.tools()).map(tool => tool.name);
  for (const name of EXPECTED) assert.ok(names.includes(name), `${name} is not listed`);

  const sent = await c.call('orchestrate', { prompt: `six times seven, asked by ${label}` });
  assert.equal(sent.status, 'dispatched');
  let view;
  for (let since = 0, tries = 0; tries < 60; tries++) {
    view = await c.call('inspect_run', { runId: sent.runId, sinceSeq: since, waitMs: 2000 });
    if (['done', 'error', 'cancelled'].includes(view.state)) break;
    since = view.nextSeq;
  }
  assert.equal(view.state, 'done', JSON.stringify(view));
  assert.equal(view.steps[0].verdict.outcome, 'majority');

  const found = await c.call('query_runs', { query: `asked by ${label}` });
  assert.ok(found.runs.some(run => run.runId === sent.runId), 'the prompt is not found afterwards');
  const over = await c.call('cancel_run', { runId: sent.runId });
  assert.equal(over.outcome, 'already_finished');

  const uri = `cyberine://runs/${sent.runId}`;
  assert.ok((await c.resources()).some(resource => resource.uri === uri), 'the run is not among the resources');
  const whole = JSON.parse((await c.read(uri)).contents[0].text);
  assert.equal(whole.runId, sent.runId);
  await assert.rejects(c.call('nope', {}), 'an unknown tool was called');
  console.log(`ok ${label}: ${names.length} tools, run ${view.state}, winner by ${view.steps[0].verdict.kind}`);
}
