import { type CoordinationStore, type KeyValue, prefixRange } from './coordination-store.js';

/** Yields all keys that begin with `prefix`, in order, in pages of at most `limit`. Each page is read at its own revision. */
export async function* scanPrefix(
  store: CoordinationStore,
  prefix: string,
  limit: number,
): AsyncGenerator<KeyValue[]> {
  const { end } = prefixRange(prefix);
  for (let key: string | undefined = prefix; key !== undefined; ) {
    const { gets } = await store.transact({ success: [{ op: 'get', key, end, limit }] });
    const { kvs, more }: { kvs: KeyValue[]; more: boolean } = gets[0]!;
    yield kvs;
    key = more ? `${kvs.at(-1)!.key}\0` : undefined;
  }
}
