/**
 * Programs of other people against the real server: stac-api-validator and pystac-client from PyPI, and GDAL. Skipped where
 * these cannot be had.
 */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { writeLandsatLikeScene, writeSafe } from '../../data-samples/index.js';
import { finished, start, tilewright } from '../support/command.js';
import { hasGdal } from '../support/gdal.js';
import { tempFolder } from '../support/temp.js';
import { PYSTAC_SCRIPT } from './pystac-script.js';
import { installPython, outputOf } from './python.js';

interface Item {
  id: string;
  geometry: object;
  bbox: [west: number, south: number, east: number, north: number];
  properties: Record<string, unknown>;
  assets: Record<string, { href: string }>;
}

const COLLECTION = 'sentinel-2-l2a';
let folder: string;
let server: ChildProcess;
let url: string;
let item: Item;
let python: Awaited<ReturnType<typeof installPython>>;
const cleanUp: (() => Promise<void>)[] = [];

before(async () => {
  folder = await tempFolder({ after: (work) => void cleanUp.push(work as () => Promise<void>) });
  const packages = ['stac-api-validator==0.6.8', 'pystac-client==0.9.1', 'jsonschema'];
  [python] = await Promise.all([installPython(join(folder, 'python'), packages), serveSamples()]);
});

async function serveSamples(): Promise<void> {
  const safe = await writeSafe(join(folder, 'safe'), { level: 'L2A' });
  await writeLandsatLikeScene(join(folder, 'landsat'));
  const data = join(folder, 'data');
  server = start(['serve', '--data', data, '--port', '0', '--format', 'json', '--memory', '512MB']);
  const [first] = (await once(server.stdout as NodeJS.ReadableStream, 'data')) as [string];
  server.stdout?.resume();
  server.stderr?.resume();
  url = JSON.parse(first).url;
  const ingested = await tilewright('ingest', safe.path, join(folder, 'landsat'), '--data', data);
  assert.equal(ingested.code, 0, ingested.stderr);
  const search = `${url}/search?limit=1&collections=${COLLECTION}&filter=eo:cloud_cover%20IS%20NOT%20NULL`;
  item = ((await (await fetch(search)).json()) as { features: Item[] }).features[0]!;
}

after(async () => {
  const end = finished(server);
  server.kill('SIGTERM');
  await end;
  for (const work of cleanUp) await work();
});

/** What the validator says against us that is not so, and why. */
const KNOWN: [RegExp, string][] = [
  [
    /schemas\.stacspec\.org|stac-extensions\.github\.io|geojson\.org/,
    'the schemas cannot be fetched from here',
  ],
  [/mission/, 'it asks for a property that /queryables does not list, and wants an answer'],
  [/"in": \["sentinel-2a"/, 'it takes a text for a list of its letters'],
];

test('stac-api-validator finds no fault', async (t) => {
  if (python.reason !== undefined) return t.skip(python.reason);
  const classes = ['core', 'collections', 'features', 'item-search', 'filter'].concat(
    ['item-search#sort', 'item-search#fields', 'item-search#query'],
    ['features#sort', 'features#fields', 'features#query'],
  );
  const cloud = String(item.properties['eo:cloud_cover']);
  const platform = String(item.properties['platform']);
  const flags = {
    'root-url': `${url}/`,
    collection: COLLECTION,
    geometry: JSON.stringify(item.geometry),
    'fields-nested-property': 'properties.eo:cloud_cover',
    'query-comparison-field': 'eo:cloud_cover',
    'query-eq-value': cloud,
    'query-neq-value': cloud,
    'query-lt-value': '90',
    'query-lte-value': '90',
    'query-gt-value': '0',
    'query-gte-value': '0',
    'query-substring-field': 'platform',
    'query-starts-with-value': platform.slice(0, 4),
    'query-ends-with-value': platform.slice(-2),
    'query-contains-value': platform.slice(2, 5),
    'query-in-field': 'platform',
    'query-in-values': platform,
  };
  const output = await outputOf(join(python.bin, 'stac-api-validator'), [
    ...Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]),
    ...classes.flatMap((one) => ['--conformance', one]),
    '--validate-pagination',
  ]);
  assert.match(output, /Validating STAC API - Item Search - Filter Extension/, output.slice(-2000));
  assert.doesNotMatch(output, /Traceback/);
  // Before these come warnings, most of them advice on style.
  const errors = output.slice(output.indexOf('\nErrors:'));
  const faults = errors.split('\n').filter((line) => line.startsWith('- '));
  assert.deepEqual(
    faults.filter((line) => !KNOWN.some(([pattern]) => pattern.test(line))),
    [],
  );
  for (const [pattern, why] of KNOWN)
    if (faults.some((line) => pattern.test(line))) t.diagnostic(`passed over: ${why}`);
});

test('pystac-client searches, pages, filters, sorts and reads valid Items', async (t) => {
  if (python.reason !== undefined) return t.skip(python.reason);
  const output = await outputOf(join(python.bin, 'python'), ['-c', PYSTAC_SCRIPT, url, COLLECTION]);
  assert.match(output, /all good\s*$/, output);
});

test('GDAL opens what a search finds as one mosaic, and each file', async (t) => {
  if (!hasGdal) return t.skip('GDAL is not installed');
  const search = `${url}/search?collections=${COLLECTION}&limit=1000`;
  const found = (await (await fetch(search)).json()) as { features: Item[]; numberMatched: number };
  const group = Object.keys(found.features[0]!.assets)[0]!;
  const mosaic = JSON.parse(await outputOf('gdalinfo', ['-json', `STACIT:"${search}":asset=${group}`]));
  assert.equal(mosaic.files.length, found.numberMatched);
  const { href } = found.features[0]!.assets[group]!;
  const file = JSON.parse(await outputOf('gdalinfo', ['-json', '-checksum', `/vsicurl/${href}`]));
  assert.equal(file.bands.length, mosaic.bands.length);
  assert.deepEqual(
    file.bands.map((band: { description: string }) => band.description),
    mosaic.bands.map((band: { description: string }) => band.description),
  );
  const west = Math.min(...found.features.map((one) => one.bbox[0]));
  const north = Math.max(...found.features.map((one) => one.bbox[3]));
  assert.ok(Math.abs(mosaic.geoTransform[0] - west) < 1e-9);
  assert.ok(Math.abs(mosaic.geoTransform[3] - north) < 1e-9);
});
