/** How many bytes the tiles of each slot have. */
import type { Commit, Storage, TileRecord } from '../storage/index.js';
import { type PrefixLengths, SLOTS, slotOfCell } from './slots.js';

/** Records that are read together. */
const CHUNK = 1000;

const bytesOf = ({ groups }: TileRecord) => groups.reduce((sum, { bytes }) => sum + bytes, 0);

/**
 * The bytes of the tiles in a folder, by slot. They are counted once, and kept up with the commits from then on.
 *
 * Invariant: after `begin`, every change of the folder's tiles is told in the same order, so that when the count has ended the
 * sums are those of the tiles that are there.
 */
export class SlotBytes {
  private readonly sums = new Float64Array(SLOTS);
  private counting: Promise<void> | undefined;
  private isCounted = false;

  constructor(
    private readonly storage: Storage,
    private readonly prefixLengths: PrefixLengths,
  ) {}

  /** By slot, 0 for those without tiles; undefined until they are counted. It goes on changing. */
  get bytes(): ArrayLike<number> | undefined {
    return this.isCounted ? this.sums : undefined;
  }

  /**
   * Counts the tiles that are there now; the result resolves when all are counted. Nothing may change them until the call returns: it
   * reads the catalogue as it is then, whatever comes meanwhile.
   */
  begin(): Promise<void> {
    if (this.counting) return this.counting;
    const records = this.storage.catalogue.tiles.scan();
    // LevelDB reads as of the moment in which the first record is asked for.
    const first = records.next();
    const count = async () => {
      for (let next = await first; !next.done; next = await records.next())
        if (next.value.record)
          this.sums[slotOfCell(next.value.record, this.prefixLengths)]! += bytesOf(next.value.record);
      this.isCounted = true;
    };
    this.counting = count().catch((error) => {
      this.counting = undefined;
      this.sums.fill(0);
      throw error;
    });
    return this.counting;
  }

  /** What a commit changes, by slot. Asked before it is applied, because what goes is read. */
  async changeOf({ removed = [], added = [] }: Commit): Promise<Map<number, number>> {
    const change = new Map<number, number>();
    if (!this.counting) return change;
    const add = (tile: TileRecord, sign: 1 | -1) => {
      const slot = slotOfCell(tile, this.prefixLengths);
      change.set(slot, (change.get(slot) ?? 0) + sign * bytesOf(tile));
    };
    const { index } = this.storage;
    const former = [...new Set([...removed, ...added].map(({ id }) => id))].filter((id) => index.has(id));
    for (let at = 0; at < former.length; at += CHUNK)
      for (const tile of await this.storage.getTiles(former.slice(at, at + CHUNK))) add(tile, -1);
    for (const tile of added) add(tile, 1);
    return change;
  }

  /** The commit is applied. */
  apply(change: ReadonlyMap<number, number>): void {
    for (const [slot, bytes] of change) this.sums[slot]! += bytes;
  }
}
