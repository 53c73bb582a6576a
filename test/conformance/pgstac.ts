/** stac-fastapi-pgstac from PyPI over PostgreSQL with PostGIS from Debian (postgresql-15-postgis-3). */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, readdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { atEnd } from '../support/at-end.js';
import { freePort } from '../support/s3.js';
import { tempFolder } from '../support/temp.js';
import { installPython } from './python.js';

const PACKAGES = ['stac-fastapi.pgstac==7.2.0', 'pypgstac[psycopg]==0.10.0', 'uvicorn'];

/** Returns the folder of the newest PostgreSQL server with PostGIS. */
export function postgresFolder(): string | undefined {
  const root = '/usr/lib/postgresql';
  const versions = existsSync(root) ? readdirSync(root) : [];
  const hasPostgis = (version: string) =>
    existsSync(`/usr/share/postgresql/${version}/extension/postgis.control`) &&
    existsSync(join(root, version, 'bin/postgres'));
  const newest = versions.filter(hasPostgis).sort().at(-1);
  return newest && join(root, newest, 'bin');
}

/** PostgreSQL refuses to run as root. In this case it runs as the user that Debian creates for it. */
export function databaseUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres']).toString());
  return { uid: id('-u'), gid: id('-g') };
}

/** Serves the Items and returns the address of the landing page, or a reason to skip. */
export async function servePgstac(
  t: TestContext,
  collection: object,
  items: object[],
): Promise<{ api: string; reason?: undefined } | { reason: string }> {
  const bin = postgresFolder();
  if (bin === undefined) return { reason: 'PostgreSQL with PostGIS is not installed' };
  const folder = await tempFolder(t);
  const python = await installPython(join(folder, 'venv'), PACKAGES);
  if (python.reason !== undefined) return { reason: python.reason };
  const user = databaseUser();
  const data = join(folder, 'database');
  await mkdir(data);
  if (user.uid !== undefined) for (const path of [folder, data]) chownSync(path, user.uid, user.gid!);
  const options = { ...user, stdio: 'ignore' } as const;
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8'], options);
  const port = `${await freePort()}`;
  const settings = ['-p', port, '-c', `unix_socket_directories=${data}`, '-c', 'listen_addresses=127.0.0.1'];
  const database = spawn(join(bin, 'postgres'), ['-D', data, ...settings], options);
  const end = async (child: typeof database, signal: NodeJS.Signals) => {
    if (child.exitCode !== null) return;
    child.kill(signal);
    await once(child, 'close');
  };
  atEnd(t, () => end(database, 'SIGINT'));
  const env = {
    ...process.env,
    ...{ PGHOST: '127.0.0.1', PGPORT: port, PGUSER: 'postgres', PGPASSWORD: 'none', PGDATABASE: 'postgres' },
  };
  const isReady = () => {
    try {
      execFileSync(join(bin, 'pg_isready'), { env, stdio: 'ignore' });
      return true;
    } catch {
      // It exits with an error until the server accepts connections.
      return false;
    }
  };
  while (!isReady()) await sleep(100);
  const pypgstac = (args: string[], input = '') =>
    execFileSync(join(python.bin, 'pypgstac'), args, { env, input, stdio: 'pipe' });
  pypgstac(['migrate']);
  pypgstac(['load', 'collections', 'stdin', '--method', 'upsert'], JSON.stringify(collection));
  const lines = items.map((item) => JSON.stringify(item)).join('\n');
  pypgstac(['load', 'items', 'stdin', '--method', 'insert'], lines);

  const url = `http://127.0.0.1:${await freePort()}`;
  const args = ['stac_fastapi.pgstac.app:create_app', '--factory', '--port', new URL(url).port];
  const server = spawn(join(python.bin, 'uvicorn'), args, { env, stdio: 'ignore' });
  atEnd(t, () => end(server, 'SIGKILL'));
  const isUp = () =>
    fetch(`${url}/collections`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isUp())) {
    if (server.exitCode !== null) throw new Error(`uvicorn ended with ${server.exitCode}`);
    await sleep(100);
  }
  return { api: `${url}/` };
}
