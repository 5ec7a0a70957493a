// TypeScript SDK 2.x. MODE is legacy, auto, or a revision to pin.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { exercise } from './steps.mjs';

const [command, ...args] = process.argv.slice(2);
const mode = process.env.MODE ?? 'auto';
const versionNegotiation = { mode: mode === 'legacy' || mode === 'auto' ? mode : { pin: mode } };
const client = new Client({ name: 'interop-ts2', version: '2' }, { versionNegotiation });
await client.connect(new StdioClientTransport({ command, args, env: { ...process.env }, stderr: 'inherit' }));
await exercise(`TypeScript SDK 2 ${mode} (${client.getNegotiatedProtocolVersion()})`, {
  tools: async () => (await client.listTools()).tools,
  call: async (name, input) => (await client.callTool({ name, arguments: input })).structuredContent,
  resources: async () => (await client.listResources()).resources,
  read: uri => client.readResource({ uri }),
});
await client.close();
