/**
 * Third-party programs against the real server: stac-api-validator, pystac-client and folium from PyPI, GDAL, and QGIS and leafmap if
 * they are installed. A test is skipped if its program is not available.
 */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { basename, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import sharp from 'sharp';
import { writeLandsatLikeScene, writeSafe } from '../../data-samples/index.js';
import { needsChromium, withPage } from '../support/chromium.js';
import { finished, start, tilewright } from '../support/command.js';
import { hasGdal } from '../support/gdal.js';
import { tempFolder } from '../support/temp.js';
import { PYSTAC_SCRIPT } from './pystac-script.js';
import { clientScript, installPython, outputOf, pythonWith } from './python.js';

interface Item {
  id: string;
  geometry: object;
  bbox: [west: number, south: number, east: number, north: number];
  properties: Record<string, unknown>;
  assets: Record<string, { href: string; 'proj:transform': number[] }>;
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
  const packages = ['stac-api-validator==0.6.8', 'pystac-client==0.9.1', 'jsonschema', 'folium==0.20.0'];
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

/** Complaints of the validator that are wrong, and why. */
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
  // Warnings precede them; most are advice on style.
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
  // The pixels of a tile cover its cell, and its bbox only the parts with data.
  const transforms = found.features.map((one) => one.assets[group]!['proj:transform']);
  const west = Math.min(...transforms.map((numbers) => numbers[2]!));
  const north = Math.max(...transforms.map((numbers) => numbers[5]!));
  assert.ok(Math.abs(mosaic.geoTransform[0] - west) < 1e-9);
  assert.ok(Math.abs(mosaic.geoTransform[3] - north) < 1e-9);
});

test('GDAL reads the picture of an Item in place', async (t) => {
  if (!hasGdal) return t.skip('GDAL is not installed');
  // The first bytes that GDAL requests contain a whole small picture.
  const search = `${url}/search?collections=${COLLECTION}&limit=1&sortby=-pixel_coverage`;
  const { features } = (await (await fetch(search)).json()) as { features: [Item] };
  const { href } = features[0].assets['thumbnail']!;
  const output = await outputOf('gdalinfo', ['-json', '-checksum', `/vsicurl/${href}`]);
  assert.doesNotMatch(output, /ERROR/);
  const read = JSON.parse(output);
  const { width, height } = await sharp(Buffer.from(await (await fetch(href)).arrayBuffer())).metadata();
  assert.deepEqual([read.driverShortName, ...read.size], ['PNG', width, height]);
});

test('QGIS shows map tiles, OGC API Features, tile files and mosaics', async (t) => {
  const qgis = await pythonWith('qgis');
  if (!qgis) return t.skip('PyQGIS is not installed');
  // QGIS stores its settings and its cache of responses in the home folder.
  const env = { HOME: folder, QT_QPA_PLATFORM: 'offscreen', XDG_RUNTIME_DIR: folder };
  const output = await outputOf(qgis, [clientScript('qgis_client.py'), url, COLLECTION], folder, env);
  assert.match(output, /all good\s*$/m, output);
  assert.doesNotMatch(output, /Traceback/);
});

test('leafmap searches, and puts map tiles on its maps', async (t) => {
  const leafmap = await pythonWith('leafmap');
  if (!leafmap) return t.skip('leafmap is not installed');
  const output = await outputOf(leafmap, [clientScript('leafmap_client.py'), url, COLLECTION]);
  assert.match(output, /all good\s*$/, output);
});

test('a page of folium shows map tiles and the outlines of what a search finds', needsChromium, async (t) => {
  if (python.reason !== undefined) return t.skip(python.reason);
  const file = join(folder, 'folium.html');
  const script = [clientScript('folium_client.py'), url, COLLECTION, file];
  const { outlines } = JSON.parse(await outputOf(join(python.bin, 'python'), script));
  const leaflet = fileURLToPath(new URL('../../../node_modules/leaflet/dist/', import.meta.url));
  await withPage(1000, async (page) => {
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (message) => complaints.push(message.text()));
    // Such a page loads its scripts and styles from other hosts. The map needs only Leaflet.
    await page.route(
      ({ protocol, origin }) => protocol.startsWith('http') && origin !== url,
      (route) => {
        const name = basename(new URL(route.request().url()).pathname);
        return route.fulfill(/^leaflet\.(js|css)$/.test(name) ? { path: join(leaflet, name) } : { body: '' });
      },
    );
    await page.goto(pathToFileURL(file).href);
    await page.waitForFunction(() => {
      const tiles = [...document.querySelectorAll<HTMLElement>('.leaflet-tile')];
      return tiles.length > 0 && tiles.every((one) => one.style.opacity === '1');
    });
    assert.equal(await page.locator('path.leaflet-interactive').count(), outlines);

    // The tile in the middle is inside the window.
    const { src, x, y } = await page.evaluate(() => {
      const [right, down] = [innerWidth / 2, innerHeight / 2];
      const tile = [...document.querySelectorAll<HTMLImageElement>('.leaflet-tile')].find((one) => {
        const box = one.getBoundingClientRect();
        return box.left <= right && right < box.right && box.top <= down && down < box.bottom;
      })!;
      const box = tile.getBoundingClientRect();
      return { src: tile.src, x: box.left, y: box.top };
    });
    const clip = { x, y, width: 256, height: 256 };
    const shown = await sharp(await page.screenshot({ clip }))
      .removeAlpha()
      .raw()
      .toBuffer();
    const sent = await sharp(Buffer.from(await (await fetch(src)).arrayBuffer()))
      .ensureAlpha()
      .raw()
      .toBuffer();
    let [opaque, equal] = [0, 0];
    for (let i = 0; i < 256 * 256; i++) {
      if (sent[4 * i + 3] !== 255) continue;
      opaque++;
      equal += Number([0, 1, 2].every((band) => shown[3 * i + band] === sent[4 * i + band]));
    }
    // Outlines cover some pixels.
    assert.ok(opaque > 1000 && equal > 0.9 * opaque, `${equal} of ${opaque} pixels of ${src}`);
    assert.deepEqual(complaints, []);
  });
});
