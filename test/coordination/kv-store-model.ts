/** The coordination store as a plain list of keys: a second implementation for comparison. */
import type {
  KeyRange,
  KeyValue,
  Operation,
  RangeResult,
  RevisionCompare,
  Transaction,
  TransactionResult,
} from '../../src/coordination/store.js';

export class StoreModel {
  private kvs: KeyValue[] = [];

  /** A comparison that may be true: with the revision of the key minus `back`. */
  nearRevision(key: string, back: number, isMod: boolean): RevisionCompare {
    const kv = this.kvs.find((kv) => kv.key === key);
    if (isMod) return { key, modRevision: Math.max(0, (kv?.modRevision ?? 0) - back) };
    return { key, createRevision: Math.max(0, (kv?.createRevision ?? 0) - back) };
  }

  /** True if neither branch writes a key twice. */
  isAllowed({ success, failure = [] }: Transaction): boolean {
    return [success, failure].every((operations) => {
      const puts = operations.filter(({ op }) => op === 'put').map(({ key }) => key);
      const deletes = operations.filter(({ op }) => op === 'delete');
      return (
        new Set(puts).size === puts.length && !puts.some((key) => deletes.some((range) => isIn(range, key)))
      );
    });
  }

  /** The answer, given the revision that the store assigned to the transaction. */
  transact({ compare = [], success, failure = [] }: Transaction, revision: number): TransactionResult {
    const succeeded = compare.every((one) => {
      const kv = this.kvs.find(({ key }) => key === one.key);
      return 'modRevision' in one
        ? one.modRevision === (kv?.modRevision ?? 0)
        : one.createRevision === (kv?.createRevision ?? 0);
    });
    const operations = succeeded ? success : failure;
    const gets: RangeResult[] = [];
    for (const operation of operations) {
      if (operation.op === 'get') gets.push(this.get(operation));
      else this.write(operation, revision);
    }
    return { succeeded, revision, gets };
  }

  private get(range: KeyRange & { limit?: number }): RangeResult {
    const found = this.kvs.filter(({ key }) => isIn(range, key)).sort((a, b) => (a.key < b.key ? -1 : 1));
    const kvs = found.slice(0, range.limit);
    return { kvs, more: kvs.length < found.length };
  }

  private write(operation: Exclude<Operation, { op: 'get' }>, revision: number): void {
    const range: KeyRange = operation.op === 'put' ? { key: operation.key } : operation;
    const before = this.kvs.filter(({ key }) => isIn(range, key));
    this.kvs = this.kvs.filter((kv) => !before.includes(kv));
    if (operation.op === 'delete') return;
    const { key, value, lease = '' } = operation;
    const createRevision = before[0]?.createRevision ?? revision;
    this.kvs.push({ key, value, createRevision, modRevision: revision, lease });
  }
}

const isIn = ({ key: first, end }: KeyRange, key: string) =>
  end === undefined ? key === first : first <= key && key < end;
