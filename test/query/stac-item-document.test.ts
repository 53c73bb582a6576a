import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cellBbox, gridByName } from '../../src/grid/index.js';
import { searchTiles, toStacCollection, toStacItem } from '../../src/query/index.js';
import type { GroupAsset } from '../../src/query/stac/items.js';
import { type CollectionRecord, ColumnIndex, type GroupRecord } from '../../src/storage/index.js';
import { areaOf } from './oracle.js';
import { isOutlineOf } from './spatial-oracle.js';
import { tile, tiles } from './tiles.js';

const collection: CollectionRecord = {
  id: 'sentinel-2-l2a',
  title: 'Sentinel-2 L2A',
  grid: 'geohash',
  precision: 5,
  license: 'proprietary',
  licenseUrl: 'https://example.com/terms',
  attribution: 'Contains modified Copernicus Sentinel data [year]',
  providers: [{ name: 'ESA', roles: ['producer'], url: 'https://www.esa.int' }],
  createdAt: Date.UTC(2024, 0, 1),
};

const group = (part: Partial<GroupRecord>): GroupRecord => ({
  name: '10m',
  file: '10m',
  role: 'data',
  dataType: 'uint16',
  width: 390,
  height: 486,
  nodata: 0,
  bands: [{ name: 'B04', commonName: 'red', scale: 0.0001, offset: -0.1, validPercent: 98.5 }],
  bytes: 1,
  crc32: 1,
  ...part,
});

const mask = group({
  name: 'mask',
  role: 'mask',
  dataType: 'uint8',
  nodata: null,
  bands: [{ name: 'mask', scale: 1, offset: 0, validPercent: 98.5 }],
});

const record = tile({
  collection: collection.id,
  scene: 'S2A_20180710T185921_10SEG',
  start: Date.UTC(2018, 6, 10, 18, 59, 21),
  end: Date.UTC(2018, 6, 10, 18, 59, 21),
  platform: 'sentinel-2a',
  coverage: 98.5,
  cloudCover: 12.25,
  groups: [group({}), mask],
  footprint: [
    [-122.43, 37.75],
    [-122.4, 37.75],
    [-122.4, 37.79],
    [-122.43, 37.75],
  ],
});

test('an Item has the members that STAC 1.0.0 and its extensions require', () => {
  const item = toStacItem(record, collection, 'http://localhost:8080/');
  assert.equal(item.type, 'Feature');
  assert.equal(item.stac_version, '1.0.0');
  assert.deepEqual(
    item.stac_extensions.map((uri) => uri.match(/github\.io\/(.*)\/schema\.json$/)?.[1]),
    ['eo/v1.1.0', 'raster/v1.1.0', 'projection/v1.1.0', 'grid/v1.1.0', 'version/v1.2.0'],
  );
  assert.equal(item.id, 'sentinel-2-l2a_S2A_20180710T185921_10SEG_g9q8yy');
  assert.deepEqual(item.properties, {
    datetime: '2018-07-10T18:59:21.000Z',
    created: '2018-07-01T00:00:00.000Z',
    platform: 'sentinel-2a',
    license: 'proprietary',
    attribution: 'Contains modified Copernicus Sentinel data 2018',
    geocode: '9q8yy',
    'grid:code': 'GEOHASH-9q8yy',
    scene: 'S2A_20180710T185921_10SEG',
    version: 'v',
    source: 'raw',
    pixel_coverage: 98.5,
    'eo:cloud_cover': 12.25,
    'proj:epsg': 4326,
    'proj:bbox': [-122.431640625, 37.7490234375, -122.3876953125, 37.79296875],
    'proj:geometry': { type: 'Polygon', coordinates: [record.footprint] },
  });
  const links = Object.fromEntries(item.links.map((link) => [link.rel, link.href]));
  const base = 'http://localhost:8080';
  assert.deepEqual(links, {
    self: `${base}/collections/sentinel-2-l2a/items/${record.id}`,
    parent: `${base}/collections/sentinel-2-l2a`,
    collection: `${base}/collections/sentinel-2-l2a`,
    root: `${base}/`,
    license: 'https://example.com/terms',
  });
  assert.deepEqual(JSON.parse(JSON.stringify(item)), item);
});

test('assets carry bands and position', () => {
  const { assets } = toStacItem(record, collection, 'http://localhost:8080');
  assert.deepEqual(Object.keys(assets), ['10m', 'mask', 'thumbnail']);
  assert.deepEqual(assets['10m'], {
    href: `http://localhost:8080/tiles/${record.id}/10m.tif`,
    type: 'image/tiff; application=geotiff; profile=cloud-optimized',
    title: '10m: B04',
    roles: ['data'],
    'proj:shape': [486, 390],
    'proj:transform': [0.0439453125 / 390, 0, -122.431640625, 0, -0.0439453125 / 486, 37.79296875],
    'eo:bands': [{ name: 'B04', common_name: 'red' }],
    'raster:bands': [
      {
        nodata: 0,
        data_type: 'uint16',
        scale: 0.0001,
        offset: -0.1,
        valid_percent: 98.5,
        statistics: { valid_percent: 98.5 },
      },
    ],
  });
  assert.equal(assets['mask']!.roles[0], 'mask');
  const mask = assets['mask'] as GroupAsset;
  assert.ok(!('nodata' in mask['raster:bands']![0]!));
  assert.deepEqual(mask['eo:bands'], [{ name: 'mask' }]);
  assert.deepEqual(assets['thumbnail'], {
    href: `http://localhost:8080/preview/${record.id}.png`,
    type: 'image/png',
    title: 'preview',
    roles: ['thumbnail'],
  });
});

test('unknown values are absent', () => {
  const bare = tile({ platform: null, cloudCover: null, footprint: [] });
  const { attribution: _a, licenseUrl: _l, providers: _p, ...unattributed } = collection;
  const { properties, links } = toStacItem(bare, unattributed, 'http://h');
  const document = toStacCollection(unattributed, undefined, 'http://h');
  assert.ok(!('attribution' in document) && !('providers' in document));
  for (const { rel } of [...links, ...document.links]) assert.notEqual(rel, 'license');
  for (const name of ['eo:cloud_cover', 'platform', 'start_datetime', 'end_datetime', 'attribution']) {
    assert.ok(!(name in properties), name);
  }
  const [west, south, east, north] = properties['proj:bbox'] as number[];
  assert.deepEqual(properties['proj:geometry'], {
    type: 'Polygon',
    coordinates: [
      [
        [west, south],
        [east, south],
        [east, north],
        [west, north],
        [west, south],
      ],
    ],
  });
  assert.equal(document.itemType, 'feature');
});

test('periods have both ends, derived tiles name their inputs, and nodata may be NaN', () => {
  const end = Date.UTC(2018, 6, 18);
  const period = tile({
    end,
    source: 'coalesced',
    derivedFrom: ['a_s1_g9q8yy', 'a_s2_g9q8yy'],
    groups: [group({ dataType: 'float32', nodata: Number.NaN })],
  });
  const item = toStacItem(period, collection, 'http://h');
  assert.equal(item.properties['datetime'], '2018-07-01T00:00:00.000Z');
  assert.equal(item.properties['start_datetime'], '2018-07-01T00:00:00.000Z');
  assert.equal(item.properties['end_datetime'], '2018-07-18T00:00:00.000Z');
  assert.equal(item.properties['source'], 'coalesced');
  assert.deepEqual(
    item.links.filter((link) => link.rel === 'derived_from').map((link) => link.href),
    ['http://h/collections/a/items/a_s1_g9q8yy', 'http://h/collections/a/items/a_s2_g9q8yy'],
  );
  assert.equal((item.assets['10m'] as GroupAsset)['raster:bands']![0]!['nodata'], 'nan');
});

test('floats without a nodata value have NaN, integers have none', () => {
  const { bands } = group({});
  const spectrum = Array.from({ length: 40 }, (_, i) => ({
    ...bands[0]!,
    name: `${i}`,
    wavelength: 400 + i,
  }));
  const nodataOf = (part: Partial<GroupRecord>) => {
    const groups = [group({ ...part, nodata: null })];
    const asset = toStacItem(tile({ groups }), collection, 'http://h').assets['10m'] as GroupAsset;
    return asset['raster:bands']?.[0]?.['nodata'] ?? asset.nodata;
  };
  assert.equal(nodataOf({ dataType: 'float32' }), 'nan');
  assert.equal(nodataOf({ dataType: 'float64', bands: spectrum }), 'nan');
  assert.equal(nodataOf({ dataType: 'int16' }), undefined);
});

test('geometry is the area with data in degrees; the transform maps pixels from its north-west to its south-east corner', async () => {
  await fc.assert(
    fc.asyncProperty(
      tiles,
      fc.integer({ min: 1, max: 600 }),
      fc.integer({ min: 1, max: 600 }),
      async (some, width, height) => {
        const item = toStacItem({ ...some, groups: [group({ width, height })] }, collection, 'http://h');
        const grid = gridByName(some.grid);
        const { west, south, east, north } = grid.bounds(some.geocode);
        assert.ok(isOutlineOf(item.geometry, areaOf(some)), some.dataParts);
        const index = new ColumnIndex();
        index.load([some]);
        for (const op of ['s_equals', 's_within', 's_contains'] as const)
          assert.deepEqual((await searchTiles(index, { op, shape: item.geometry })).ids, [some.id], op);
        const { type, coordinates } = item.geometry;
        const polygons = type === 'Polygon' ? [coordinates] : coordinates;
        assert.equal(type === 'Polygon', polygons.length === 1);
        const positions = polygons.flat(2);
        const [lons, lats] = [positions.map(([x]) => x), positions.map(([, y]) => y)];
        const corners = [Math.min(...lons), Math.min(...lats), Math.max(...lons), Math.max(...lats)];
        assert.deepEqual(item.bbox, corners);
        if (some.dataParts === undefined) assert.deepEqual(item.bbox, cellBbox(grid, some.geocode));
        for (const rings of polygons)
          for (const [hole, ring] of rings.entries()) {
            assert.deepEqual(ring[0], ring.at(-1));
            assert.equal(new Set(ring.map(String)).size, ring.length - 1, 'no ring touches itself');
            const twiceArea = ring
              .slice(1)
              .reduce((sum, [x, y], i) => sum + ring[i]![0] * y - x * ring[i]![1], 0);
            assert.ok(hole === 0 ? twiceArea > 0 : twiceArea < 0, 'counterclockwise, holes clockwise');
          }
        const [xx, xy, x0, yx, yy, y0] = (item.assets['10m'] as GroupAsset)['proj:transform'] as [
          number,
          number,
          number,
          number,
          number,
          number,
        ];
        assert.deepEqual([x0, y0, xy, yx], [west, north, 0, 0]);
        const tolerance = 1e-12 * (grid.extent.east - grid.extent.west);
        assert.ok(
          Math.abs(x0 + xx * width - east) < tolerance && Math.abs(y0 + yy * height - south) < tolerance,
        );
        assert.equal(item.properties['proj:epsg'], some.grid === 'geohash' ? 4326 : 3857);
        assert.match(String(item.properties['grid:code']), /^(GEOHASH|QUADTILE)-[0-9a-z]+$/);
      },
    ),
    { seed: 42, numRuns: 200 },
  );
});

test('a collection has its extent, licence and links', () => {
  const extent = {
    bbox: [-123, 37, -122, 38] as [number, number, number, number],
    start: 0,
    end: Date.UTC(2018, 0, 1),
  };
  const document = toStacCollection(collection, extent, 'http://h/');
  assert.equal(document.type, 'Collection');
  assert.equal(document.id, collection.id);
  assert.equal(document.license, 'proprietary');
  assert.equal(document.attribution, 'Contains modified Copernicus Sentinel data 1970-2018');
  assert.deepEqual(document.providers, collection.providers);
  assert.deepEqual(document.extent, {
    spatial: { bbox: [[-123, 37, -122, 38]] },
    temporal: { interval: [['1970-01-01T00:00:00.000Z', '2018-01-01T00:00:00.000Z']] },
  });
  const links = Object.fromEntries(document.links.map((link) => [link.rel, link.href]));
  assert.equal(links['license'], 'https://example.com/terms');
  assert.equal(links['items'], 'http://h/collections/sentinel-2-l2a/items');
  assert.equal(links['tilejson'], 'http://h/xyz/sentinel-2-l2a/tilejson.json');
  assert.equal(links['xyz'], 'http://h/xyz/sentinel-2-l2a/{z}/{x}/{y}.png');
  assert.match(document.stac_extensions.join(), /web-map-links/);
  const empty = toStacCollection(collection, undefined, 'http://h');
  assert.deepEqual(empty.extent, {
    spatial: { bbox: [[-180, -90, 180, 90]] },
    temporal: { interval: [[null, null]] },
  });
  assert.ok(
    empty.links.every(({ rel }) => rel !== 'tilejson'),
    'what has no tiles is on no map',
  );
});

test('every Item has the licence of its collection and the attribution of its own year', () => {
  const source = tile({ start: Date.UTC(2021, 11, 31, 23), end: Date.UTC(2022, 0, 1) });
  const derived = tile({ ...source, source: 'filled', derivedFrom: [source.id], end: source.start });
  const { properties } = toStacItem(source, collection, 'http://h');
  assert.equal(properties['attribution'], 'Contains modified Copernicus Sentinel data 2021-2022');
  const item = toStacItem(derived, collection, 'http://h');
  assert.equal(item.properties['attribution'], 'Contains modified Copernicus Sentinel data 2021');
  assert.equal(item.properties['license'], 'proprietary');
});
