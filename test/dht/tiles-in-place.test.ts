/** Tiles in a shared store are plain files that GDAL can open in place. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { openNode } from '../../src/node.js';
import { filesOf } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';
import { hasGdal } from '../support/gdal.js';
import { ingest, tilesOf } from '../support/node.js';
import { BUCKET, CREDENTIALS, S3Server, s3SkipReason, setEnvironment } from '../support/s3.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

/** Object names of the files of some ingested tiles. */
async function ingestInto(t: TestContext, folder: string, store: string): Promise<string[]> {
  const cluster = {
    store,
    etcd: [],
    name: 'default',
    advertise: 'http://127.0.0.1:1',
    zone: 'a',
    weight: 1,
    owners: 1,
    secrets: ['s'],
  };
  const data = join(folder, 'data');
  const node = await openNode({
    data,
    memory: 512e6,
    cores: 1,
    reserve: 0,
    allowFolders: [folder],
    cluster,
  });
  atEnd(t, () => node.close());
  const path = await writeTestScene(join(folder, 'scene.tif'), { seed: 1 });
  await ingest(node, {
    href: path,
    collection: 'made-up',
    datetime: '2024-06-01T10:00:00Z',
    precision: 6,
  });
  const found = await tilesOf(node);
  assert.ok(found.length > 0);
  return found.map((tile) => filesOf(tile)[0]!.path);
}

function sizeOf(path: string, env: Record<string, string> = {}): number[] {
  const text = execFileSync('gdalinfo', ['-json', path], { env: { ...process.env, ...env } }).toString();
  return (JSON.parse(text) as { size: number[] }).size;
}

test('gdalinfo opens a tile in a shared folder by its path', {
  skip: !hasGdal && 'GDAL is not installed',
}, async (t) => {
  const folder = await tempFolder(t);
  const store = join(folder, 'store');
  await mkdir(store);
  const [name] = await ingestInto(t, folder, pathToFileURL(store).href);
  const [width, height] = sizeOf(join(store, name!));
  assert.ok(width! > 0 && height! > 0);
});

test('gdalinfo opens a tile in a bucket by /vsis3/', {
  skip: hasGdal ? s3SkipReason : 'GDAL is not installed',
}, async (t) => {
  const folder = await tempFolder(t);
  const server = await S3Server.start(t);
  setEnvironment(t, { ...CREDENTIALS, AWS_ENDPOINT_URL_S3: server.endpoint, AWS_REGION: 'us-east-1' });
  const [name] = await ingestInto(t, folder, `s3://${BUCKET}/some/prefix`);
  const [width, height] = sizeOf(`/vsis3/${BUCKET}/some/prefix/${name}`, {
    AWS_S3_ENDPOINT: server.endpoint.replace('http://', ''),
    AWS_HTTPS: 'NO',
    AWS_VIRTUAL_HOSTING: 'FALSE',
  });
  assert.ok(width! > 0 && height! > 0);
});
