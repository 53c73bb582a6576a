/**
 * stac-fastapi-pgstac as a peer: the API and the loader from PyPI in a folder of their own, over Debian's PostgreSQL with PostGIS.
 * The database is filled once and kept, month by month, so that an interrupted run resumes where it stopped.
 */
import { type ChildProcess, type SpawnSyncOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { toStacCollection, toStacItem } from '../../src/query/index.js';
import type { TileRecord } from '../../src/storage/index.js';
import { databaseUser, postgresFolder } from '../../test/conformance/pgstac.js';
import { endsWithUs, freePort, until } from '../support/peer-process.js';
import { BENCH_FOLDER } from '../support/scene.js';
import { COLLECTION, EDITION, wholeRecords } from './search-data.js';
import type { Tiles } from './tile-rows.js';

const FOLDER = join(BENCH_FOLDER, 'pgstac');
const VENV = join(FOLDER, 'venv');
const PACKAGES = ['stac-fastapi.pgstac', 'pypgstac[psycopg]', 'uvicorn', 'uvloop', 'httptools'];
/** Within what pgstac's own check_pgstac_settings advises for 16 GB. */
const SETTINGS = {
  shared_buffers: '4GB',
  effective_cache_size: '10GB',
  work_mem: '64MB',
  maintenance_work_mem: '1GB',
  temp_buffers: '512MB',
  max_connections: '50',
  random_page_cost: '1.1',
  max_wal_size: '8GB',
  checkpoint_timeout: '30min',
  listen_addresses: '127.0.0.1',
};

export interface Pgstac {
  url: string;
  version: string;
  /** The CPU time of the peer is that of these processes and their children. */
  processes: number[];
  stop(): Promise<void>;
}

/** The peer with the items of these tiles. Undefined if it cannot be installed; logs the reason. */
export async function startPgstac(tiles: Tiles, log: (line: string) => void): Promise<Pgstac | undefined> {
  const bin = postgresFolder();
  if (bin === undefined) {
    log('no pgstac beside ours: there is no PostgreSQL with PostGIS (postgresql-15-postgis-3)');
    return undefined;
  }
  if (!installed(log)) return undefined;
  const folder = join(FOLDER, `db-${EDITION}-${tiles.dates}`);
  const { database, environment } = await startDatabase(bin, folder);
  try {
    await fill(environment, `${folder}.done`, tiles, log);
    const { api, url } = await startApi(environment);
    return {
      url,
      version: versionOf('stac-fastapi-pgstac'),
      processes: [api.pid!, database.pid!],
      async stop() {
        await ended(api, 'SIGTERM');
        await ended(database, 'SIGINT');
      },
    };
  } catch (error) {
    await ended(database, 'SIGINT');
    throw error;
  }
}

function installed(log: (line: string) => void): boolean {
  if (existsSync(join(VENV, 'bin/pypgstac')) && existsSync(join(VENV, 'bin/uvicorn'))) return true;
  log(`installing ${PACKAGES.join(', ')} from PyPI`);
  mkdirSync(FOLDER, { recursive: true });
  const made = spawnSync('python3', ['-m', 'venv', VENV], { encoding: 'utf8' });
  const done =
    made.status === 0
      ? spawnSync(join(VENV, 'bin/pip'), ['install', '-q', ...PACKAGES], { encoding: 'utf8' })
      : made;
  if (done.status !== 0) log(`no pgstac beside ours: ${String(done.stderr).trim().split('\n').at(-1)}`);
  return done.status === 0;
}

async function startDatabase(bin: string, folder: string) {
  const user = databaseUser();
  mkdirSync(FOLDER, { recursive: true });
  if (!existsSync(join(folder, 'PG_VERSION'))) {
    mkdirSync(folder, { recursive: true });
    if (user.uid !== undefined) spawnSync('chown', [`${user.uid}:${user.gid}`, folder]);
    run(join(bin, 'initdb'), ['-D', folder, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8'], { ...user });
  }
  const port = await freePort();
  const settings = { ...SETTINGS, port: String(port), unix_socket_directories: folder };
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const database = endsWithUs(
    spawn(join(bin, 'postgres'), ['-D', folder, ...args], { ...user, stdio: 'ignore' }),
  );
  const environment = {
    ...process.env,
    PGHOST: '127.0.0.1',
    PGPORT: String(port),
    PGUSER: 'postgres',
    PGPASSWORD: 'none',
    PGTZ: 'UTC',
    PGDATABASE: 'postgres',
  };
  const isReady = async () => spawnSync(join(bin, 'pg_isready'), { env: environment }).status === 0;
  if (!(await until(isReady, database))) throw new Error(`PostgreSQL does not start in ${folder}`);
  return { database, environment };
}

type Environment = NodeJS.ProcessEnv;

/** Loads what is not in the database yet, according to the files of `marks`. */
async function fill(
  environment: Environment,
  marks: string,
  tiles: Tiles,
  log: (line: string) => void,
): Promise<void> {
  const done = (what: string) => join(marks, what);
  const unlessDone = async (what: string, work: () => void | Promise<void>) => {
    if (existsSync(done(what))) return;
    await work();
    writeFileSync(done(what), '');
  };
  mkdirSync(marks, { recursive: true });
  await unlessDone('schema', async () => {
    log(`loading ${tiles.name} into PostgreSQL: about half an hour for a million`);
    pypgstac(environment, ['migrate']);
    // Without item_assets, by which pgstac would store common parts once: a search that puts them together again takes longer.
    const collection = toStacCollection(COLLECTION, undefined, BASE);
    pypgstac(environment, ['load', 'collections', 'stdin', '--method', 'upsert'], JSON.stringify(collection));
    // One partition per month and an index on the searched properties, as its documentation advises for large collections.
    sql(environment, `UPDATE pgstac.collections SET partition_trunc = 'month'`);
    const queryables = { properties: { 'eo:cloud_cover': { type: 'number', minimum: 0, maximum: 100 } } };
    writeFileSync(done('queryables.json'), JSON.stringify(queryables));
    pypgstac(environment, [
      'load_queryables',
      done('queryables.json'),
      '--index_fields',
      '["eo:cloud_cover"]',
    ]);
  });
  const loadMonth = async ({ month, records }: Month) => {
    const started = performance.now();
    // Delete the items that an interrupted run may have left.
    const first = `timestamptz '${month}-01Z'`;
    sql(
      environment,
      `DELETE FROM pgstac.items WHERE datetime >= ${first} AND datetime < ${first} + interval '1 month'`,
    );
    await load(environment, records);
    log(`${month}: ${records.length} items in ${((performance.now() - started) / 1000).toFixed(0)} s`);
  };
  const lane = async (number: number) => {
    let nth = 0;
    for (const one of byMonth(tiles))
      if (nth++ % CONCURRENCY === number) await unlessDone(one.month, () => loadMonth(one));
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, (_, i) => lane(i)));
  await unlessDone('vacuum', () => sql(environment, 'VACUUM ANALYZE'));
}

/** Concurrent loaders. */
const CONCURRENCY = 2;

interface Month {
  month: string;
  records: TileRecord[];
}

function* byMonth(tiles: Tiles): Generator<Month> {
  let month = '';
  let records: TileRecord[] = [];
  for (const record of wholeRecords(tiles)) {
    const its = new Date(record.start).toISOString().slice(0, 7);
    if (its !== month) {
      if (records.length > 0) yield { month, records };
      month = its;
      records = [];
    }
    records.push(record);
  }
  yield { month, records };
}

const BASE = 'http://127.0.0.1';

async function load(environment: Environment, records: TileRecord[]): Promise<void> {
  const args = ['load', 'items', 'stdin', '--method', 'insert'];
  const child = spawn(join(VENV, 'bin/pypgstac'), args, {
    env: environment,
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  let problem = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    problem = (problem + text).slice(-2_000);
  });
  const closed = once(child, 'close');
  const lines = Readable.from(
    (function* () {
      for (const record of records) yield `${JSON.stringify(toStacItem(record, COLLECTION, BASE))}\n`;
    })(),
  );
  // If the loader fails, its output has the reason.
  await pipeline(lines, child.stdin).catch(() => undefined);
  const [code] = await closed;
  if (code !== 0) throw new Error(`pypgstac ${args.join(' ')} failed: ${problem}`);
}

function pypgstac(environment: Environment, args: string[], input = ''): void {
  run(join(VENV, 'bin/pypgstac'), args, { env: environment, input });
}

function sql(environment: Environment, statement: string): void {
  run('psql', ['-qX', '-v', 'ON_ERROR_STOP=1', '-c', statement], { env: environment });
}

/**
 * uvicorn as it is by default: one process, with uvloop and httptools, and a log of the requests. Items get their last members
 * in the API and not in the database, which takes a sixth less CPU time.
 */
async function startApi(environment: Environment): Promise<{ api: ChildProcess; url: string }> {
  const port = await freePort();
  const args = ['stac_fastapi.pgstac.app:create_app', '--factory', '--port', String(port)];
  const env = { ...environment, USE_API_HYDRATE: 'TRUE' };
  const api = endsWithUs(spawn(join(VENV, 'bin/uvicorn'), args, { env, stdio: 'ignore' }));
  const url = `${BASE}:${port}`;
  const answers = () =>
    fetch(`${url}/collections`).then(
      ({ ok }) => ok,
      () => false,
    );
  if (await until(answers, api)) return { api, url };
  await ended(api, 'SIGKILL');
  throw new Error('stac-fastapi-pgstac does not start');
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'close');
  child.kill(signal);
  await closed;
}

function versionOf(name: string): string {
  const script = `import importlib.metadata as m; print(m.version('${name}'))`;
  return spawnSync(join(VENV, 'bin/python'), ['-c', script], { encoding: 'utf8' }).stdout.trim();
}

function run(program: string, args: string[], options: SpawnSyncOptions): void {
  const { status, stderr, error } = spawnSync(program, args, { ...options, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed: ${error?.message ?? stderr}`);
}
