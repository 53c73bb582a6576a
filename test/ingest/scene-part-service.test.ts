/** How a node ends its work for the scenes of other nodes. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { SharedMemory } from '../../src/ingest/cut/memory.js';
import { IngestPool } from '../../src/ingest/cut/pool.js';
import { ScenePartService } from '../../src/ingest/scene-part-service.js';
import type { ScenePartRequest } from '../../src/ingest/scene-parts.js';
import { Storage } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';
import { eventually } from '../support/eventually.js';
import { rangeServer } from '../support/range-server.js';
import { tempFolder } from '../support/temp.js';

test('a node that stops ends its parts, even if it cannot remove their folder', async (t) => {
  const folder = await tempFolder(t);
  const server = await rangeServer(t, folder);
  // The host does not answer.
  server.fault = () => true;
  const storage = await Storage.open(join(folder, 'data'));
  atEnd(t, () => storage.close());
  const pool = new IngestPool(1, 64e6);
  atEnd(t, () => pool.close());
  storage.scratch.remove = async () => {
    throw new Error('the disk fails');
  };
  const context = { storage, pool, memory: new SharedMemory(64e6), cloudModel: undefined };
  const access = { policy: { hosts: [server.host], anyPublic: false } };
  const parts = new ScenePartService(context, access, (work) => work());
  const collection = { id: 'c', grid: 'geohash', precision: 5, createdAt: 1 };
  const request = { job: 'job000', source: { file: `${server.url}/a.tif` }, options: {}, collection };
  const rest = { scene: 's', version: 'version0', fingerprint: '', cells: ['u26x0'] };
  const asked = { ...request, ...rest } as ScenePartRequest;
  const run = parts.run(asked, () => undefined, new AbortController().signal);
  const ended = assert.rejects(run, { code: 'TW_INGEST_PART_STOPPED' });
  await eventually('a request', () => server.requests.length === 1);
  await parts.close();
  await ended;
  const again = parts.run(asked, () => undefined, new AbortController().signal);
  await assert.rejects(again, { code: 'TW_INGEST_PART_STOPPED' });
});
