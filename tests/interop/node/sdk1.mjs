// TypeScript SDK 1.x, which knows the 2025 era only.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { exercise } from './steps.mjs';

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'interop-ts1', version: '1' });
await client.connect(new StdioClientTransport({ command, args, env: { ...process.env }, stderr: 'inherit' }));
await exercise('TypeScript SDK 1', {
  identity: 'interop-ts1@1',
  tools: async () => (await client.listTools()).tools,
  call: async (name, input) => (await client.callTool({ name, arguments: input })).structuredContent,
  resources: async () => (await client.listResources()).resources,
  read: uri => client.readResource({ uri }),
  subscribe: async uri => {
    const updated = new Promise(resolve =>
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, news => resolve(news.params.uri)));
    await client.subscribeResource({ uri });
    return { updated, close: () => client.unsubscribeResource({ uri }) };
  },
});
await client.ping();
await client.close();
