// TypeScript SDK 1.x, which knows the 2025 era only. usage: sdk1.mjs <command...> | <url>
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { exercise, isUrl } from './steps.mjs';

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'interop-ts1', version: '1' });
const overHttp = isUrl(command);
const transport = overHttp
  ? new StreamableHTTPClientTransport(new URL(command))
  : new StdioClientTransport({ command, args, env: { ...process.env }, stderr: 'inherit' });
await client.connect(transport);
await exercise(`TypeScript SDK 1${overHttp ? ' over HTTP' : ''}`, {
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
if (overHttp) await transport.terminateSession();
await client.close();
