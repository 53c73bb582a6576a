import type { ClusterMetrics } from '../../metrics/index.js';
import type { Cancellable, ObjectStore } from './object-store.js';

const OPERATIONS = {
  put: 'put',
  get: 'get',
  stream: 'stream',
  copyTo: 'copy',
  head: 'head',
  delete: 'delete',
} as const;

/** An object store whose calls are measured: streams until they are open, lists until their first objects. */
export function measuredStore(store: ObjectStore, calls: ClusterMetrics['store']): ObjectStore {
  return Object.assign(calls.measured(store, OPERATIONS), {
    async *list(prefix: string, options?: Cancellable) {
      const objects = store.list(prefix, options)[Symbol.asyncIterator]();
      try {
        let next = await calls.measure('list', () => objects.next(), options?.signal);
        for (; !next.done; next = await objects.next()) yield next.value;
      } finally {
        await objects.return?.();
      }
    },
  });
}
