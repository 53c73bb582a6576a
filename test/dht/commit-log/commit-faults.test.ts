/**
 * Answers of etcd and of the tile store are lost at every step of a workload. Afterwards the log in etcd, its archive in the tile
 * store, and the state of each node are the same, and contain everything that was acknowledged.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { LogArchive, listArchived, readArchived } from '../../../src/dht/log/archive.js';
import { writeLogCheckpoint } from '../../../src/dht/log/checkpoint.js';
import { listLocks } from '../../../src/dht/log/fenced-lock.js';
import { ClusterLockManager } from '../../../src/dht/log/locks.js';
import { CommitLog } from '../../../src/dht/log/log.js';
import { Replica } from '../../../src/dht/replica.js';
import { DEFAULT_PREFIX_LENGTHS as prefixLengths, SLOTS } from '../../../src/dht/slots.js';
import { TilewrightError } from '../../../src/errors.js';
import { Storage } from '../../../src/storage/index.js';
import {
  type Fault,
  type Faults,
  faultyCoordination,
  faultyObjects,
} from '../../coordination/faulty-stores.js';
import {
  COLLECTION,
  cellsOf,
  factsOf,
  stageTile,
  tileRecord,
  writeDerived,
} from '../../storage/sample-scenes.js';
import { isNightly } from '../../support/nightly.js';
import { type SharedStores, sharedStores } from '../shared-stores.js';
import { foldedCommits } from './folded-commits.js';

/** Short enough for an outage of a few requests to exceed it. A busy machine may exceed it without a fault. */
const TIMEOUT_MS = 40;
/** Errors after which the change may have been made. */
const UNKNOWN = ['TW_DHT_OUTCOME_UNKNOWN', 'TW_DHT_NOT_NOTED'];
/** Keeps all entries for the comparison. */
const KEEP_ALL = 1e9;

interface Node {
  storage: Storage;
  replica: Replica;
  log: CommitLog;
  stop(): Promise<void>;
}

async function startNode(where: SharedStores, id: string): Promise<Node> {
  const { folder, objects, coordination } = where;
  const storage = await Storage.open(join(folder, id), { reserve: 0 });
  const log = new CommitLog(coordination, KEEP_ALL);
  const shared = { storage, objects, log, prefixLengths };
  const replica = await Replica.open({ ...shared, cluster: 'c' });
  const claims = { ...shared, coordination, replica, ownerLabel: id, timeoutMs: TIMEOUT_MS };
  storage.enterCluster(new ClusterLockManager(claims), objects, () => {});
  await replica.loadSlots(Array.from({ length: SLOTS }, (_, slot) => slot));
  const stop = async () => {
    await replica.close();
    await storage.close();
  };
  return { storage, replica, log, stop };
}

/** The possible states: for each scene and derived tile the deliveries of which one must be stored; 0 is none. */
class Expected {
  private readonly deliveries = new Map<string, Set<number>>();

  async after(keys: string[], n: number, work: () => Promise<unknown>): Promise<void> {
    const error = await work().then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error !== undefined && !(error instanceof TilewrightError)) throw error;
    for (const key of keys) {
      const before = error ? this.of(key) : [];
      const isRefused = error && !UNKNOWN.includes(error.code);
      this.deliveries.set(key, new Set([...before, ...(isRefused ? [] : [n])]));
    }
  }

  private of(key: string): Set<number> {
    return this.deliveries.get(key) ?? new Set([0]);
  }

  async check({ storage }: Node): Promise<void> {
    for (const [key, allowed] of this.deliveries) {
      const [kind, id] = key.split(' ') as ['scene' | 'tile', string];
      const stored =
        kind === 'scene'
          ? (await storage.getScene(COLLECTION.id, id))?.start
          : (await storage.getTiles([id]))[0]?.start;
      const n = (stored ?? 0) / 1000;
      assert.ok(allowed.has(n), `${key} is of delivery ${n}, not of ${[...allowed].join(' or ')}`);
    }
  }
}

/** As in an ingest: a failed write is undone. */
async function deliver({ storage }: Node, scene: string, n: number): Promise<void> {
  const cells = cellsOf(n);
  const write = await storage.beginScene(COLLECTION, scene, cells);
  try {
    for (const cell of cells) await stageTile(write, n, cell);
    await write.publish(cells);
    await write.commit(
      factsOf(n),
      cells.map((cell) => tileRecord(write, n, cell)),
    );
  } catch (error) {
    await write.abort();
    throw error;
  }
}

/** As in a derivation: a failed batch does not keep the next one from being committed under the same lock. */
async function derive({ storage }: Node, n: number, expected: Expected): Promise<void> {
  await writeDerived(
    storage,
    n,
    () => {},
    (write, tiles) =>
      expected.after(
        tiles.map(({ id }) => `tile ${id}`),
        n,
        () => write.commit(tiles),
      ),
  ).catch((error) => {
    if (!(error instanceof TilewrightError)) throw error;
  });
}

/** The numbers of the deliveries have few cells, which overlap where one delivery replaces another. */
const STEPS: ((node: Node, expected: Expected, where: SharedStores) => Promise<void>)[] = [
  (node, expected) => expected.after(['scene scene-0'], 1, () => deliver(node, 'scene-0', 1)),
  (node, expected) => expected.after(['scene s2'], 14, () => deliver(node, 's2', 14)),
  (node, expected) => derive(node, 7, expected),
  (node, expected) => expected.after(['scene s2'], 9, () => deliver(node, 's2', 9)),
  ({ log }, expected, { objects }) => expected.after([], 0, () => writeLogCheckpoint({ log, objects })),
  (node, expected) =>
    expected.after(['scene s2'], 0, () => node.storage.collections.deleteScene(COLLECTION.id, 's2')),
  ({ storage }, expected) =>
    expected.after([], 0, () =>
      storage.collections.update(COLLECTION.id, (record) => ({ ...record, title: 'amended' })),
    ),
  (node, expected) => derive(node, 31, expected),
  (node, expected) => expected.after(['scene scene-0'], 5, () => deliver(node, 'scene-0', 5)),
];

/** Executes `steps` with faults, and checks the state afterwards. */
async function workload(
  where: SharedStores,
  steps: number[],
  faults: { coordination?: Faults; objects?: Faults },
): Promise<void> {
  let isOver = false;
  const of = (some: Faults | undefined) => (request: string) => (isOver ? undefined : some?.(request));
  const faulty = {
    ...where,
    coordination: faultyCoordination(where.coordination, of(faults.coordination)),
    objects: faultyObjects(where.objects, of(faults.objects)),
  };
  const [a, b] = [await startNode(faulty, 'a'), await startNode(where, 'b')];
  try {
    const expected = new Expected();
    for (const step of steps) await STEPS[step]!(a, expected, faulty);
    isOver = true;
    // An outage that is still in progress ends here.
    for (let i = 0; i < 20; i++) await a.log.readCheckpoint().catch(() => undefined);
    for (let i = 0; i < 20; i++) await faulty.objects.head('x').catch(() => undefined);
    await expected.after(['scene last-a'], 17, () => deliver(a, 'last-a', 17));
    await expected.after(['scene last-b'], 21, () => deliver(b, 'last-b', 21));
    // On a busy machine, the last commit may not have archived its entry in time.
    const { head } = await b.log.bounds();
    await new LogArchive(b.log, where.objects).archiveUpTo(head);
    await assertSame(where, [a, b]);
    await expected.check(a);
    await expected.check(b);
  } finally {
    await a.stop();
    await b.stop();
  }
}

async function assertSame({ objects, coordination }: SharedStores, nodes: Node[]): Promise<void> {
  const page = await new CommitLog(coordination).readSince(0, KEEP_ALL);
  assert.ok(page.kind === 'entries');
  const { entries } = page;
  assert.deepEqual(await readArchived(objects, 0, (await listArchived(objects)).at(-1)!), entries);
  const state = await foldedCommits(
    objects,
    undefined,
    entries.map(({ segment }) => segment),
  );
  const tiles = new Map([...state.tiles].map(([id, { version }]) => [id, version]));
  const records = new Map([...state.records].map(([name, { record }]) => [name, record as unknown]));
  for (const { storage, replica } of nodes) {
    await replica.catchUp();
    const { ids } = storage.index.query({});
    const own = await storage.getTiles(ids);
    assert.deepEqual(new Map(own.map(({ id, version }) => [id, version])), sorted(tiles, ids));
    const known = new Map<string, unknown>();
    for (const table of ['collections', 'scenes', 'textures'] as const)
      for await (const key of storage.catalogue[table].keys())
        known.set(`${table}/${key}`, await storage.catalogue[table].get(key));
    assert.deepEqual(known, sorted(records, [...known.keys()]));
  }
  const open = (await listLocks(coordination, '')).filter(({ done }) => done === undefined);
  assert.deepEqual(open, [], 'no claim is left without its holder');
}

/** The same map with its keys in the given order, as far as they have one. */
function sorted<T>(map: Map<string, T>, keys: string[]): Map<string, T> {
  const all = [...new Set([...keys.filter((key) => map.has(key)), ...map.keys()])];
  return new Map(all.map((key) => [key, map.get(key)!]));
}

const ALL = STEPS.map((_, i) => i);

/**
 * Each request whose answer is lost, and how. The files of a write follow each other, and so do the parts of a checkpoint: of such a
 * series, the answer to the first one is lost briefly, and those from the last one on for longer.
 */
function losses(requests: string[]): { at: number; fault: Fault }[] {
  const seriesAt = (at: number) => /^(tiles|catalogue\/parts)\//.exec(requests[at] ?? '')?.[1];
  return [...requests.keys()].flatMap((at) => {
    const series = seriesAt(at);
    const outages = [
      ...(series === undefined || seriesAt(at - 1) !== series ? [0] : []),
      ...(series === undefined || seriesAt(at + 1) !== series ? [8] : []),
    ];
    return outages.map((outage) => ({ at, fault: { kind: 'lost' as const, outage } }));
  });
}

for (const which of ['coordination', 'objects'] as const)
  test(`the answer to each change of ${which} is lost, briefly or for longer than the time limit of a commit`, async (t) => {
    const requests: string[] = [];
    const count = (request: string) => {
      requests.push(request);
      return undefined;
    };
    await workload(await sharedStores(t), ALL, { [which]: count });
    // Each change tries a seventh of them.
    const tried = losses(requests).filter((_, i) => isNightly || i % 7 === 0);
    for (const { at, fault } of tried) {
      let seen = 0;
      const faults = () => (seen++ === at ? fault : undefined);
      await workload(await sharedStores(t), ALL, { [which]: faults }).catch((error) => {
        throw new Error(`request ${at} (${requests[at]}), outage ${fault.outage}`, { cause: error });
      });
    }
  });

test('random workloads with random faults of both stores', async (t) => {
  const fault = fc.record({ kind: fc.constantFrom<Fault['kind']>('lost', 'failed'), outage: fc.nat(9) });
  const schedule = fc.array(fc.tuple(fc.nat(12), fault), { maxLength: 8 });
  const faultsOf = (plan: [number, Fault][]): Faults => {
    let [next, wait] = [0, plan[0]?.[0] ?? Infinity];
    return () => {
      if (wait-- > 0) return undefined;
      const [, found] = plan[next++]!;
      wait = plan[next]?.[0] ?? Infinity;
      return found;
    };
  };
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(STEPS.length - 1), { minLength: 2, maxLength: 8 }),
      schedule,
      schedule,
      async (steps, coordination, objects) => {
        const faults = { coordination: faultsOf(coordination), objects: faultsOf(objects) };
        await workload(await sharedStores(t), [0, ...steps], faults);
      },
    ),
    { seed: 42, numRuns: isNightly ? 15 : 4 },
  );
});
