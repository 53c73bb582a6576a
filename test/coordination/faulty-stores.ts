/** Real stores whose answers can be lost. */

import { coordinationFull, coordinationUnavailable, outcomeUnknown } from '../../src/coordination/index.js';
import type { CoordinationStore } from '../../src/coordination/store.js';
import { storeUnavailable } from '../../src/storage/errors.js';
import type { ObjectStore } from '../../src/storage/index.js';

/**
 * The fate of a request that changes something:
 * - `lost`: it is executed, and its answer is lost;
 * - `failed`: it does not reach the store;
 * - `full`: etcd refuses it because its database is full.
 */
export interface Fault {
  kind: 'lost' | 'failed' | 'full';
  /** Number of later requests, of any kind, that fail as well. */
  outage: number;
}

/** Decides the fate of each changing request, in the order of arrival. */
export type Faults = (request: string) => Fault | undefined;

/** Changing requests to etcd: all transactions that write. Leases and watches work. */
export function faultyCoordination(inner: CoordinationStore, faults: Faults): CoordinationStore {
  let outage = 0;
  const isOut = () => outage > 0 && outage-- > 0;
  const away = () => coordinationUnavailable('a request', 'the test', 'outage');
  return wrapped(inner, {
    read: async (...args: Parameters<CoordinationStore['read']>) => {
      if (isOut()) throw away();
      return inner.read(...args);
    },
    transact: async (...args: Parameters<CoordinationStore['transact']>) => {
      if (isOut()) throw away();
      const writes = args[0].success.flatMap((operation) => (operation.op === 'get' ? [] : operation.key));
      const fault = writes.length > 0 ? faults(writes.join(' ')) : undefined;
      if (!fault) return inner.transact(...args);
      outage = fault.outage;
      if (fault.kind === 'failed') throw away();
      if (fault.kind === 'full') throw coordinationFull('the test');
      await inner.transact(...args);
      throw outcomeUnknown('a request', 'the test', 'its answer was lost');
    },
  });
}

/** Changing requests to an object store: puts and deletes. */
export function faultyObjects(inner: ObjectStore, faults: Faults): ObjectStore {
  let outage = 0;
  const isOut = () => outage > 0 && outage-- > 0;
  const away = (name: string) => storeUnavailable(inner.url, name, 'outage');
  const changing =
    <A extends [string | string[], ...unknown[]], T>(request: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      const name = String(args[0]);
      if (isOut()) throw away(name);
      const fault = faults(name);
      if (!fault) return request(...args);
      outage = fault.outage;
      if (fault.kind === 'lost') await request(...args);
      throw away(name);
    };
  return wrapped(inner, {
    put: changing(inner.put.bind(inner)),
    delete: changing(inner.delete.bind(inner)),
    get: async (...args: Parameters<ObjectStore['get']>) => {
      if (isOut()) throw away(args[0]);
      return inner.get(...args);
    },
    head: async (...args: Parameters<ObjectStore['head']>) => {
      if (isOut()) throw away(args[0]);
      return inner.head(...args);
    },
  });
}

/** The same store, but `hook` runs before each call of one of its methods, with the arguments of the call. */
export function hooked<T extends object, K extends keyof T>(
  inner: T,
  method: K,
  hook: (...args: T[K] extends (...args: infer A) => unknown ? A : never) => Promise<void>,
): T {
  const call = Reflect.get(inner, method) as (...args: unknown[]) => unknown;
  const own = async (...args: never) => {
    await hook(...args);
    return call.apply(inner, args);
  };
  return wrapped(inner, { [method]: own } as unknown as Partial<T>);
}

function wrapped<T extends object>(inner: T, methods: Partial<T>): T {
  return new Proxy(inner, {
    get(target, key) {
      const own = Reflect.get(methods, key) as unknown;
      if (own) return own;
      const value = Reflect.get(target, key) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
