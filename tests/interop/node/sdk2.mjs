// TypeScript SDK 2.x. MODE is legacy, auto, or a revision to pin.
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { exercise } from './steps.mjs';

const [command, ...args] = process.argv.slice(2);
const mode = process.env.MODE ?? 'auto';
const versionNegotiation = { mode: mode === 'legacy' || mode === 'auto' ? mode : { pin: mode } };
const client = new Client({ name: 'interop-ts2', version: '2' }, { versionNegotiation });
await client.connect(new StdioClientTransport({ command, args, env: { ...process.env }, stderr: 'inherit' }));
const stateless = client.getNegotiatedProtocolVersion() === '2026-07-28';
await exercise(`TypeScript SDK 2 ${mode} (${client.getNegotiatedProtocolVersion()})`, {
  identity: 'interop-ts2@2',
  tools: async () => (await client.listTools()).tools,
  call: async (name, input) => (await client.callTool({ name, arguments: input })).structuredContent,
  resources: async () => (await client.listResources()).resources,
  read: uri => client.readResource({ uri }),
  subscribe: async uri => {
    const updated = new Promise(resolve =>
      client.setNotificationHandler('notifications/resources/updated', news => resolve(news.params.uri)));
    if (!stateless) {
      await client.subscribeResource({ uri });
      return { updated, close: () => client.unsubscribeResource({ uri }) };
    }
    const subscription = await client.listen({ resourceSubscriptions: [uri], toolsListChanged: true });
    assert.deepEqual(subscription.honoredFilter, { resourceSubscriptions: [uri] });
    return { updated, close: () => subscription.close() };
  },
});
await client.close();
