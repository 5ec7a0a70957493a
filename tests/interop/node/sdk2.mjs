// TypeScript SDK 2.x. MODE is legacy, auto, or a revision to pin. usage: sdk2.mjs <command...> | <url>
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { exercise, isUrl } from './steps.mjs';

const [command, ...args] = process.argv.slice(2);
const mode = process.env.MODE ?? 'auto';
const versionNegotiation = { mode: mode === 'legacy' || mode === 'auto' ? mode : { pin: mode } };
const client = new Client({ name: 'interop-ts2', version: '2' }, { versionNegotiation });
const overHttp = isUrl(command);
const transport = overHttp
  ? new StreamableHTTPClientTransport(new URL(command))
  : new StdioClientTransport({ command, args, env: { ...process.env }, stderr: 'inherit' });
await client.connect(transport);
const stateless = client.getNegotiatedProtocolVersion() === '2026-07-28';
const label = `TypeScript SDK 2 ${mode} (${client.getNegotiatedProtocolVersion()})${overHttp ? ' over HTTP' : ''}`;
await exercise(label, {
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
