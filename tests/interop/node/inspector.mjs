// The Inspector's command line: a process per request. MODE is legacy, auto or modern. It cannot
// subscribe. usage: inspector.mjs <launcher> <server or url>
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { isUrl, TOOLS } from './steps.mjs';

const [launcher, server] = process.argv.slice(2);
const mode = process.env.MODE ?? 'auto';
const run = promisify(execFile);

// The Inspector passes on no variable it was not told of.
const overHttp = isUrl(server);
const places = overHttp ? [] : ['CYBERINE_HOME', 'CYBERINE_PROJECT'].flatMap(name => ['-e', `${name}=${process.env[name]}`]);

async function ask(...args) {
  const words = [launcher, '--cli', server, ...places, '--protocol-era', mode, '--format', 'json', '-q', ...args];
  const { stdout } = await run(process.execPath, words, { maxBuffer: 16 << 20 });
  const answer = JSON.parse(stdout);
  return answer.result ?? answer;
}
const call = async (name, input) => {
  const args = ['--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(input)];
  return (await ask(...args)).structuredContent;
};

const { tools } = await ask('--method', 'tools/list');
assert.deepEqual(tools.map(tool => tool.name), TOOLS);
const label = `Inspector ${mode}${overHttp ? ' over HTTP' : ''}`;
const { runId } = await call('orchestrate', { prompt: `six times seven, asked by ${label}` });
const view = await call('inspect_run', { runId, waitMs: 20000 });
assert.equal(view.state, 'done', JSON.stringify(view));
const found = await call('query_runs', { query: `asked by ${label}` });
assert.ok(found.runs.some(each => each.runId === runId));
assert.ok(Array.isArray((await call('list_team', {})).members));
const note = await call('send_message', { to_kind: 'run', to_id: runId, text: 'too late' });
assert.ok(note.ok, JSON.stringify(note));
const inbox = await call('poll_inbox', { kind: 'run', id: runId, cursor: note.seq - 1 });
assert.equal(inbox.messages[0].text, 'too late');
const uri = `cyberine://runs/${runId}`;
assert.ok((await ask('--method', 'resources/list')).resources.some(each => each.uri === uri));
const { contents } = await ask('--method', 'resources/read', '--uri', uri);
assert.equal(JSON.parse(contents[0].text).runId, runId);
console.log(`ok ${label}: ${TOOLS.length} tools, run ${view.state}`);
