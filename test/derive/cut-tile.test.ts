/** Split and coalesce: the pixels are unchanged if grids nest, and equal those of GDAL otherwise; coalesce reverts split. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { coalesceProcess, DerivePool, type DeriveResults, splitProcess } from '../../src/derive/index.js';
import { localQueries } from '../../src/dht/index.js';
import { cellBbox, geohash, gridByName, quadtile } from '../../src/grid/index.js';
import { TileFinder } from '../../src/query/index.js';
import { gdalName, Mask, type PixelArray, readRaster } from '../../src/raster/index.js';
import { Storage, type TileRecord, verify } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';
import { hasGdal } from '../support/gdal.js';
import { tempFolder } from '../support/temp.js';
import {
  assertDataParts,
  derivedTiles,
  type GivenTile,
  pixelsOf,
  randomly,
  runProcess,
  storeScene,
} from './tiles.js';

const CELL = '9q8yy';

async function open(t: TestContext, name = 'data') {
  const storage = await Storage.open(join(await tempFolder(t), name), { reserve: 0 });
  const workers = new DerivePool(1);
  atEnd(t, async () => {
    await workers.close();
    await storage.close();
  });
  return { storage, workers };
}

/** Three groups of one cell, finest first, with holes and clouds; the codes are of 8 bits. */
function tileOf(
  geocode: string,
  width: number,
  height: number,
  seed: number,
  more: Partial<GivenTile> = {},
): GivenTile {
  const random = randomly(seed);
  const isHole = (column: number) => column < width / 10;
  const mask = Uint8Array.from({ length: width * height }, (_, i) =>
    isHole(Math.floor((i % width) / 2)) ? Mask.nodata : random() < 0.3 ? Mask.cloud : Mask.clear,
  );
  const smooth = (w: number, i: number) =>
    3000 + 1500 * Math.sin((i % w) / 9) * Math.cos(Math.floor(i / w) / 7);
  const fine = Uint16Array.from(mask, (code, i) =>
    code === 0 ? 0 : Math.round(smooth(width, i) + 50 * random()),
  );
  const coarse = Float32Array.from({ length: (width * height) / 4 }, (_, i) =>
    isHole(i % (width / 2)) ? NaN : smooth(width / 2, i) / 7,
  );
  const codes = Uint8Array.from(mask, () => 1 + Math.floor(random() * 9));
  return {
    geocode,
    mask,
    groups: [
      {
        name: '10m',
        width,
        height,
        bands: [{ name: 'red', commonName: 'red', scale: 0.0001, pixels: fine }],
      },
      {
        name: '20m',
        width: width / 2,
        height: height / 2,
        dataType: 'float32',
        nodata: null,
        bands: [{ name: 'swir', pixels: coarse }],
      },
      {
        name: '10m-qa',
        role: 'qa',
        width,
        height,
        dataType: 'uint8',
        nodata: null,
        bands: [{ name: 'class', pixels: codes }],
      },
    ],
    ...more,
  };
}

async function everything(storage: Storage, tile: TileRecord): Promise<Record<string, PixelArray[]>> {
  const groups: Record<string, PixelArray[]> = {};
  for (const { name } of tile.groups) groups[name] = await pixelsOf(storage, tile, name);
  return groups;
}

test('split keeps the pixels if the cells nest, and coalesce joins them again', async (t) => {
  const workers = new DerivePool(1);
  atEnd(t, () => workers.close());
  const dir = await tempFolder(t);
  let run = 0;
  const partial: Record<string, number> = {};
  const property = fc.asyncProperty(
    fc.constantFrom('geohash' as const, 'quadtile' as const),
    fc.integer({ min: 1, max: 1e6 }),
    async (grid, seed) => {
      const storage = await Storage.open(join(dir, `run${run++}`), { reserve: 0 });
      try {
        const geocode = grid === 'geohash' ? CELL : '0230102033';
        const [width, height] = grid === 'geohash' ? [48, 64] : [64, 64];
        const [parent] = await storeScene(storage, {
          id: 's',
          day: 0,
          tiles: [tileOf(geocode, width!, height!, seed, { grid })],
        });
        const precision = geocode.length + 1;
        const results = await runProcess<DeriveResults>(
          storage,
          splitProcess({ storage, finder: new TileFinder(storage, localQueries(storage.index)), workers }),
          {
            precision,
          },
        );
        const children = await derivedTiles(storage, 'split');
        const cells = gridByName(grid).children(geocode);
        assert.equal(results.tiles + (results.skipped['holds no data'] ?? 0), cells.length);
        const given = await everything(storage, parent!);
        const box = gridByName(grid).bounds(geocode);
        let inChildren = 0;
        for (const child of children) {
          const { west, east, south, north } = gridByName(grid).bounds(child.geocode);
          assert.deepEqual(child.derivedFrom, [parent!.id]);
          assert.equal(
            child.id,
            `${child.collection}_s_${grid[0]}${child.geocode}_split-${child.id.slice(-10)}`,
          );
          for (const group of child.groups) {
            const parentGroup = parent!.groups.find(({ name }) => name === group.name)!;
            assert.equal(
              group.width,
              Math.round((parentGroup.width * (east - west)) / (box.east - box.west)),
            );
            assert.equal(
              group.height,
              Math.round((parentGroup.height * (north - south)) / (box.north - box.south)),
            );
            const column = Math.round(((west - box.west) / (box.east - box.west)) * parentGroup.width);
            const row = Math.round(((box.north - north) / (box.north - box.south)) * parentGroup.height);
            const [pixels] = await pixelsOf(storage, child, group.name);
            for (let y = 0; y < group.height; y++)
              for (let x = 0; x < group.width; x++)
                assert.equal(
                  pixels![y * group.width + x],
                  given[group.name]![0]![(row + y) * parentGroup.width + column + x],
                );
            if (group.name === 'mask') inChildren += pixels!.filter((code) => code !== 0).length;
          }
          const { validPercent } = child.groups[0]!.bands[0]!;
          assert.equal(child.coverage, Math.min(validPercent, 100));
        }
        assert.equal(inChildren, given['mask']![0]!.filter((code) => code !== 0).length);

        // The reverse: the children, as a separate dataset, are joined in the cell of the parent.
        const parts = await Promise.all(
          children.map(async (child) => ({
            collection: 'parts',
            grid,
            geocode: child.geocode,
            mask: (await pixelsOf(storage, child, 'mask'))[0] as Uint8Array,
            groups: await Promise.all(
              child.groups
                .filter(({ role }) => role !== 'mask')
                .map(async ({ name, role, dataType, nodata, width, height, bands }) => {
                  const pixels = await pixelsOf(storage, child, name);
                  return {
                    name,
                    role: role as 'data',
                    dataType,
                    nodata,
                    width,
                    height,
                    bands: bands.map((band, b) => ({ ...band, pixels: pixels[b]! })),
                  };
                }),
            ),
          })),
        );
        await storeScene(storage, { id: 'p', day: 3, tiles: parts });
        const coalesce = coalesceProcess({
          storage,
          finder: new TileFinder(storage, localQueries(storage.index)),
          workers,
        });
        const inputs = { filter: { collections: ['parts'] }, to: 'test' };
        await runProcess<DeriveResults>(storage, coalesce, inputs);
        const [back, ...others] = await derivedTiles(storage, 'coalesced');
        assert.deepEqual(others, []);
        assert.deepEqual(
          [back!.geocode, back!.collection, back!.start],
          [geocode, 'parts', parent!.start + 3 * 86_400_000],
        );
        for (const [source, count] of Object.entries(await assertDataParts(storage)))
          partial[source] = (partial[source] ?? 0) + count;
        const found = await everything(storage, back!);
        const isWhole = children.length === cells.length;
        for (const name of ['mask', '10m', ...(isWhole ? ['20m', '10m-qa'] : [])])
          assert.deepEqual(found[name], given[name], name);
        assert.deepEqual([back!.coverage, back!.cloudCover], [parent!.coverage, parent!.cloudCover]);
        const again = await runProcess<DeriveResults>(storage, coalesce, inputs);
        assert.deepEqual([again.tiles, again.unchanged], [0, 1]);
        assert.equal((await verify(storage)).problemCount, 0);
        // Too distant in time.
        const far = await runProcess<DeriveResults>(storage, coalesce, { ...inputs, window: 2 });
        assert.deepEqual(far.skipped, { 'no tile is near it in space and time': 1 });
      } finally {
        await storage.close();
      }
    },
  );
  await fc.assert(property, { seed: 42, numRuns: 4 });
  for (const source of ['raw', 'split', 'coalesced']) assert.ok(partial[source]! > 0, source);
});

/** The file of a tile, warped to a cell by GDAL. */
async function gdal(
  storage: Storage,
  from: TileRecord,
  group: string,
  to: TileRecord,
  method: string,
  out: string,
) {
  const { west, south, east, north } = gridByName(to.grid).bounds(to.geocode);
  const { width, height } = to.groups.find(({ name }) => name === group)!;
  const options = [
    '-t_srs',
    `EPSG:${gridByName(to.grid).epsg}`,
    '-te',
    west,
    south,
    east,
    north,
    '-ts',
    width,
    height,
  ];
  const args = [
    '-q',
    '-overwrite',
    ...options,
    '-et',
    '0',
    '-r',
    method,
    gdalName(storage.tileImage(from, group)),
    out,
  ];
  execFileSync('gdalwarp', args.map(String));
  return (await readRaster(out)).bands[0]!;
}

test('if grids do not nest, the pixels equal those of GDAL', {
  skip: !hasGdal && 'needs GDAL',
}, async (t) => {
  const { storage, workers } = await open(t);
  const out = join(await tempFolder(t), 'out.tif');
  const [parent] = await storeScene(storage, { id: 's', day: 0, tiles: [tileOf(CELL, 486, 490, 3)] });
  await runProcess(
    storage,
    splitProcess({ storage, finder: new TileFinder(storage, localQueries(storage.index)), workers }),
    {
      precision: 6,
    },
  );
  // Cells of the other grid, finer than that of the tile.
  const [lon, lat] = [
    (cellBbox(geohash, CELL)[0] + cellBbox(geohash, CELL)[2]) / 2,
    cellBbox(geohash, CELL)[1] + 0.02,
  ];
  const cell = quadtile.encode(...quadtile.fromLonLat(lon, lat), 15);
  await storeScene(storage, {
    id: 'q',
    day: 1,
    tiles: [{ ...tileOf(cell, 64, 64, 5), collection: 'quad', grid: 'quadtile' }],
  });
  await runProcess(
    storage,
    coalesceProcess({ storage, finder: new TileFinder(storage, localQueries(storage.index)), workers }),
    {
      filter: { collections: ['test'] },
      to: 'quad',
    },
  );
  const split = await derivedTiles(storage, 'split');
  const coalesced = await derivedTiles(storage, 'coalesced');
  assert.ok(split.length > 20);
  assert.deepEqual(
    coalesced.map(({ grid, geocode }) => [grid, geocode]),
    [['quadtile', cell]],
  );
  for (const tile of [...split.slice(0, 3), ...split.slice(-3), ...coalesced]) {
    for (const [group, method, most] of [
      ['10m', 'bilinear', 1],
      ['mask', 'near', 0],
      ['10m-qa', 'near', 0],
    ] as const) {
      const [ours] = await pixelsOf(storage, tile, group);
      const theirs = await gdal(storage, parent!, group, tile, method, out);
      // At the edge of the tile, GDAL also reads no pixels beyond; ties of the nearest may fall to either side.
      let differ = 0;
      for (const [i, value] of ours!.entries()) if (Math.abs(value - theirs[i]!) > most) differ++;
      assert.ok(differ <= ours!.length * 0.005, `${tile.id} ${group}: ${differ} of ${ours!.length} differ`);
    }
  }
});

/** A tile whose bands have random holes, at two or three pixel sizes; its mask is 0 where no band has a value. */
function tileWithHoles(geocode: string, seed: number, more: Partial<GivenTile> = {}): GivenTile {
  const random = randomly(seed);
  const [width, height] = [96, 108];
  const cuts = [1, 2, 3].slice(0, 1 + (seed % 3));
  const blobs = Array.from({ length: 6 }, () => [random() * width, random() * height, 4 + random() * 24]);
  const groups = cuts.map((cut, g) => {
    const size = { width: width / cut, height: height / cut };
    const bands = ['a', 'b'].map((name) => {
      // Some holes are common to all bands.
      const own = [...blobs.slice(0, 3), ...blobs.slice(3).filter(() => random() < 0.4)];
      const pixels = Uint16Array.from({ length: size.width * size.height }, (_, i) => {
        const [x, y] = [cut * (i % size.width), cut * Math.floor(i / size.width)];
        return own.some(([cx, cy, r]) => Math.hypot(x - cx!, y - cy!) < r!) ? 0 : 1000 + (i % 97);
      });
      return { name: `${name}${g}`, pixels };
    });
    return { name: `${10 * cut}m`, ...size, bands };
  });
  const mask = Uint8Array.from({ length: width * height }, (_, i) =>
    hasValue(groups, { width, height }, i) ? [1, 1, 1, 2, 3, 4, 5, 6, 255][Math.floor(random() * 9)]! : 0,
  );
  return { geocode, groups, mask, ...more };
}

interface Size {
  width: number;
  height: number;
}

/** True if some band has a value at the centre of pixel `i` of the mask. */
const hasValue = (groups: (Size & { bands: { pixels: PixelArray }[] })[], mask: Size, i: number) =>
  groups.some(({ width, height, bands }) => {
    const column = Math.floor((((i % mask.width) + 0.5) * width) / mask.width);
    const row = Math.floor(((Math.floor(i / mask.width) + 0.5) * height) / mask.height);
    return bands.some(({ pixels }) => pixels[row * width + column] !== 0);
  });

test('the mask of a cut tile is 0 exactly where no band has a value', async (t) => {
  const { storage, workers } = await open(t);
  const context = { storage, finder: new TileFinder(storage, localQueries(storage.index)), workers };
  const [lon, lat] = [cellBbox(geohash, CELL)[0] + 0.012, cellBbox(geohash, CELL)[1] + 0.012];
  const cells = [14, 15, 16].map((precision) => quadtile.encode(...quadtile.fromLonLat(lon, lat), precision));
  for (const [n, cell] of cells.entries()) {
    const quad = { collection: `quad${n}`, grid: 'quadtile' as const };
    await storeScene(storage, { id: `q${n}`, day: 0, tiles: [tileWithHoles(cell, 90 + n, quad)] });
  }
  const north = geohash.children(CELL.slice(0, 4)).slice(0, 8);
  for (let seed = 1; seed <= 4; seed++) {
    const around = [...new Set([CELL, ...north])].map((cell, i) => tileWithHoles(cell, 10 * seed + i));
    await storeScene(storage, { id: `s${seed}`, day: 0, tiles: around });
  }
  await runProcess(storage, splitProcess(context), { precision: 6, filter: { geocode: CELL } });
  for (const n of cells.keys())
    await runProcess(storage, coalesceProcess(context), {
      filter: { collections: ['test'] },
      to: `quad${n}`,
    });
  const made = [...(await derivedTiles(storage, 'split')), ...(await derivedTiles(storage, 'coalesced'))];
  assert.ok(made.length > 100);
  let pixels = 0;
  for (const tile of made) {
    const groups = [];
    for (const { name, role, width, height } of tile.groups)
      if (role === 'data')
        groups.push({
          width,
          height,
          bands: (await pixelsOf(storage, tile, name)).map((pixels) => ({ pixels })),
        });
    const mask = tile.groups.find(({ role }) => role === 'mask')!;
    const [codes] = await pixelsOf(storage, tile, 'mask');
    for (const [i, code] of codes!.entries()) {
      const expected = hasValue(groups, mask, i);
      assert.equal(code !== Mask.nodata, expected, `${tile.id}, pixel ${i}`);
      if (expected) pixels++;
    }
  }
  assert.ok(pixels > 10_000);
});

test('inputs that cannot be cut are refused by name', async (t) => {
  const { storage, workers } = await open(t);
  await storeScene(storage, { id: 's', day: 0, tiles: [tileOf(CELL, 64, 64, 1)] });
  const split = splitProcess({
    storage,
    finder: new TileFinder(storage, localQueries(storage.index)),
    workers,
  });
  await assert.rejects(runProcess(storage, split, { precision: 9 }), { code: 'TW_WRANGLE_TOO_FINE' });
  await assert.rejects(runProcess(storage, split, { precision: 12 }), { code: 'TW_WRANGLE_TOO_FINE' });
  const { skipped } = await runProcess<DeriveResults>(storage, split, { precision: 5 });
  assert.deepEqual(skipped, { 'its cell is not coarser than precision 5': 1 });
  const coalesce = coalesceProcess({
    storage,
    finder: new TileFinder(storage, localQueries(storage.index)),
    workers,
  });
  // A cell with thousands of times as many pixels as the tile.
  const large = { ...tileOf(CELL.slice(0, 2), 64, 64, 1), collection: 'large' };
  await storeScene(storage, { id: 'l', day: 0, tiles: [large] });
  assert.deepEqual((await runProcess<DeriveResults>(storage, coalesce, { to: 'large' })).skipped, {
    'its tile would be larger than 512 MB': 1,
  });
  await assert.rejects(runProcess(storage, coalesce, { to: 'absent' }), { code: 'TW_WRANGLE_NO_COLLECTION' });
});
