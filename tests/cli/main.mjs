// Arguments: an empty directory, the binaries, where the CLIs are, `all` for everything, and a pattern
// of the cases to run. The cases of one program run one after the other, those of several side by side.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { core, rest, untouched } from './claude.mjs';
import { CLIS } from './clis.mjs';
import { ALL_ROWS, THIN, matrix, table } from './matrix.mjs';
import { ownership } from './ownership.mjs';
import { KEY, SECONDS, clis, here, outcome, serve, world } from './world.mjs';

const all = process.argv[5] === 'all';
const pattern = new RegExp(process.argv[6] ?? '');
const columns = all ? Object.keys(CLIS) : ['claude', 'codex'];

const own = cases => Object.entries(cases).map(([name, run]) => ({ cli: 'claude', name, run }));
const cases = [
  ...matrix(all ? ALL_ROWS : THIN, columns),
  ...own(all ? { ...core, ...rest } : core),
  ...(all ? ownership(columns.filter(cli => cli === CLIS[cli].bin || cli === 'codex-app-server')) : []),
].filter(one => pattern.test(`${one.cli} ${one.name}`));

const { dependencies, devDependencies } = JSON.parse(readFileSync(join(here, 'package.json')));
const programs = [...new Set(columns.map(cli => CLIS[cli].bin))];
for (const cli of programs) {
  const pinned = { ...dependencies, ...devDependencies }[CLIS[cli].package];
  const { stdout, stderr } = await outcome(join(clis, cli), ['--version'], { HOME: world });
  assert.ok(stdout?.includes(pinned), `${cli} is ${stdout ?? stderr}, and ${pinned} is pinned`);
  console.log(`${cli} ${pinned}`);
}

const server = await serve();
let failed = 0;
async function one({ cli, name, run }) {
  const began = Date.now();
  const took = () => `${((Date.now() - began) / SECONDS).toFixed(1)} s`;
  try {
    const said = await run();
    console.log(`ok ${cli}: ${name} (${took()}): ${typeof said === 'string' ? said : (said.output ?? JSON.stringify(said))}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${cli}: ${name} (${took()}): ${error.message}`);
  }
}
await Promise.all(programs.map(async program => {
  for (const each of cases.filter(each => CLIS[each.cli].bin === program)) await one(each);
}));
server.stdin.end();

/** What must hold after every case: the key is in no file of ours. */
async function keyless() {
  const { stdout } = await outcome('grep', ['-rlF', KEY, ...columns.map(cli => join(world, cli)).filter(existsSync)]);
  const ours = (stdout ?? '').split('\n').filter(path => /\/(home|project)\//.test(path));
  assert.deepEqual(ours, [], 'the key is in a file');
  if (existsSync(join(world, 'claude', 'user'))) untouched();
  return 'no key in a file, nothing in the home';
}
await one({ cli: 'all', name: 'aftermath', run: keyless });

console.log(`\n${table(columns)}\n`);
console.log(`${cases.length + 1 - failed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
