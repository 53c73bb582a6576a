/** A server that stops or is killed while it fetches files as a whole. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile, stat } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { ended, freePort, get, serve, until } from '../dht/server-processes.js';
import { hasGdal } from '../support/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import type { Fault } from '../support/range-server.js';
import { remoteCatalog } from '../support/remote-catalog.js';
import { tempFolder } from '../support/temp.js';

const START = 'bytes=0-32767';
const OPTIONS = { bbox: [15.03, 47.75, 15.12, 47.8], precision: 5 };

type Answer = (response: ServerResponse, path: string) => Promise<void>;

/** A host without ranges. */
const sendAll: Answer = async (response, path) => {
  const { mtimeMs, size } = await stat(path);
  response.writeHead(200, { etag: `"${mtimeMs}-${size}"`, 'content-length': size }).end(await readFile(path));
};

const sendStart: Answer = async (response, path) => {
  const { mtimeMs, size } = await stat(path);
  response.writeHead(200, { etag: `"${mtimeMs}-${size}"`, 'content-length': size });
  response.write((await readFile(path)).subarray(0, 40_000));
};

/**
 * Stops a server by a signal when red is here as a whole and nir is not, and starts it again. `first` answers requests for files before the
 * stop, and `second` those for red after it. Both get no request for the start of a file.
 */
async function stopsAndResumes(
  t: TestContext,
  signal: NodeJS.Signals,
  extension: string,
  first: Answer | undefined,
  second: Answer,
) {
  const { server: archive, api, folder: files, items } = await remoteCatalog(t);
  const assets = Object.entries(items[0]!.assets as Record<string, { href: string }>)
    .filter(([key]) => key === 'red' || key === 'nir')
    .map(([key, asset]) => [
      key,
      {
        ...asset,
        href: asset.href.replace(/tif$/, extension),
        ...(extension === 'jp2' && { type: 'image/jp2' }),
      },
    ]);
  items[0] = { ...items[0], assets: Object.fromEntries(assets) };
  if (extension === 'jp2')
    for (const name of ['red', 'nir'])
      await promisify(execFile)('gdal_translate', [
        ...['-q', '-of', 'JP2OpenJPEG', '-co', 'QUALITY=100', '-co', 'REVERSIBLE=YES'],
        ...[join(files, 'a', `${name}.tif`), join(files, 'a', `${name}.jp2`)],
      ]);
  const folder = await tempFolder(t);
  const port = await freePort();
  const data = join(folder, `node-${port}`);
  const run = async () => {
    const server = serve(t, folder, port, undefined, ['--allow-host', archive.host]);
    await until('the server answers', async () => (await fetch(`${server.url}/health`)).ok);
    return server;
  };
  const fault =
    (answerRed: Answer | undefined, answerNir: Answer | undefined, hasRanges: boolean): Fault =>
    async ({ url = '' }, response, { range }) => {
      if (!/\.(tif|jp2)$/.test(url) || (hasRanges && range === START)) return false;
      const answer = url.endsWith(`red.${extension}`) ? answerRed : answerNir;
      await answer?.(response, join(files, url));
      return answer !== undefined;
    };
  const hang: Answer = async () => undefined;
  const hasRanges = first === undefined;
  archive.fault = fault(first, hang, hasRanges);
  const server = await run();
  const inputs = { stac: { url: api }, ...OPTIONS };
  const started = await fetch(`${server.url}/ingest`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(inputs),
  });
  const { jobID } = (await started.json()) as { jobID: string };
  const job = join(data, 'scratch', jobID);
  await until('red is kept', async () => {
    const scene = (await readdir(job)).find((name) => name.startsWith('remote-'));
    return (await readdir(join(job, scene!, 'whole'))).length === 1;
  });
  await ended(server.process, signal);
  archive.fault = fault(second, first, hasRanges);
  const again = await run();
  await until('the job has ended', async () => {
    const { status } = await get<{ status: string }>(again, `/jobs/${jobID}`);
    return status !== 'running' && status !== 'accepted';
  });
  const { failed, scenes } = await get<{ failed: unknown[]; scenes: unknown[] }>(
    again,
    `/jobs/${jobID}/results`,
  );
  assert.deepEqual([failed, scenes.length], [[], 1]);
  await until('the files are removed', async () => (await readdir(join(data, 'scratch'))).length === 0);
  await ended(again.process, 'SIGTERM');

  archive.fault = undefined;
  const hosts = { hosts: [archive.host], anyPublic: false };
  const local = await testNode(t, join(await tempFolder(t), 'local'), { hosts });
  await ingest(local, inputs);
  const resumed = await testNode(t, data, { hosts });
  const groups = async (node: typeof local) =>
    (await tilesOf(node)).map(({ id, groups }) => JSON.stringify([id, groups])).sort();
  assert.deepEqual(await groups(resumed), await groups(local));
}

test('after kill -9, files of a host without ranges that are complete are not downloaded again', (t) =>
  stopsAndResumes(t, 'SIGKILL', 'tif', sendAll, sendStart));

test('after a stop, they are not downloaded again either', (t) =>
  stopsAndResumes(t, 'SIGTERM', 'tif', sendAll, sendStart));

test('after kill -9, complete JPEG 2000 files are not downloaded again', { skip: !hasGdal }, (t) =>
  stopsAndResumes(t, 'SIGKILL', 'jp2', undefined, async (response) => {
    response.writeHead(404).end();
  }),
);
