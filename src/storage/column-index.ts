import type { TileRecord } from './records.js';
export class ColumnIndex {
  readonly tiles = new Map<string, TileRecord>();
  get size(): number {
    return this.tiles.size;
  }
  load(records: Iterable<TileRecord>): void {
    this.tiles.clear();
    this.add(records);
  }
  add(records: Iterable<TileRecord>): void {
    for (const r of records) this.tiles.set(r.id, r);
  }
  remove(keys: Iterable<string>): void {
    for (const k of keys) this.tiles.delete(k);
  }
}
