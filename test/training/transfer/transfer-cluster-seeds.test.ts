/** Agreement of nodes on the cells that train first. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Storage, type TextureRecord, type TileRecord } from '../../../src/storage/index.js';
import { TextureIndex } from '../../../src/training/index.js';
import { awaitSeedModels, type CellModel, electClusterSeeds } from '../../../src/training/transfer.js';
import { atEnd } from '../../support/at-end.js';
import { putModel } from '../../support/models.js';
import { tempFolder } from '../../support/temp.js';
import { putTextures } from '../../support/textures.js';

/** The texture value of each cell; two clusters around 0 and 10. */
const VALUES: Record<string, number> = { u0: 0.5, u1: 0.1, u2: -0.1, u3: 9, u4: 10.2, u5: 4.9 };

async function withCells(t: { after(work: () => Promise<void>): void }, folder: string) {
  const storage = await Storage.open(folder);
  atEnd(t, () => storage.close());
  const about = { title: 'ab', grid: 'geohash', precision: 2, license: 'various', createdAt: 0 } as const;
  await storage.catalogue.write([storage.catalogue.collections.set('ab', { id: 'ab', ...about })]);
  await putTextures(
    storage,
    Object.entries(VALUES).map(
      ([geocode, value]): TextureRecord => ({
        ...{ collection: 'ab', grid: 'geohash', geocode, tile: geocode, version: 'v', start: 0 },
        values: [value],
      }),
    ),
  );
  const clustering = { scaling: { means: [0], deviations: [1] }, centres: [[0], [10]], curve: [], seed: 1 };
  await storage.textures.putClustering({ collection: 'ab', ...clustering, places: 6, createdAt: 0 });
  return storage;
}

/** An exchange between several nodes: each sends a value and receives those of all. */
function meeting(nodes: number) {
  const words: unknown[] = [];
  const told: ((words: unknown[]) => void)[] = [];
  return <T>(word: T): Promise<T[]> =>
    new Promise((resolve) => {
      words.push(word);
      told.push(resolve as (words: unknown[]) => void);
      if (words.length === nodes) for (const tell of told) tell(words);
    });
}

test('all nodes choose the same cell of each cluster, and the next one if that has no model', async (t) => {
  const storage = await withCells(t, await tempFolder(t));
  const textures = new TextureIndex(storage);
  const of = (geocode: string, model = 'ndvi'): CellModel => ({ model, collection: 'ab', geocode });
  const all = Object.keys(VALUES);
  const round = async (offered: string[][], seeds: string[]) => {
    const allGather = meeting(offered.length);
    const chosen = await Promise.all(
      offered.map((own) =>
        electClusterSeeds(
          textures,
          own.map((one) => of(one)),
          seeds.map((one) => of(one)),
          { allGather },
        ),
      ),
    );
    const names = chosen.map((isSeed) => (isSeed ? all.filter((one) => isSeed(of(one))) : undefined));
    for (const other of names) assert.deepEqual(other, names[0]);
    for (const isSeed of chosen) assert.equal(isSeed?.(of('u1', 'ndmi')) ?? false, false);
    return names[0];
  };
  // If cells are equally near to the centre, the first geocode is chosen.
  assert.deepEqual(
    await round(
      [
        ['u0', 'u2', 'u3'],
        ['u1', 'u4'],
        ['u5', 'zz'],
      ],
      [],
    ),
    ['u1', 'u4'],
  );
  assert.deepEqual(await round([['u0', 'u2', 'u3'], ['u5']], ['u4']), ['u2']);
  assert.deepEqual(await round([['u0', 'u3'], [], ['u5']], ['u4']), ['u0']);
  assert.deepEqual(await round([['u3'], [], ['u5']], ['u4']), ['u5']);
  assert.equal(await round([['u3'], [], ['zz']], ['u4']), undefined);
});

test('the models of all seeds are awaited', { timeout: 60_000 }, async (t) => {
  const storage = await withCells(t, await tempFolder(t));
  const tile = { collection: 'ab', grid: 'geohash', id: 't', version: 'v', start: 0, end: 0 };
  const stored = [];
  for (const geocode of ['u1', 'u4'])
    stored.push(await putModel(storage, [{ ...tile, geocode } as TileRecord]));
  const [own, others] = stored.map(({ id, version }) => ({ id, version })) as [Version, Version];
  const deleted = { id: own.id.replace('u1', 'u2'), version: 'v' };
  // The commits of other nodes arrive some time after they were made.
  let asked = 0;
  const behind = {
    models: {
      get: async (id: string) => (id === others.id && asked++ < 4 ? undefined : storage.models.get(id)),
    },
  };
  const lines: string[] = [];
  const job = {
    signal: new AbortController().signal,
    log: (_: unknown, text: string) => lines.push(text),
    allGather: async <T>(word: T) => [word, [others] as T],
  };
  const found = await awaitSeedModels(behind, [own, deleted], job);
  assert.deepEqual(
    found.map(({ id, version }) => ({ id, version })),
    [own, others],
  );
  assert.ok(asked > 4);
  assert.equal(lines.length, 1);
  assert.match(lines[0]!, new RegExp(`no place starts from ${deleted.id}`));
});

interface Version {
  id: string;
  version: string;
}
