/** Every kind of Item, Collection and Catalog that a server answers, against the schemas of STAC and of the extensions it names. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Ajv, type AnySchemaObject } from 'ajv';
import addFormats from 'ajv-formats';
import { writeLandsatLikeScene, writeSafe } from '../../data-samples/index.js';
import { openNode } from '../../src/node.js';
import { writeCube } from '../hyperspectral/cubes.js';
import { atEnd } from '../support/at-end.js';
import { putModel } from '../support/models.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { bytesOf, writeRaster } from '../support/rasters.js';
import { runJob } from '../support/run-job.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

const fixtures = fileURLToPath(new URL('../../../test/fixtures/stac-schemas/', import.meta.url));
const CORE = 'https://schemas.stacspec.org/v1.0.0';
const extension = (name: string) => `https://stac-extensions.github.io/${name}/schema.json`;
/** There is no copy of these schemas in the repository. */
const UNCHECKED = ['item-assets/v1.0.0', 'web-map-links/v1.2.0'].map(extension);

interface Document {
  id: string;
  type: 'Feature' | 'Collection' | 'Catalog';
  stac_extensions?: string[];
}

const ajv = new Ajv({ strict: false, allErrors: true });

before(async () => {
  // The CommonJS module is seen through its default member.
  (addFormats as unknown as { default: typeof addFormats.default }).default(ajv);
  ajv.addFormat('iri', true).addFormat('iri-reference', true);
  ajv.addSchema({
    $id: 'https://stac-extensions.github.io/classification/v1.1.0/schema.json',
    definitions: { fields: { properties: { 'classification:classes': {} } } },
  });
  ajv.addSchema({ $id: 'https://proj.org/schemas/v0.7/projjson.schema.json' });
  for (const name of (await readdir(fixtures)).filter((one) => one.endsWith('.json'))) {
    const text = await readFile(join(fixtures, name), 'utf8');
    ajv.addSchema(JSON.parse(text));
    if (name === 'projection-v2.0.0.json') ajv.addSchema(projection1(text));
  }
});

/** Version 1.1.0 of the projection extension: `proj:epsg` in the place of `proj:code`. */
function projection1(text: string): AnySchemaObject {
  const schema = JSON.parse(text.replaceAll('v2.0.0', 'v1.1.0'));
  const { 'proj:code': _code, ...others } = schema.definitions.fields.properties;
  schema.definitions.fields.properties = { ...others, 'proj:epsg': { type: ['integer', 'null'] } };
  return schema;
}

function faultsOf(document: Document): string[] {
  const { type, stac_extensions = [] } = document;
  const kind = type === 'Feature' ? 'item' : type.toLowerCase();
  const wanted = [`${CORE}/${kind}-spec/json-schema/${kind}.json`, ...stac_extensions];
  return wanted
    .filter((url) => !UNCHECKED.includes(url))
    .flatMap((url) => {
      const validate = ajv.getSchema(url);
      if (!validate) return [`no schema ${url} is at hand`];
      return validate(document) ? [] : [`${document.id}: ${url}: ${ajv.errorsText(validate.errors)}`];
    });
}

test('all STAC documents of a server are valid, and collections say what their tiles are', async (t) => {
  const folder = await tempFolder(t);
  const node = await openNode({ data: join(folder, 'data'), memory: 512e6, cores: 2 });
  atEnd(t, () => node.close());
  const ask = async (url: string) => (await node.server.inject(url)).json();

  const catalog = await ask('/');
  assert.deepEqual(faultsOf(catalog), [], 'an empty catalog');
  const options = { collection: 'test', scale: 0.0001, maskBand: 5, precision: 6 };
  for (const [i, cloud] of [40, 10].entries()) {
    const href = await writeTestScene(join(folder, `s${i}.tif`), { seed: i + 1, cloud, edge: 200 * i });
    await ingest(node, { href, id: `s${i}`, datetime: `2024-06-0${i + 1}T10:00:00Z`, ...options });
  }
  const period = { id: 'p', datetime: '2024-06-01T00:00:00Z/2024-06-30T00:00:00Z', grid: 'quadtile' };
  await ingest(node, { href: join(folder, 's0.tif'), collection: 'period', platform: 'made-up', ...period });
  const naip = join(folder, 'm_3211605_ne_11_060_20200415.tif');
  await writeRaster(naip, {
    width: 200,
    height: 160,
    dataType: 'uint8',
    bands: bytesOf(4, 200 * 160, (i, band) => (i + 40 * band) % 251),
    epsg: 26911,
    pixel: 0.5999,
    x: 557_700,
    y: 3_648_377,
  });
  await ingest(node, { href: naip });
  await ingest(node, { href: (await writeSafe(join(folder, 'safe'), { level: 'L2A' })).path });
  await writeLandsatLikeScene(join(folder, 'landsat'));
  await ingest(node, { href: join(folder, 'landsat') });
  assert.equal((await runJob(node, 'fill', { filter: { collections: ['test'] } })).status, 'successful');
  assert.equal(
    (await runJob(node, 'split', { filter: { collections: ['test'], minCoverage: 90 }, precision: 7 }))
      .status,
    'successful',
  );
  assert.equal(
    (await runJob(node, 'coalesce', { filter: { collections: ['test'] }, to: 'period' })).status,
    'successful',
  );

  const { features } = await ask('/search?limit=10000');
  const sources = new Set(
    features.map(({ properties }: { properties: { source: string } }) => properties.source),
  );
  assert.deepEqual([...sources].sort(), ['coalesced', 'filled', 'raw', 'split']);
  const { collections } = await ask('/collections');
  assert.ok(collections.length >= 5, JSON.stringify(collections.map(({ id }: Document) => id)));
  const one = await ask(`/collections/${features[0].collection}/items/${features[0].id}`);
  const documents: Document[] = [await ask('/'), one, ...features, ...collections];
  assert.deepEqual(documents.flatMap(faultsOf).slice(0, 5), []);

  const dates = await tilesOf(node);
  for (const model of ['ndvi', 'ndmi', 'cloud-removal'])
    for (const parent of [undefined, `${model}_test_gu2d8`]) {
      const { id } = await putModel(node.storage, dates.slice(0, 3), { model, parent });
      assert.deepEqual(faultsOf(await ask(`/models/${id}/item`)), []);
    }
  const whole = await ask(`/models/ndvi_${dates[0]!.collection}_g${dates[0]!.geocode}/item`);
  for (const member of ['mlm:tasks', 'mlm:input']) {
    const { [member]: _, ...properties } = whole.properties;
    assert.notDeepEqual(faultsOf({ ...whole, properties }), [], `without ${member}`);
  }
  const quadtile = await putModel(
    node.storage,
    dates.filter(({ grid }) => grid === 'quadtile'),
  );
  assert.deepEqual(faultsOf(await ask(`/models/${quadtile.id}/item`)), []);

  for (const { id, summaries, item_assets } of collections) {
    const own = features.filter(({ collection }: { collection: string }) => collection === id);
    assert.ok(own.length > 0, id);
    for (const { properties, assets } of own) {
      assert.ok(summaries.source.includes(properties.source));
      if (properties.platform) assert.ok(summaries.platform.includes(properties.platform));
      for (const name of ['eo:cloud_cover', 'pixel_coverage'].filter(
        (one) => properties[one] !== undefined,
      )) {
        const { minimum, maximum } = summaries[name];
        assert.ok(minimum <= properties[name] && properties[name] <= maximum, `${id} ${name}`);
      }
      const bandsOf = (asset: { 'eo:bands'?: { name: string }[] }) =>
        (asset['eo:bands'] ?? []).map(({ name }) => name);
      for (const [key, asset] of Object.entries<object>(assets))
        for (const band of bandsOf(asset))
          assert.ok(bandsOf(item_assets[key] ?? {}).includes(band), `${id} ${key} ${band}`);
    }
  }
});

test('maps of classes name their classes and colours', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  await ingest(node, { href: writeCube(folder, 'cube', { side: 30 }), collection: 'cubes', precision: 5 });
  const library = {
    wavelengths: [450, 1400],
    spectra: [
      { name: 'Wälder, grün', values: [0.1, 0.4] },
      { name: 'soil', values: [0.2, 0.3] },
    ],
  };
  const of = { filter: { collections: ['cubes'] }, library, method: 'sam', threshold: 0.1 };
  assert.equal((await runJob(node, 'analyse-match', of)).status, 'successful');
  const { features } = (await node.server.inject('/search?source=match')).json();
  assert.ok(features.length > 0);
  assert.deepEqual(features.flatMap(faultsOf), []);
  assert.deepEqual(features[0].assets.class['classification:classes'], [
    { value: 0, name: 'none', title: 'none', color_hint: '8DD3C7' },
    { value: 1, name: 'W_lder_gr_n', title: 'Wälder, grün', color_hint: 'FFFFB3' },
    { value: 2, name: 'soil', title: 'soil', color_hint: 'BEBADA' },
  ]);
});

test('the schemas refuse what is wrong', () => {
  const broken = { type: 'Catalog', id: 'c', stac_version: '1.0.0', links: [] } as Document;
  assert.match(faultsOf(broken).join(), /description/);
  const unknown = { ...broken, description: 'c', stac_extensions: [extension('eo/v9')] };
  assert.match(faultsOf(unknown as Document).join(), /no schema/);
});
