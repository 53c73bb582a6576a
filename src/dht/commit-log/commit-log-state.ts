import type { Commit, RecordEdit, TileRecord } from '../../storage/index.js';

/** The combined result of consecutive commits: the content of a checkpoint. */
export class RecordState {
  private readonly tiles = new Map<string, TileRecord>();
  private readonly records = new Map<string, RecordEdit>();

  /** Applies the next commit. */
  apply({ removed = [], added = [], edits = [] }: Commit): void {
    for (const { id } of removed) this.tiles.delete(id);
    for (const tile of added) this.tiles.set(tile.id, tile);
    for (const edit of edits) {
      const key = `${edit.table}/${edit.key}`;
      if (edit.record === null) this.records.delete(key);
      else this.records.set(key, edit);
    }
  }

  /** A single commit with the same result on an empty store. */
  toCommit(): Commit {
    return { added: [...this.tiles.values()], edits: [...this.records.values()] };
  }
}
