/** The neighbours that the prediction of a tile reads. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gridByName } from '../../../src/grid/index.js';
import type { TileFinder } from '../../../src/query/index.js';
import { storeUnavailable } from '../../../src/storage/errors.js';
import {
  type ModelVersionRecord,
  type Storage,
  storeLost,
  type TileRecord,
} from '../../../src/storage/index.js';
import { getModelSpec } from '../../../src/training/models/builtin.js';
import { planHalo, verifiedModelFiles } from '../../../src/training/predict-plan.js';

test('a halo as wide as the tile has only the eight cells around it', async () => {
  const quadtile = gridByName('quadtile');
  const size = { width: 16, height: 16 };
  const tileOf = (geocode: string) =>
    ({
      ...{ id: geocode, version: '1', collection: 'c', scene: 's', source: 'raw', grid: 'quadtile', geocode },
      groups: [
        {
          ...{ name: '10m', role: 'data', dataType: 'uint16', nodata: 0, ...size },
          bands: ['red', 'green', 'blue'].map((name) => ({ name, commonName: name, scale: 1e-4, offset: 0 })),
        },
      ],
    }) as unknown as TileRecord;
  // The edges of these cells are rounded, so that cells beyond the neighbours are found too.
  const geocode = '0311301331';
  const { west, south, east, north } = quadtile.bounds(geocode);
  const around = {
    ...{ west: west - 1.5 * (east - west), east: east + 1.5 * (east - west) },
    ...{ south: south - 1.5 * (north - south), north: north + 1.5 * (north - south) },
  };
  const tiles = quadtile.cover(around, geocode.length);
  assert.equal(tiles.length, 25);
  const finder = {
    find: async ({ filter }: { filter: unknown }) => ({
      tiles: tiles.filter((one) => JSON.stringify(filter).includes(`"${one}"`)).map(tileOf),
    }),
  } as unknown as TileFinder;
  const { halo } = await planHalo(
    {
      finder,
      storage: { tileImage: () => ({ path: '' }) } as unknown as Storage,
      modelOf: async () => undefined,
      filesOf: async () => undefined,
    },
    tileOf(geocode),
    { spec: getModelSpec('ndvi'), group: '10m', size, values: 'reflectance' },
  );
  assert.deepEqual(
    halo.neighbours.map((one) => [one.east, one.south]).sort(),
    [-1, 0, 1].flatMap((x) => [-1, 0, 1].flatMap((y) => (x === 0 && y === 0 ? [] : [[x, y]]))).sort(),
  );
});

test('cloud removal reads the scenes of the priors of all cells, if a model reads priors', async () => {
  const size = { width: 16, height: 16 };
  const DAY = 86_400_000;
  const [own, eastern] = ['u26xg', 'u26xu'];
  const bands = ['red', 'green', 'blue'].map((name) => ({ name, commonName: name, scale: 1e-4, offset: 0 }));
  const tileOf = (scene: string, geocode: string, day: number, cloudCover: number | null) =>
    ({
      ...{ id: `${scene}-${geocode}`, version: '1', collection: 'c', scene, source: 'raw', grid: 'geohash' },
      ...{ geocode, start: day * DAY, cloudCover },
      groups: [{ ...{ name: '10m', role: 'data', dataType: 'uint16', nodata: 0, ...size }, bands }],
    }) as unknown as TileRecord;
  const [tile, neighbour] = [tileOf('date', own, 10, 30), tileOf('date', eastern, 10, 0)];
  const others = [
    tileOf('near', own, 11, 10),
    // Too much cloud for the prior of the eastern cell, but the western one reads its pixels.
    tileOf('near', eastern, 11, 80),
    tileOf('far', own, 20, 0),
    tileOf('far', eastern, 20, 0),
    tileOf('half', own, 30, 0),
    tileOf('half', eastern, 30, null),
  ];
  const model = (id: string, holdOut?: object) =>
    ({ id, version: '1', model: 'cloud-removal', card: { holdOut, pixelSize: { group: '10m' } } }) as unknown;
  const plan = (of: unknown, unanswered?: string[]) =>
    planHalo(
      {
        finder: {
          find: async ({ filter }: { filter: unknown }) =>
            JSON.stringify(filter).includes('"scene"')
              ? { tiles: [neighbour] }
              : { tiles: [tile, neighbour, ...others], unanswered },
        } as unknown as TileFinder,
        storage: { tileImage: ({ id }: TileRecord) => ({ path: id }) } as unknown as Storage,
        modelOf: async () => of as ModelVersionRecord,
        filesOf: async () => ({}) as never,
      },
      tile,
      { spec: getModelSpec('cloud-removal'), group: '10m', size, values: 'reflectance' },
    );
  const { halo, tiles, isPartial } = await plan(model('new', {}));
  assert.equal(isPartial, false);
  assert.deepEqual(halo.dates!.prior, ['near', 'far', 'half']);
  assert.deepEqual(Object.keys(halo.dates!.files), ['far', 'half', 'near']);
  const [{ dates }] = halo.neighbours as [(typeof halo.neighbours)[number]];
  assert.deepEqual(dates!.prior, ['far']);
  assert.deepEqual(Object.keys(dates!.files), ['far', 'near'], 'no scene whose cloud was not assessed');
  assert.equal(dates!.files['near']!.bands.red!.path, 'near-u26xu');
  // New versions of all of these tiles replace the cloud-free tile.
  assert.deepEqual(
    tiles.map(({ id }) => id).sort(),
    [neighbour, ...others.slice(0, 5)].map(({ id }) => id).sort(),
  );
  assert.equal((await plan(model('new', {}), ['slot'])).isPartial, true);
  const former = await plan(model('former'));
  assert.deepEqual([former.halo.dates, former.tiles], [undefined, [neighbour]]);
});

test('a model whose file is lost is not blended; a store that does not answer is an error', async () => {
  const model = { id: 'ndvi_c_gu3', version: '1' } as ModelVersionRecord;
  const failing = (error: Error) =>
    verifiedModelFiles({ models: { readFile: () => Promise.reject(error) } } as unknown as Storage);
  assert.equal(await failing(storeLost('model.json', 's3://tiles', 'a model'))(model), undefined);
  const { code } = storeUnavailable('s3://tiles', 'it', 'no answer');
  await assert.rejects(failing(storeUnavailable('s3://tiles', 'it', 'no answer'))(model), { code });
});
