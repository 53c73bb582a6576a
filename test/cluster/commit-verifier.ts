/** Compares the commits in the log in etcd, its archive in the store, and the replicas in the data folders of the nodes. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { EtcdStore } from '../../src/coordination/index.js';
import { SlotSet } from '../../src/dht/index.js';
import { archivedEntryName } from '../../src/dht/log/archive.js';
import { CommitLog, entriesSince } from '../../src/dht/log/log.js';
import { readSegment, segmentName } from '../../src/dht/log/segment.js';
import { readIdentity } from '../../src/dht/recovery.js';
import { type PrefixLengths, slotOfCell } from '../../src/dht/slots.js';
import {
  Catalogue,
  type ObjectStore,
  openObjectStore,
  REPLICATED_TABLES,
  type TileRecord,
} from '../../src/storage/index.js';
import { type FoldedCommits, foldedCommits } from '../dht/commit-log/folded-commits.js';
import {
  type LoggedCommit,
  type ReplicaContent,
  sameReplicas,
  soundCopies,
  soundLog,
  type Violation,
} from './checkers.js';
import { ask, until } from './client.js';
import type { TestCluster, TestNode } from './cluster.js';

/** Time limit for applying the last commit. */
const APPLY_TIMEOUT_MS = 30_000;

/** Stops all nodes, and compares the log with its archive, its segments and the records of each node. */
export async function verifyCommits(cluster: TestCluster): Promise<Violation[]> {
  const coordination = new EtcdStore(cluster.etcd.urls, cluster.etcdName);
  const objects = await openObjectStore(pathToFileURL(cluster.store).href);
  try {
    const log = new CommitLog(coordination);
    const { head } = await log.bounds();
    await until('all nodes have applied the last commit', APPLY_TIMEOUT_MS * cluster.slowness, async () => {
      const seqs = await Promise.all(cluster.nodes.map(appliedBy));
      return seqs.every((seq) => seq >= head);
    });
    await Promise.all(cluster.nodes.map(({ server }) => server.stop('SIGTERM')));
    return await compare(log, objects, cluster.nodes);
  } finally {
    objects.close();
    await coordination.close();
  }
}

async function appliedBy({ url }: TestNode): Promise<number> {
  const answer = await ask(url, '/aggregate?aggregations=total_count');
  await answer.arrayBuffer();
  return Number(answer.headers.get('tilewright-seq'));
}

async function compare(log: CommitLog, objects: ObjectStore, nodes: TestNode[]): Promise<Violation[]> {
  const { head } = await log.bounds();
  const checkpoint = await log.readCheckpoint();
  const first = checkpoint?.seq ?? 0;
  const entries: LoggedCommit[] = [];
  for await (const entry of entriesSince(log, first)) entries.push(entry);
  const copies = new Map<number, string>();
  for (const { seq } of entries) {
    const bytes = await objects.get(archivedEntryName(seq)).catch(() => undefined);
    if (bytes) copies.set(seq, bytes.toString());
  }
  const violations = [...soundLog(first, head, entries), ...soundCopies(entries, copies)];

  const state = await foldedCommits(objects, checkpoint, []);
  for (const { seq, segment } of entries)
    try {
      state.apply(await readSegment(objects, segmentName(segment), () => true));
    } catch (error) {
      const detail = `the segment of commit ${seq} cannot be read: ${String(error)}`;
      violations.push({ rule: 'sound log', detail, events: [] });
    }
  const { prefixLengths } = (await readIdentity(objects))!;
  const replicas = await Promise.all(nodes.map((node) => replicaOf(node, state, prefixLengths)));
  return [...violations, ...sameReplicas(head, replicas)];
}

/** The records in the data folder of a stopped node, and those that the log has for its slots. */
async function replicaOf(
  { name, data }: TestNode,
  { tiles, records }: FoldedCommits,
  prefixLengths: PrefixLengths,
): Promise<ReplicaContent> {
  const catalogue = await Catalogue.open(join(data, 'catalogue'), false);
  try {
    const state = await catalogue.replica.get('state');
    const slots = SlotSet.fromText(state?.slots ?? '');
    const nameOf = ({ id }: TileRecord) => `tiles/${id}`;
    const expected = new Map<string, string>();
    for (const tile of tiles.values())
      if (slots.has(slotOfCell(tile, prefixLengths))) expected.set(nameOf(tile), textOf(tile));
    for (const [name, { record }] of records) expected.set(name, textOf(record));
    const held = new Map<string, string>();
    // Nobody reads tiles of outdated slots, which may remain until the slots are dropped.
    const outdated = SlotSet.fromText(state?.outdated ?? '');
    for await (const tile of catalogue.tiles.values())
      if (!outdated.has(slotOfCell(tile, prefixLengths))) held.set(nameOf(tile), textOf(tile));
    for (const table of REPLICATED_TABLES)
      for await (const { key, record } of catalogue[table].scan())
        held.set(`${table}/${key}`, textOf(record));
    return { node: name, applied: state?.applied ?? 0, expected, held };
  } finally {
    await catalogue.close();
  }
}

/** The same text for equal records, whose fields may have another order. */
function textOf(record: unknown): string {
  return JSON.stringify(record, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}
