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
import { getModelSpec } from '../../../src/training/models/index.js';
import { planHalo, verifiedModelFiles } from '../../../src/training/predict/predict-neighbours.js';

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
      storage: { tilePath: () => '' } as unknown as Storage,
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

test('a model whose file is lost is not blended; a store that does not answer is an error', async () => {
  const model = { id: 'ndvi_c_gu3', version: '1' } as ModelVersionRecord;
  const failing = (error: Error) =>
    verifiedModelFiles({ models: { readFile: () => Promise.reject(error) } } as unknown as Storage);
  assert.equal(await failing(storeLost('model.json', 's3://tiles', 'a model'))(model), undefined);
  const { code } = storeUnavailable('s3://tiles', 'it', 'no answer');
  await assert.rejects(failing(storeUnavailable('s3://tiles', 'it', 'no answer'))(model), { code });
});
