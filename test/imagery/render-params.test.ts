/** Conversion of values to colours. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';
import { nodeWithScenes, pictureOf } from './maps.js';

const SCENE = { datetime: '2024-06-01T10:00:00Z', seed: 3 };

test('renders of a tile of measurements', async (t) => {
  const { node } = await nodeWithScenes(t, [SCENE]);
  const tile = (await tilesOf(node)).find(({ coverage }) => coverage === 100)!;
  const group = tile.groups[0].name;
  const look = (query: string) => pictureOf(node, `/preview/${tile.id}.png?${query}`);

  await t.test('assets, bands, common names and expressions select the same bands', async () => {
    const range = 'rescale=0,0.1&rescale=0,0.2&rescale=0,0.4';
    const [first, ...others] = await Promise.all([
      look(`assets=${group}&bidx=3&bidx=2&bidx=4&${range}`),
      look(`assets=red&assets=green&assets=nir&${range}`),
      look(`expression=red;green;nir&${range}`),
      look(`expression=${group}_b3*0%2Bred;${group}_b2;nir&${range}`),
    ]);
    for (const other of others) assert.deepEqual(other.pixels, first.pixels);
  });

  await t.test('true colour shows reflectance from 0 to 0.3', async () => {
    const [quick, asked] = await Promise.all([
      look(''),
      look('assets=red&assets=green&assets=blue&rescale=0,0.3'),
    ]);
    assert.deepEqual(quick.pixels, asked.pixels);
  });

  await t.test('without a range, values are stretched from black to white', async () => {
    const { pixels } = await look('assets=nir');
    const greys = pixels.filter((_, i) => i % 4 === 0);
    const share = (count: number) => greys.filter((grey) => grey === count).length / greys.length;
    assert.ok(share(0) > 0.005 && share(0) < 0.06, `${share(0)}`);
    assert.ok(share(255) > 0.005 && share(255) < 0.06, `${share(255)}`);
    assert.ok(new Set(greys).size > 100);
  });

  await t.test('colour ramps start and end with their colours', async () => {
    const ends = async (name: string) => {
      const image = await look(`expression=where(nir>0.3,1,0)&rescale=0,1&colormap_name=${name}`);
      const colours = new Set<string>();
      for (let i = 0; i < image.pixels.length; i += 4)
        colours.add(Buffer.from(image.pixels.subarray(i, i + 3)).toString('hex'));
      return [...colours].sort();
    };
    assert.deepEqual(await ends('viridis'), ['440154', 'fde724']);
    assert.deepEqual(await ends('RdYlGn'), ['006837', 'a50026']);
    assert.deepEqual(await ends('terrain'), ['333399', 'ffffff']);
  });

  await t.test('nodata by parameter makes pixels transparent', async () => {
    const { pixels } = await look('expression=red&nodata=700&rescale=0,1');
    const { pixels: all } = await look('expression=red&rescale=0,1');
    const opaque = (of: Uint8Array) => of.filter((value, i) => i % 4 === 3 && value === 255).length;
    assert.ok(opaque(pixels) < opaque(all));
  });
});

test('codes have individual colours, not shades', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const side = 256;
  const bands = [Uint8Array.from({ length: side * side }, (_, i) => 11 + ((i % side) >> 6))];
  const shape = { width: side, height: side, dataType: 'uint8' as const, bands, palette: true };
  const href = await writeRaster(join(folder, 'codes.tif'), shape);
  await ingest(node, { href, collection: 'codes', datetime: '2024-06-01T10:00:00Z', precision: 5 });
  const tile = (await tilesOf(node)).toSorted((a, b) => b.coverage - a.coverage)[0];
  const { pixels } = await pictureOf(node, `/preview/${tile.id}.png`);
  const colours = new Set<string>();
  for (let i = 0; i < pixels.length; i += 4)
    if (pixels[i + 3] === 255) colours.add(Buffer.from(pixels.subarray(i, i + 3)).toString('hex'));
  // 11 to 14 of twelve colours in turn.
  for (const colour of colours) assert.ok(['ffed6f', '8dd3c7', 'ffffb3', 'bebada'].includes(colour), colour);
  assert.ok(colours.size >= 2);
});
