/** Records of tiles that have gone, or were replaced, by the latest commits of a replica. */

import type { TileRecord } from '../catalogue/records.js';
import { commitTooOld } from '../errors.js';

/** Invariant: `commits` are in ascending order, and all after `oldest` that have removed or replaced a tile. */
export class UndoRecords {
  private commits: { seq: number; tiles: Map<string, TileRecord> }[] = [];
  private oldest = 0;

  /** The tiles that commit `seq`, later than those before, removes or replaces: as they were. */
  add(seq: number, tiles: TileRecord[]): void {
    if (tiles.length > 0) this.commits.push({ seq, tiles: new Map(tiles.map((tile) => [tile.id, tile])) });
  }

  /** The record that a tile had as of commit `seq`, where a later one has changed it. Throws TW_STORAGE_TOO_OLD. */
  get(id: string, seq: number): TileRecord | undefined {
    if (seq < this.oldest) throw commitTooOld(seq, this.oldest);
    const { commits } = this;
    let found: TileRecord | undefined;
    for (let i = commits.length - 1; i >= 0 && commits[i].seq > seq; i--)
      found = commits[i].tiles.get(id) ?? found;
    return found;
  }

  /** Nobody reads any more as of a commit before `seq`. */
  forgetBefore(seq: number): void {
    this.oldest = seq;
    this.commits = this.commits.filter((commit) => commit.seq > seq);
  }
}
