/** Tile records that the latest commits of a replica have removed or replaced. */
import { commitTooOld } from '../errors.js';
import type { TileRecord } from '../records/index.js';

/** Invariant: `commits` has, in ascending order, all commits after `oldest` that removed or replaced a tile. */
export class UndoRecords {
  private commits: { seq: number; tiles: Map<string, TileRecord> }[] = [];
  private oldest = 0;

  /** Adds the former records of the tiles that commit `seq` removes or replaces; `seq` is later than all before. */
  add(seq: number, tiles: TileRecord[]): void {
    if (tiles.length > 0) this.commits.push({ seq, tiles: new Map(tiles.map((tile) => [tile.id, tile])) });
  }

  /** The record that a tile had as of commit `seq`, if a later commit has changed it. Throws TW_STORAGE_TOO_OLD. */
  get(id: string, seq: number): TileRecord | undefined {
    if (seq < this.oldest) throw commitTooOld(seq, this.oldest);
    const { commits } = this;
    let former: TileRecord | undefined;
    for (let i = commits.length - 1; i >= 0 && commits[i].seq > seq; i--)
      former = commits[i].tiles.get(id) ?? former;
    return former;
  }

  /** Drops the records that only reads as of a commit before `seq` need. */
  forgetBefore(seq: number): void {
    this.oldest = seq;
    this.commits = this.commits.filter((commit) => commit.seq > seq);
  }
}
