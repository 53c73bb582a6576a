/** What many commits come to, one after another: the content of a checkpoint. */
import type { Commit, RecordEdit, TileRecord } from '../../storage/index.js';

/** Records as of some commit. */
export class RecordState {
  private readonly tiles = new Map<string, TileRecord>();
  private readonly records = new Map<string, RecordEdit>();

  /** Takes in the next commit. */
  apply({ removed = [], added = [], edits = [] }: Commit): void {
    for (const { id } of removed) this.tiles.delete(id);
    for (const tile of added) this.tiles.set(tile.id, tile);
    for (const edit of edits) {
      const key = `${edit.table}/${edit.key}`;
      if (edit.record === null) this.records.delete(key);
      else this.records.set(key, edit);
    }
  }

  /** The one commit that makes an empty store hold all of it. */
  toCommit(): Commit {
    return { added: [...this.tiles.values()], edits: [...this.records.values()] };
  }
}
