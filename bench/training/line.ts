/** Measures the line between two nodes with two programs in their namespaces. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { stop } from '../cluster/servers.js';
import { endsWithUs } from '../support/peer-process.js';
import type { LineFigures } from './echo.js';
import type { TrainingCluster } from './nodes.js';

const ECHO = fileURLToPath(new URL('echo.js', import.meta.url));

export async function measureLine({ nodes }: TrainingCluster): Promise<LineFigures> {
  const [from, to] = nodes.map(({ spot }) => spot);
  const serve = [...to!.wrapper, process.execPath, ECHO, 'serve', to!.host];
  const server = endsWithUs(spawn(serve[0]!, serve.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] }));
  try {
    const [port] = await once(server.stdout.setEncoding('utf8'), 'data');
    const ask = [...from!.wrapper, process.execPath, ECHO, 'ask', to!.host, String(port).trim()];
    return JSON.parse((await promisify(execFile)(ask[0]!, ask.slice(1))).stdout) as LineFigures;
  } finally {
    await stop(server);
  }
}
