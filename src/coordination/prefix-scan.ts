import { type CoordinationStore, type KeyValue, prefixRange } from './kv-store.js';

/** All keys that begin with `prefix`, in their order, at most `limit` at a time. Each page is of a revision of its own. */
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
