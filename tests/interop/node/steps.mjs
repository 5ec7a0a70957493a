// What every Node client does with the server, whatever its SDK calls it.
import assert from 'node:assert/strict';

export const TOOLS = [
  'orchestrate', 'send_message', 'poll_inbox', 'query_runs', 'list_team', 'send_to_team',
  'send_to_role', 'inspect_run', 'approve_run', 'reject_run', 'cancel_run',
];
/** Whether a server is reached by a URL and not started as a command. */
export const isUrl = target => target.startsWith('http://');

const OVER = ['done', 'error', 'cancelled'];

// `c.subscribe(uri)` resolves once the server has agreed, to `{ updated, close }`: `updated` resolves
// with the URI of the first change that is told.
export async function exercise(label, c) {
  assert.deepEqual((await c.tools()).map(tool => tool.name), TOOLS);

  const prompt = `six times seven, asked by ${label}`;
  const sent = await c.call('orchestrate', { prompt, idempotencyKey: label });
  assert.equal(sent.status, 'dispatched');
  const again = await c.call('orchestrate', { prompt, idempotencyKey: label });
  assert.equal(again.runId, sent.runId, 'one key began two runs');
  const { runId } = sent;
  let view;
  for (let since = 0, tries = 0; tries < 60; tries++) {
    view = await c.call('inspect_run', { runId, sinceSeq: since, waitMs: 2000 });
    if (OVER.includes(view.state)) break;
    since = view.nextSeq;
  }
  assert.equal(view.state, 'done', JSON.stringify(view));
  assert.equal(view.steps[0].verdict.outcome, 'majority');

  const found = await c.call('query_runs', { query: `asked by ${label}` });
  assert.ok(found.runs.some(run => run.runId === runId), 'the prompt is not found afterwards');
  const team = await c.call('list_team', { joinRuns: true });
  assert.ok(Array.isArray(team.members), JSON.stringify(team));

  const text = `a word from ${label}: \u2028 "é" \\n`;
  const note = await c.call('send_message', { to_kind: 'chat', to_id: label, text });
  assert.ok(note.ok && note.seq >= 1, JSON.stringify(note));
  const inbox = await c.call('poll_inbox', { kind: 'chat', id: label, cursor: note.seq - 1 });
  const [message] = inbox.messages;
  assert.equal(message.text, text);
  assert.deepEqual(message.from, { kind: 'mcp', id: c.identity });
  assert.equal(message.sender.channel, 'mcp');
  assert.ok((await c.call('send_to_team', { team: 'interop', text })).ok);
  const role = await c.call('send_to_role', { role: 'nobody has this role', text });
  assert.ok(!role.ok && role.reason, JSON.stringify(role));

  const uri = `cyberine://runs/${runId}`;
  assert.ok((await c.resources()).some(resource => resource.uri === uri), 'the run is not among the resources');
  const subscription = await c.subscribe(uri);
  const decision = await c.call('approve_run', { runId, comment: 'well done' });
  assert.equal(decision.decision, 'approve');
  assert.equal(decision.decidedBy, c.identity);
  assert.equal(await subscription.updated, uri);
  await subscription.close();
  const whole = JSON.parse((await c.read(uri)).contents[0].text);
  assert.equal(whole.runId, runId);
  assert.equal(whole.decision.comment, 'well done');
  const late = await c.call('reject_run', { runId });
  assert.ok(late.error.includes(c.identity), JSON.stringify(late));

  const over = await c.call('cancel_run', { runId });
  assert.equal(over.outcome, 'already_finished');
  await assert.rejects(c.call('nope', {}), 'an unknown tool was called');
  console.log(`ok ${label}: ${TOOLS.length} tools, run ${view.state}, winner by ${view.steps[0].verdict.kind}, told of its approval`);
}
