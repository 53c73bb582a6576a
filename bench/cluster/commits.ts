/** A scene's commit: from its last tile in the store to the answer of the transaction, and its copy. */
import { DEFAULT_PREFIX_LENGTHS, slotOf } from '../../src/dht/slots.js';
import { geohash } from '../../src/grid/index.js';
import type { SceneRecord, TileRecord } from '../../src/storage/index.js';
import { COLLECTION, tilesOf, wholeRecords } from '../search/search-data.js';
import { type BenchResult, median, result } from '../support/bench.js';
import type { Writer } from './writer.js';

const SLOTS_OF_SCENE = 40;
const TILES_OF_SLOT = 5;
const MARK = 50;

export async function measureCommits({ claims }: Writer, short: boolean): Promise<BenchResult[]> {
  const cells = cellsInSlots();
  const [like] = wholeRecords(tilesOf(1));
  const times: number[] = [];
  for (let n = 0; n < (short ? 5 : 60); n++) {
    const id = `commit-${n}`;
    const claim = await claims.lockScene(COLLECTION.id, id);
    try {
      const { version } = claim;
      const added = cells.map(
        (geocode): TileRecord => ({
          ...like!,
          id: `${COLLECTION.id}_${id}_g${geocode}`,
          scene: id,
          geocode,
          version,
        }),
      );
      const { start, end, platform } = like!;
      const record: SceneRecord = {
        ...{ id, collection: COLLECTION.id, version, start, end, platform },
        ...{ fingerprint: id, geocodes: cells, warnings: [], committedAt: Date.now() },
      };
      const key = `${COLLECTION.id}/${id}`;
      const begun = performance.now();
      await claim.commit(async () => ({
        added,
        edits: [
          { table: 'scenes', key, record },
          ...(n === 0 ? [{ table: 'collections' as const, key: COLLECTION.id, record: COLLECTION }] : []),
        ],
      }));
      times.push(performance.now() - begun);
    } finally {
      await claim.release();
    }
  }
  const title = `commit of a scene of ${cells.length} tiles in ${SLOTS_OF_SCENE} slots`;
  return [
    result(`${title}: p50`, 'ms', median(times), { mark: MARK }),
    result(`${title}: p90`, 'ms', times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.9)]!),
  ];
}

/** Neighbouring cells of precision 5 that fall into so many slots. */
function cellsInSlots(): string[] {
  const bySlot = new Map<number, string[]>();
  const first = geohash.key('u2ed0').key;
  for (let key = first; bySlot.size <= SLOTS_OF_SCENE; key += 32 ** 4) {
    const geocode = geohash.geocode(key, 5);
    const slot = slotOf('geohash', geocode, DEFAULT_PREFIX_LENGTHS.geohash);
    const known = bySlot.get(slot);
    if (!known) bySlot.set(slot, [geocode]);
    else if (known.length < TILES_OF_SLOT) known.push(geocode);
  }
  return [...bySlot.values()].slice(0, SLOTS_OF_SCENE).flat();
}
