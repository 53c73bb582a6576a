/** Map parameters of titiler and their effect on pictures over HTTP. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import sharp from 'sharp';
import { mapTileAt, nodeWithScenes, pictureOf, type Rgba } from '../imagery/maps.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

const SCENE = { datetime: '2024-06-01T10:00:00Z', cloud: 0, edge: 100, seed: 2 };
/** The middle of the scene. */
const PLACE = [15.02, 47.843] as const;

/** The inside of a picture, `edge` pixels less at each side. */
function inside({ width, height, pixels }: Rgba, edge: number): Uint8Array {
  const rows = Array.from({ length: height - 2 * edge }, (_, row) => {
    const from = 4 * ((row + edge) * width + edge);
    return pixels.subarray(from, from + 4 * (width - 2 * edge));
  });
  return new Uint8Array(Buffer.concat(rows));
}

test("titiler's parameters over HTTP", async (t) => {
  const { node } = await nodeWithScenes(t, [SCENE]);
  const get = (url: string, headers: Record<string, string> = {}) => node.server.inject({ url, headers });
  const map = mapTileAt(14, ...PLACE);
  const at = `/xyz/test/14/${map.x}/${map.y}`;
  const inner = mapTileAt(17, ...PLACE);
  const within = `/xyz/test/17/${inner.x}/${inner.y}`;
  const tile = (await tilesOf(node)).find(({ coverage }) => coverage === 100)!;
  const picture = (url: string) => pictureOf(node, url);

  await t.test('JPEG has no alpha channel: pixels without data are black', async () => {
    for (const name of ['jpg', 'jpeg']) {
      const answer = await get(`${at}.${name}`);
      assert.equal(answer.headers['content-type'], 'image/jpeg');
      const { format, channels, width } = await sharp(answer.rawPayload).metadata();
      assert.deepEqual([format, channels, width], ['jpeg', 3, 256]);
    }
    const [jpeg, png] = [await picture(`${at}.jpg`), await picture(`${at}.png`)];
    let empty = 0;
    for (let i = 0; i < png.pixels.length; i += 4) {
      if (png.pixels[i + 3] === 0) empty++;
      const colour = [0, 1, 2].map((channel) => Math.abs(jpeg.pixels[i + channel] - png.pixels[i + channel]));
      assert.ok(Math.max(...colour) < 60, `${colour}`);
    }
    assert.ok(empty > 100 && empty < 60_000, `${empty}`);
    const far = await picture('/xyz/test/14/5/5.jpg');
    assert.ok(far.pixels.every((value, i) => value === (i % 4 === 3 ? 255 : 0)));
  });

  await t.test(
    'an address without a format is png if some of the picture is transparent, else jpeg',
    async () => {
      const type = async (url: string) => (await get(url)).headers['content-type'];
      assert.equal(await type(at), 'image/png');
      assert.equal(await type(within), 'image/jpeg');
      assert.equal(await type(`${within}@2x`), 'image/jpeg');
      assert.equal(await type(`${within}?format=webp`), 'image/webp');
      assert.equal(await type(`/preview/${tile.id}`), 'image/jpeg');
      assert.equal(await type(`/preview/${tile.id}?format=png`), 'image/png');
      assert.deepEqual((await picture(`${at}?format=png`)).pixels, (await picture(`${at}.png`)).pixels);
    },
  );

  await t.test('return_mask=false removes the alpha channel', async () => {
    const channels = async (url: string) => (await sharp((await get(url)).rawPayload).metadata()).channels;
    for (const format of ['png', 'webp']) {
      assert.equal(await channels(`${at}.${format}?return_mask=false`), 3);
      assert.equal(await channels(`${at}.${format}?return_mask=true`), 4);
    }
    assert.equal(await channels(`/preview/${tile.id}.png?return_mask=false`), 3);
  });

  await t.test('a buffer adds pixels around the tile and does not change those inside', async () => {
    const plain = await picture(`${within}.png`);
    for (const buffer of [1, 20]) {
      const larger = await picture(`${within}.png?buffer=${buffer}`);
      assert.deepEqual([larger.width, larger.height], [256 + 2 * buffer, 256 + 2 * buffer]);
      assert.deepEqual(inside(larger, buffer), inside(plain, 0));
    }
    assert.equal((await picture(`${within}.png?buffer=0.5&padding=2`)).width, 257);
    assert.equal((await picture(`${within}@2x.png?buffer=3`)).width, 518);
    // Beyond the antimeridian and the poles there is nothing.
    assert.equal((await get('/xyz/test/14/0/0.png?buffer=9')).statusCode, 200);
    assert.equal((await get('/xyz/test/14/16383/16383.png?buffer=9')).statusCode, 200);
  });

  await t.test(
    'a hillshade has the size of the tile, and its edges are made of pixels beyond it',
    async () => {
      const steep = (more: string) =>
        `algorithm_params=${encodeURIComponent(`{"z_exaggeration": 200${more}}`)}`;
      const look = 'assets=nir&algorithm=hillshade&resampling=bilinear';
      const shade = await picture(`${within}.png?${look}&${steep('')}`);
      assert.equal(shade.width, 256);
      assert.ok(new Set(shade.pixels).size > 5);
      const larger = await picture(`${within}.png?${look}&${steep('')}&buffer=10`);
      assert.equal(larger.width, 270);
      assert.deepEqual(inside(larger, 7), inside(shade, 0));
      const alone = await picture(`${within}.png?${look}&${steep(', "buffer": 0')}`);
      assert.deepEqual(inside(alone, 1), inside(shade, 1));
      assert.notDeepEqual(alone.pixels, shade.pixels);
      const preview = await picture(`/preview/${tile.id}.png?${look}`);
      assert.equal(preview.width, tile.groups[0].width);
    },
  );

  await t.test('normalizedIndex is the index as an expression, in colours', async () => {
    const colours = 'colormap_name=RdYlGn_r';
    const asked = await picture(`${within}.png?assets=red&assets=nir&algorithm=ndi&${colours}`);
    const ndvi = await picture(`${within}.png?expression=(nir-red)/(nir%2Bred)&rescale=-1,1&${colours}`);
    assert.deepEqual(asked.pixels, ndvi.pixels);
    const mean = await picture(`${within}.png?expression=red;nir&algorithm=mean&rescale=0,1`);
    const same = await picture(`${within}.png?expression=(nir%2Bred)/2&rescale=0,1`);
    assert.deepEqual(mean.pixels, same.pixels);
    const stretched = await picture(`${within}.png?expression=red;nir&algorithm=mean`);
    assert.ok(new Set(stretched.pixels).size > 100);
  });

  await t.test('a colour formula changes the colours', async () => {
    const plain = await picture(`${within}.png`);
    const grey = await picture(`${within}.png?color_formula=saturation%200`);
    for (let i = 0; i < grey.pixels.length; i += 4)
      assert.ok(
        Math.abs(grey.pixels[i] - grey.pixels[i + 1]) <= 1 &&
          Math.abs(grey.pixels[i] - grey.pixels[i + 2]) <= 1,
      );
    const light = await picture(`${within}.png?color_formula=Gamma%20RGB%202`);
    for (let i = 0; i < light.pixels.length; i++)
      if (i % 4 < 3)
        assert.ok(
          Math.abs(light.pixels[i] - 255 * Math.sqrt(plain.pixels[i] / 255)) < 8,
          `${plain.pixels[i]}`,
        );
    const scale = (await get('/xyz/test/tilejson.json?assets=nir&color_formula=gamma%201%202')).json()
      .colour_scale;
    assert.equal(scale.colours[1], '#3e3e3e');
  });

  await t.test('a colormap of values and one of intervals', async () => {
    const colours = encodeURIComponent('{"0": "#ff0000", "1": [0, 255, 0, 0]}');
    const codes = await picture(`${within}.png?expression=where(nir>0.3,1,0)&colormap=${colours}`);
    const plain = await picture(`${within}.png?expression=where(nir>0.3,1,0)&rescale=0,1`);
    let high = 0;
    for (let i = 0; i < codes.pixels.length; i += 4) {
      const isHigh = plain.pixels[i] === 255;
      if (isHigh) high++;
      assert.deepEqual([...codes.pixels.subarray(i, i + 4)], isHigh ? [0, 255, 0, 0] : [255, 0, 0, 255]);
    }
    assert.ok(high > 100 && high < 60_000, `${high}`);
    const opaque = await picture(
      `${within}.png?expression=where(nir>0.3,1,0)&colormap=${colours}&return_mask=false`,
    );
    assert.deepEqual([...new Set(opaque.pixels)].sort(), [0, 255]);
    // With a range, colours are of 0 to 255.
    const steps = encodeURIComponent('[[[0, 200], "#00f"], [[200, 256], "#fff"]]');
    const two = await picture(`${within}.png?assets=nir&rescale=0,1&colormap=${steps}`);
    const grey = await picture(`${within}.png?assets=nir&rescale=0,1`);
    for (let i = 0; i < two.pixels.length; i += 4)
      assert.equal(two.pixels[i], grey.pixels[i] < 200 ? 0 : 255);
  });

  await t.test('reproject is for cells that are not in the projection of the map', async () => {
    const [plain, cubic, both] = await Promise.all([
      picture(`${within}.png`),
      picture(`${within}.png?resampling=cubic`),
      picture(`${within}.png?resampling=nearest&reproject=cubic`),
    ]);
    assert.deepEqual(both.pixels, cubic.pixels);
    assert.notDeepEqual(both.pixels, plain.pixels);
    const preview = await picture(`/preview/${tile.id}.png?reproject=cubic`);
    assert.deepEqual(preview.pixels, (await picture(`/preview/${tile.id}.png`)).pixels);
  });

  await t.test('TileJSON keeps the parameters, and its URL works', async () => {
    const asked = {
      algorithm: 'hillshade',
      algorithm_params: '{"azimuth":315}',
      assets: 'nir',
      buffer: '4',
      padding: '1',
      color_formula: 'gamma r 1.5',
      return_mask: 'false',
      reproject: 'cubic',
    };
    const json = (await get(`/xyz/test/tilejson.json?${new URLSearchParams(asked)}&tile_format=jpg`)).json();
    const address = new URL(json.tiles[0].replace('{z}', map.z).replace('{x}', map.x).replace('{y}', map.y));
    assert.match(address.pathname, /\.jpg$/);
    assert.deepEqual(Object.fromEntries(address.searchParams), asked);
    assert.equal((await picture(address.pathname + address.search)).width, 258);
  });

  await t.test('ETags tell parameters apart', async () => {
    const { headers } = await get(`${within}.png?color_formula=gamma%20rgb%202`);
    const known = { 'if-none-match': String(headers.etag) };
    assert.equal((await get(`${within}.png?color_formula=gamma%20rgb%202`, known)).statusCode, 304);
    assert.equal((await get(`${within}.png?color_formula=gamma%20rgb%203`, known)).statusCode, 200);
  });

  await t.test('the description of the API names them', async () => {
    const { paths } = (await get('/openapi.json')).json();
    const [, route] = Object.entries<{ get: { parameters: { name: string }[] } }>(paths).find(([path]) =>
      /^\/xyz\/.*format/.test(path),
    )!;
    const names = route.get.parameters.map(({ name }) => name);
    for (const name of [
      'algorithm',
      'algorithm_params',
      'buffer',
      'color_formula',
      'colormap',
      'return_mask',
    ])
      assert.ok(names.includes(name), name);
  });

  await t.test('errors name invalid values', async () => {
    const encoded = (text: string) => encodeURIComponent(text);
    for (const [url, status, code, message] of [
      [`${at}.tif`, 404, 'TW_API_NOT_FOUND', /ask for png, webp, jpg or jpeg/],
      [`/preview/${tile.id}.npy`, 404, 'TW_API_NOT_FOUND', /ask for png, webp, jpg or jpeg/],
      [`${at}?format=tif`, 400, 'TW_API_BAD_REQUEST', /format must be .*png, webp, jpg, jpeg/],
      [`${at}@3x.png`, 404, 'TW_IMAGERY_NO_MAP_TILE', /\d@3x: .*Add @2x to the row/],
      ['/xyz/test/14/0/abc.png', 404, 'TW_IMAGERY_NO_MAP_TILE', /map tile 14\/0\/abc:/],
      [`${at}.png?assets=nothing`, 400, 'TW_IMAGERY_BAND', /^(?!.*\bmask\b.*\bmask\b).*\bmask\b/],
      [`${at}.png?expression=${encoded('"red"')}`, 400, 'TW_IMAGERY_EXPRESSION', /: '"' has no meaning/],
      [
        `${at}.png?colormap_name=nothing&bidx=1`,
        400,
        'TW_IMAGERY_LOOK',
        /^colormap_name "nothing" is not known/,
      ],
      [`${at}.png?colormap=5&bidx=1`, 400, 'TW_IMAGERY_LOOK', /^colormap is/],
      [`${at}.png?colormap=${encoded('{"1":"#fff"}')}`, 400, 'TW_IMAGERY_LOOK', /^colormap is for one band/],
      [
        `${at}.png?bidx=1&colormap_name=jet&colormap=${encoded('{"1":"#fff"}')}`,
        400,
        'TW_IMAGERY_LOOK',
        /together with colormap_name/,
      ],
      [
        `${at}.png?bidx=1&color_formula=gamma%201%202&colormap=${encoded('{"1":"#fff"}')}`,
        400,
        'TW_IMAGERY_LOOK',
        /^color_formula needs rescale/,
      ],
      [`${at}.png?color_formula=blur`, 400, 'TW_IMAGERY_LOOK', /^color_formula begins/],
      [`${at}.png?algorithm=blur`, 400, 'TW_API_BAD_REQUEST', /algorithm must be .*hillshade/],
      [`${at}.png?algorithm=hillshade`, 400, 'TW_IMAGERY_LOOK', /^algorithm hillshade needs 1 band, not 3/],
      [
        `${at}.png?algorithm_params=${encoded('{}')}`,
        400,
        'TW_IMAGERY_LOOK',
        /^algorithm_params is given without/,
      ],
      [
        `/preview/${tile.id}.png?assets=nir&algorithm=hillshade&algorithm_params=${encoded('{"buffer":99}')}`,
        400,
        'TW_IMAGERY_LOOK',
        /buffer of 99, which leaves nothing/,
      ],
      [`${at}.png?buffer=0`, 400, 'TW_API_BAD_REQUEST', /buffer/],
      [`${at}.png?buffer=0.7`, 400, 'TW_API_BAD_REQUEST', /buffer must be multiple of 0.5/],
      [`${at}.png?buffer=100`, 400, 'TW_API_BAD_REQUEST', /buffer/],
      [`${at}.png?padding=1.5`, 400, 'TW_API_BAD_REQUEST', /padding/],
      [`${at}.png?return_mask=perhaps`, 400, 'TW_API_BAD_REQUEST', /return_mask/],
      [`${at}.png?resampling=sharp`, 400, 'TW_API_BAD_REQUEST', /resampling must be .*cubic_spline/],
      [`/preview/${tile.id}.png?buffer=1`, 400, 'TW_API_BAD_REQUEST', /unknown parameter/],
    ] as const) {
      const answer = await get(url);
      assert.equal(answer.statusCode, status, `${url}: ${answer.body}`);
      assert.equal(answer.json().code, code, url);
      assert.match(answer.json().detail, message);
    }
  });
});

const RADIUS = 6_378_137;
const DEGREES = 180 / Math.PI;

for (const grid of ['quadtile', 'geohash'] as const)
  test(`slopes of ${grid} cells count in metres of EPSG:3857`, async (t) => {
    const folder = await tempFolder(t);
    const node = await testNode(t, join(folder, 'data'));
    // Heights rise by 10 m a pixel of 10 m.
    const side = 300;
    const bands = [Float32Array.from({ length: side * side }, (_, i) => 10 * (i % side))];
    const place = { x: 1_680_000, y: 6_060_000, pixel: 10, epsg: 3857 };
    const shape = { width: side, height: side, dataType: 'float32' as const, bands };
    const href = await writeRaster(join(folder, 'heights.tif'), { ...place, ...shape });
    const precision = grid === 'quadtile' ? 13 : 5;
    await ingest(node, { href, collection: 'heights', datetime: '2024-06-01T10:00:00Z', grid, precision });
    const tile = (await tilesOf(node)).toSorted((a, b) => b.coverage - a.coverage)[0];
    const map = mapTileAt(
      17,
      DEGREES * (1_681_500 / RADIUS),
      DEGREES * Math.atan(Math.sinh(6_058_500 / RADIUS)),
    );
    for (const url of [
      `/xyz/heights/17/${map.x}/${map.y}.png?algorithm=slope&resampling=bilinear`,
      `/preview/${tile.id}.png?algorithm=slope&resampling=bilinear`,
    ]) {
      const { pixels } = await pictureOf(node, url);
      const greys = pixels.filter((_, i) => i % 4 === 0 && pixels[i + 3] === 255).sort();
      // 45 of 90 degrees.
      assert.ok(Math.abs(greys[greys.length >> 1] - 127.5) <= 1.5, `${url}: ${greys[greys.length >> 1]}`);
    }
  });
