/** The records after consecutive commits, applied one by one in memory. */
import { checkpointRecords, checkpointTiles, readManifest } from '../../../src/dht/log/checkpoint.js';
import type { StoredCheckpoint } from '../../../src/dht/log/log.js';
import { readSegment, segmentName } from '../../../src/dht/log/segment.js';
import { ALL_SLOTS, SlotSet } from '../../../src/dht/slots.js';
import type { Commit, ObjectStore, RecordEdit, TileRecord } from '../../../src/storage/index.js';

export class FoldedCommits {
  /** By id. */
  readonly tiles = new Map<string, TileRecord>();
  /** All other records, by table and key. */
  readonly records = new Map<string, RecordEdit>();

  apply({ removed = [], added = [], edits = [] }: Commit): void {
    for (const { id } of removed) this.tiles.delete(id);
    for (const tile of added) this.tiles.set(tile.id, tile);
    for (const edit of edits) {
      const name = `${edit.table}/${edit.key}`;
      if (edit.record === null) this.records.delete(name);
      else this.records.set(name, edit);
    }
  }
}

/** The records of a checkpoint and of the segments of later commits. */
export async function foldedCommits(
  objects: ObjectStore,
  checkpoint: StoredCheckpoint | undefined,
  segments: string[],
): Promise<FoldedCommits> {
  const state = new FoldedCommits();
  const manifest = await readManifest(objects, checkpoint);
  for await (const edits of checkpointRecords(objects, manifest)) state.apply({ edits });
  for await (const added of checkpointTiles(objects, manifest, new SlotSet(ALL_SLOTS)))
    state.apply({ added });
  for (const segment of segments) state.apply(await readSegment(objects, segmentName(segment), () => true));
  return state;
}
