/** Maps, previews and series over HTTP, also with hostile parameters. */
import assert from 'node:assert/strict';
import { truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import sharp from 'sharp';
import { mapTileAt, nodeWithScenes, pictureOf } from '../imagery/maps.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

const SCENES = [
  { datetime: '2024-06-01T10:00:00Z', cloud: 40, seed: 1 },
  { datetime: '2024-06-11T10:00:00Z', cloud: 0, edge: 100, seed: 2 },
];
/** The middle of the scenes. */
const PLACE = [15.02, 47.843] as const;

test('pictures over HTTP', async (t) => {
  const { node } = await nodeWithScenes(t, SCENES);
  const get = (url: string, headers: Record<string, string> = {}) => node.server.inject({ url, headers });
  const map = mapTileAt(14, ...PLACE);
  const at = `/xyz/test/14/${map.x}/${map.y}`;

  await t.test('a map tile is true colour by default, transparent where nothing is', async () => {
    const { pixels, width, height } = await pictureOf(node, `${at}.png`);
    assert.deepEqual([width, height], [256, 256]);
    const opaque = pixels.filter((value, i) => i % 4 === 3 && value === 255).length;
    assert.ok(opaque > 30_000, `${opaque}`);
    // Red is stored as about 700, times 0.0001, in the range 0 to 0.3.
    const reds = pixels.filter((_, i) => i % 4 === 0 && pixels[i + 3] === 255);
    const mean = reds.reduce((a, b) => a + b, 0) / reds.length;
    assert.ok(Math.abs(mean - (0.072 / 0.3) * 255) < 8, `${mean}`);
    const far = await pictureOf(node, '/xyz/test/14/0/0.png');
    assert.ok(far.pixels.every((value) => value === 0));
  });

  await t.test('twice the pixels, and webp', async () => {
    const large = await pictureOf(node, `${at}@2x.png`);
    assert.deepEqual([large.width, large.height], [512, 512]);
    const answer = await get(`${at}.webp?expression=ndvi&colormap_name=RdYlGn&rescale=-1,1`);
    assert.equal(answer.headers['content-type'], 'image/webp');
    assert.equal((await sharp(answer.rawPayload).metadata()).format, 'webp');
  });

  await t.test('a client that has the picture gets 304', async () => {
    const { headers } = await get(`${at}.png`);
    assert.match(String(headers['cache-control']), /max-age/);
    assert.equal((await get(`${at}.png`, { 'if-none-match': String(headers.etag) })).statusCode, 304);
    const head = await node.server.inject({ method: 'HEAD', url: `${at}.png` });
    assert.equal(head.statusCode, 200);
  });

  await t.test('a range of a picture is sent alone, as GDAL reads it', async () => {
    const { rawPayload, headers } = await get(`${at}.png`);
    assert.equal(headers['accept-ranges'], 'bytes');
    const range = async (wanted: string) => get(`${at}.png`, { range: wanted });
    const part = await range('bytes=10-99');
    assert.equal(part.statusCode, 206);
    assert.equal(part.headers['content-type'], 'image/png');
    assert.equal(part.headers['content-range'], `bytes 10-99/${rawPayload.length}`);
    assert.deepEqual(part.rawPayload, rawPayload.subarray(10, 100));
    const beyond = await range(`bytes=${rawPayload.length}-`);
    assert.equal(beyond.statusCode, 416);
    assert.equal(beyond.json().code, 'TW_API_RANGE');
    const other = await get(`${at}.png`, { range: 'bytes=10-99', 'if-range': '"another"' });
    assert.equal(other.statusCode, 200);
    assert.deepEqual(other.rawPayload, rawPayload);
    const head = await node.server.inject({ method: 'HEAD', url: `${at}.png` });
    assert.equal(head.headers['content-length'], String(rawPayload.length));
  });

  await t.test('TileJSON keeps the query, and its URL works', async () => {
    const query = 'expression=(nir-red)%2F(nir%2Bred)&rescale=-1,1&colormap_name=viridis&maxCloud=50';
    const json = (await get(`/xyz/test/tilejson.json?${query}&tile_format=webp&tile_scale=2`)).json();
    assert.equal(json.tilejson, '3.0.0');
    const [west, south, east, north] = json.bounds;
    assert.ok(west < PLACE[0] && PLACE[0] < east && south < PLACE[1] && PLACE[1] < north);
    assert.ok(json.minzoom <= 13 && json.maxzoom >= 14, `${json.minzoom} to ${json.maxzoom}`);
    const address = new URL(json.tiles[0]);
    assert.match(address.pathname, /@2x\.webp$/);
    assert.equal(address.searchParams.get('expression'), '(nir-red)/(nir+red)');
    assert.equal(address.searchParams.get('tile_format'), null);
    const real = new URL(json.tiles[0].replace('{z}', map.z).replace('{x}', map.x).replace('{y}', map.y));
    assert.equal((await get(real.pathname + real.search)).statusCode, 200);
    const { low, high, colours } = json.colour_scale;
    assert.deepEqual([low, high, colours[0], colours.at(-1)], [-1, 1, '#440154', '#fde724']);
    const grey = (await get('/xyz/test/tilejson.json?assets=nir')).json().colour_scale;
    assert.ok(grey.low < grey.high);
    assert.deepEqual([grey.colours[0], grey.colours.at(-1)], ['#000000', '#ffffff']);
    assert.equal((await get('/xyz/test/tilejson.json?assets=mask')).json().colour_scale, undefined);
    assert.equal((await get('/xyz/test/tilejson.json')).json().colour_scale, undefined);
  });

  await t.test('TileJSON has a centre, and an attribution with the years of the scenes', async () => {
    const record = (await node.storage.catalogue.collections.get('test'))!;
    const { catalogue } = node.storage;
    await catalogue.write([catalogue.collections.set('test', { ...record, attribution: 'Seen in [year]' })]);
    const json = (await get('/xyz/test/tilejson.json')).json();
    assert.equal(json.attribution, 'Seen in 2024');
    const [west, south, east, north] = json.bounds;
    const [lon, lat, zoom] = json.center;
    assert.deepEqual([lon, lat], [(west + east) / 2, (south + north) / 2]);
    assert.ok(zoom >= json.minzoom && zoom <= json.maxzoom);
    const pixels = ((east - west) / 360) * 256 * 2 ** zoom;
    assert.ok(pixels > 150 && pixels <= 512, `all that there is fills ${pixels} pixels`);
  });

  await t.test('the map links of a collection and the preview link of an Item work', async () => {
    const { links } = (await get('/collections/test')).json() as { links: { rel: string; href: string }[] };
    const of = (rel: string) => links.find((link) => link.rel === rel)!.href;
    assert.equal((await get(of('tilejson'))).statusCode, 200);
    const tile = of('xyz').replace('{z}', '14').replace('{x}', `${map.x}`).replace('{y}', `${map.y}`);
    assert.equal((await get(tile)).headers['content-type'], 'image/png');
    const item = (await get('/collections/test/items?limit=1')).json().features[0];
    const { href, roles } = item.assets.thumbnail;
    assert.deepEqual(roles, ['thumbnail']);
    assert.equal((await get(href)).headers['content-type'], 'image/png');
  });

  await t.test('a preview shows the entire tile with its clouds', async () => {
    const tiles = await tilesOf(node);
    const whole = tiles.filter(({ coverage }) => coverage === 100);
    const cloudy = whole.toSorted((a, b) => b.cloudCover! - a.cloudCover!)[0];
    assert.ok(cloudy.cloudCover! > 40);
    const { pixels, width, height } = await pictureOf(node, `/preview/${cloudy.id}.png`);
    assert.deepEqual([width, height], [cloudy.groups[0].width, cloudy.groups[0].height]);
    assert.ok(pixels.every((value, i) => i % 4 !== 3 || value === 255));
    const mask = await pictureOf(node, `/preview/${cloudy.id}.png?assets=mask`);
    const white = mask.pixels.filter((value, i) => i % 4 === 0 && value === 255).length;
    assert.equal(Math.round((400 * white) / mask.pixels.length), Math.round(cloudy.cloudCover!));
  });

  await t.test('hostile parameters get a problem with a code', async () => {
    const deep = encodeURIComponent(`${'('.repeat(400)}nir${')'.repeat(400)}`);
    const tall = encodeURIComponent(`nir${'**nir'.repeat(190)}`);
    for (const [url, status, code] of [
      ['/xyz/test/99/0/0.png', 404, 'TW_IMAGERY_NO_MAP_TILE'],
      ['/xyz/test/999999999999999999/0/0.png', 404, 'TW_IMAGERY_NO_MAP_TILE'],
      ['/xyz/test/-1/0/0.png', 404, 'TW_IMAGERY_NO_MAP_TILE'],
      ['/xyz/test/14/16384/0.png', 404, 'TW_IMAGERY_NO_MAP_TILE'],
      ['/xyz/test/14/0/1e3.png', 404, 'TW_IMAGERY_NO_MAP_TILE'],
      // The router has no route for these, although a pattern matches them.
      ['/xyz/test/14/0/0.', 404, 'TW_API_NOT_FOUND'],
      ['/xyz/test/14/0/0.p.ng', 404, 'TW_API_NOT_FOUND'],
      ['/xyz/test/14//0.png', 404, 'TW_IMAGERY_NO_MAP_TILE'],
      ['/xyz/test/14/0/NaN@2x.png', 404, 'TW_IMAGERY_NO_MAP_TILE'],
      ['/xyz/test/0/0/0.png', 400, 'TW_IMAGERY_ZOOM'],
      ['/xyz/none/14/0/0.png', 404, 'TW_API_NOT_FOUND'],
      [`${at}.gif`, 404, 'TW_API_NOT_FOUND'],
      [`${at}.png?rescale=NaN,1`, 400, 'TW_IMAGERY_LOOK'],
      [`${at}.png?rescale=0,Infinity`, 400, 'TW_IMAGERY_LOOK'],
      [`${at}.png?rescale=1,0`, 400, 'TW_IMAGERY_LOOK'],
      [`${at}.png?rescale=1`, 400, 'TW_IMAGERY_LOOK'],
      [`${at}.png?rescale=0,1&rescale=0,1`, 400, 'TW_IMAGERY_LOOK'],
      [`${at}.png?colormap_name=viridis`, 400, 'TW_IMAGERY_LOOK'],
      [`${at}.png?bidx=1&colormap_name=__proto__`, 400, 'TW_IMAGERY_LOOK'],
      [`${at}.png?bidx=1&bidx=2`, 400, 'TW_IMAGERY_LOOK'],
      [`${at}.png?bidx=99`, 400, 'TW_IMAGERY_LOOK'],
      [`${at}.png?bidx=-1`, 400, 'TW_API_BAD_REQUEST'],
      [`${at}.png?nodata=x&bidx=1`, 400, 'TW_IMAGERY_LOOK'],
      [`${at}.png?assets=nothing`, 400, 'TW_IMAGERY_BAND'],
      [`${at}.png?assets=../../etc/passwd`, 400, 'TW_IMAGERY_BAND'],
      [`${at}.png?expression=swir22`, 400, 'TW_IMAGERY_BAND'],
      [`${at}.png?expression=`, 400, 'TW_IMAGERY_EXPRESSION'],
      [`${at}.png?expression=${deep}`, 400, 'TW_IMAGERY_EXPRESSION'],
      [`${at}.png?expression=${tall}`, 400, 'TW_IMAGERY_EXPRESSION'],
      [`${at}.png?expression=${'nir;'.repeat(4)}nir`, 400, 'TW_IMAGERY_LOOK'],
      [`${at}.png?resampling=sharp`, 400, 'TW_API_BAD_REQUEST'],
      [`${at}.png?unknown=1`, 400, 'TW_API_BAD_REQUEST'],
      [`${at}.png?datetime=yesterday`, 400, 'TW_QUERY_DATETIME'],
      [`${at}.png?source=nowhere`, 400, 'TW_QUERY_SOURCE'],
      ['/xyz/test/tilejson.json?expression=swir22', 400, 'TW_IMAGERY_BAND'],
      ['/xyz/none/tilejson.json', 404, 'TW_API_NOT_FOUND'],
      ['/preview/none.png', 404, 'TW_API_NOT_FOUND'],
    ] as const) {
      const answer = await get(url);
      assert.equal(answer.statusCode, status, `${url}: ${answer.body}`);
      assert.equal(answer.json().code, code, url);
      assert.match(String(answer.headers['content-type']), /problem\+json/);
    }
  });

  await t.test('an error names the value in the request and the reason', async () => {
    for (const [url, detail] of [
      [
        '/xyz/test/0/0/0.png',
        /zoom 0 is below the minimum zoom of test, which depends on the size of its cells/,
      ],
      [`${at}.png?expression=nir;nir`, /^expression gives 2 bands, /],
      [`${at}.png?bidx=1&bidx=2`, /^assets give 2 bands, /],
      [`${at}.png?expression=(nir-red)/(nir+red)`, /, not "red"; a URL needs %2B in place of \+$/],
    ] as const)
      assert.match((await get(url)).json().detail, detail, url);
  });

  await t.test('hostile series get a problem with a code', async () => {
    const point = { type: 'Point', coordinates: PLACE };
    const ring = (coordinates: unknown) => ({ type: 'Polygon', coordinates: [coordinates] });
    for (const [payload, code] of [
      [{ geometry: point }, 'TW_API_BAD_REQUEST'],
      [{ geometry: point, expression: 'nir', more: 1 }, 'TW_API_BAD_REQUEST'],
      [{ geometry: point, expression: 'nir+' }, 'TW_IMAGERY_EXPRESSION'],
      [{ geometry: point, expression: 'swir22' }, 'TW_IMAGERY_BAND'],
      [{ geometry: {}, expression: 'nir' }, 'TW_IMAGERY_REGION'],
      [{ geometry: { type: 'LineString', coordinates: [] }, expression: 'nir' }, 'TW_IMAGERY_REGION'],
      [{ geometry: { type: 'Point', coordinates: [200, 0] }, expression: 'nir' }, 'TW_IMAGERY_REGION'],
      [{ geometry: { type: 'Point', coordinates: ['1', 2] }, expression: 'nir' }, 'TW_IMAGERY_REGION'],
      [{ geometry: ring([[0, 0]]), expression: 'nir' }, 'TW_IMAGERY_REGION'],
      [{ geometry: ring([0, 0, 0, 0]), expression: 'nir' }, 'TW_IMAGERY_REGION'],
      [{ geometry: { type: 'MultiPolygon', coordinates: [[]] }, expression: 'nir' }, 'TW_IMAGERY_REGION'],
      [{ geometry: { type: 'Feature' }, expression: 'nir' }, 'TW_IMAGERY_REGION'],
      [{ geometry: point, expression: 'nir', maxCloud: 101 }, 'TW_QUERY_PERCENT'],
    ] as const) {
      const answer = await node.server.inject({ method: 'POST', url: '/timeseries', payload });
      assert.ok(answer.statusCode >= 400 && answer.statusCode < 500, answer.body);
      assert.equal(answer.json().code, code, JSON.stringify(payload));
    }
  });

  await t.test('a place with an endless outline is refused in time', async () => {
    // 20,000 points: all sides go from south to north through all rows of all cells.
    const points = Array.from({ length: 20_000 }, (_, i) => [15 + i / 1e6, i % 2 === 0 ? 47.83 : 47.86]);
    const geometry = { type: 'Polygon', coordinates: [[...points, points[0]]] };
    const payload = { geometry, expression: 'nir' };
    const answer = await node.server.inject({ method: 'POST', url: '/timeseries', payload });
    assert.equal(answer.statusCode, 413, answer.body.slice(0, 300));
    assert.equal(answer.json().code, 'TW_IMAGERY_TOO_MUCH');
  });
});

test('a tile file that is damaged is named', async (t) => {
  const { node } = await nodeWithScenes(t, SCENES.slice(0, 1));
  const [tile] = await tilesOf(node);
  await truncate(node.storage.tileImage(tile, tile.groups[0].name).path, 20);
  const answer = await node.server.inject(`/preview/${tile.id}.png?expression=nir`);
  assert.equal(answer.json().code, 'TW_IMAGERY_TILE_FILE', answer.body);
  assert.match(answer.json().detail, /tilewright verify/);
});

test('a scene across the antimeridian: the extent is narrow, TileJSON has its centre on it', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  // In zone 60 the antimeridian is at 833,978 m on the equator.
  const href = await writeRaster(join(folder, 'a.tif'), { epsg: 32660, x: 830_000, y: 100_000, pixel: 100 });
  await ingest(node, { href, datetime: '2024-06-01T10:00:00Z', collection: 'far', precision: 5 });
  const get = async (url: string) => (await node.server.inject({ url })).json();
  const [[west, south, east, north]] = (await get('/collections/far')).extent.spatial.bbox;
  assert.ok(west > 179.9 && west < 180 && east > -180 && east < -179.9, `${west} to ${east}`);
  const { bounds, center } = await get('/xyz/far/tilejson.json');
  assert.deepEqual(bounds, [-180, south, 180, north]);
  assert.ok(Math.abs(center[0]) > 179.9 && Math.abs(center[0]) <= 180, `${center}`);
  assert.ok(center[2] >= 10, `${center}`);
});
