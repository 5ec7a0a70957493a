// How each CLI is configured as a provider, and pointed at the scripted server: by its own means.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const toml = JSON.stringify;

function write(path, value) {
  mkdirSync(join(path, '..'), { recursive: true, mode: 0o700 });
  writeFileSync(path, typeof value === 'string' ? value : JSON.stringify(value), { mode: 0o600 });
}

/** Gemini CLI, whose account is in its own settings, and which would otherwise try for minutes. */
const gemini = {
  package: '@google/gemini-cli',
  bin: 'gemini',
  seconds: 20,
  keyVariable: 'GEMINI_API_KEY',
  variables: ({ url, user }) => {
    write(join(user, '.gemini', 'settings.json'), {
      security: { auth: { selectedType: 'gemini-api-key' } },
      general: { maxAttempts: 1, enableAutoUpdate: false },
      privacy: { usageStatisticsEnabled: false },
    });
    return { GOOGLE_GEMINI_BASE_URL: url };
  },
};

/** opencode, whose model and server are in its own configuration. */
const opencode = {
  package: 'opencode-ai',
  bin: 'opencode',
  seconds: 40,
  keyVariable: 'OPENCODE_KEY',
  variables: ({ model, live, url, home }) => {
    const options = { baseURL: `${url}/v1`, apiKey: '{env:OPENCODE_KEY}' };
    const path = join(home, 'opencode.json');
    write(path, {
      model: `scripted/${model}`,
      provider: { scripted: { npm: '@ai-sdk/openai-compatible', options, models: { [model]: {} } } },
    });
    return {
      OPENCODE_CONFIG: path,
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      ...(live ? { OPENCODE_PERMISSION: '{"*":"allow"}' } : {}),
    };
  },
};

/** Codex, whose configuration is not read, and whose sandbox lets a command run that writes nothing. */
const codex = {
  package: '@openai/codex',
  bin: 'codex',
  seconds: 10,
  variables: ({ config }) => ({ CODEX_HOME: config }),
};

const codexAsked = ({ model, program, url }) => {
  const server = `{name="scripted",base_url="${url}/v1",wire_api="responses",env_key="CODEX_API_KEY",request_max_retries=1,stream_max_retries=1}`;
  return [
    'kind = "codex-cli"',
    `program = ${toml(program)}`,
    `model = ${toml(model)}`,
    `args = ${toml(['-c', 'model_provider="scripted"', '-c', `model_providers.scripted=${server}`])}`,
  ];
};

/**
 * `provider` are the keys of its configuration, `variables` what it is handed. Each is asked with the
 * model, whether its tools may run, the server, the program, a home of its own, and the case's.
 * `seconds` is how long it takes, on a busy machine, until a command of it runs. `keyVariable` is
 * where the CLI looks for its key, where the kind does not know that.
 */
export const CLIS = {
  claude: {
    package: '@anthropic-ai/claude-code',
    bin: 'claude',
    seconds: 10,
    provider: ({ model, live, program }) => [
      'kind = "claude-cli"',
      `program = ${toml(program)}`,
      `model = ${toml(model)}`,
      // Our own plan mode would not let the command run.
      ...(live ? ['tools = ["Bash"]', 'args = ["--permission-mode=default", "--allowedTools=Bash"]'] : []),
    ],
    variables: ({ url, config }) => ({
      ANTHROPIC_BASE_URL: url,
      CLAUDE_CONFIG_DIR: config,
      CLAUDE_CODE_MAX_RETRIES: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    }),
  },
  codex: { ...codex, provider: codexAsked },
  'codex-app-server': { ...codex, provider: asked => [...codexAsked(asked), 'form = "app-server"'] },
  gemini: {
    ...gemini,
    provider: ({ model, live, program }) => [
      'kind = "acp"',
      `command = ${toml([program, '--acp', '-m', model, ...(live ? ['--approval-mode=yolo', '--skip-trust'] : [])])}`,
      `model = ${toml(model)}`,
    ],
  },
  'gemini-run': {
    ...gemini,
    provider: ({ model, live, program }) => [
      'kind = "acp"',
      'form = "gemini"',
      `command = ${toml([program, ...(live ? ['--approval-mode=yolo'] : [])])}`,
      `model = ${toml(model)}`,
    ],
  },
  opencode: {
    ...opencode,
    provider: ({ model, program }) => [
      'kind = "acp"',
      `command = ${toml([program, 'acp', '--pure'])}`,
      `model = ${toml(`scripted/${model}`)}`,
    ],
  },
  'opencode-run': {
    ...opencode,
    provider: ({ model, program }) => [
      'kind = "acp"',
      'form = "opencode"',
      `command = ${toml([program, '--pure'])}`,
      `model = ${toml(`scripted/${model}`)}`,
    ],
  },
};
