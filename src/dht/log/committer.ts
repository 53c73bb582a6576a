/**
 * Turns the records of a commit into an entry of the log, on conditions: the schema of its collection, and what it relies on of textures
 * and tiles.
 */

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { backOff } from '../../async/index.js';
import {
  type CoordinationStore,
  compareAndSet,
  firstKeyValue,
  outcomeUnknown,
  parseJsonValue,
  readKey,
  type StoredValue,
} from '../../coordination/index.js';
import { messageOf } from '../../errors.js';
import type { ClusterMetrics } from '../../metrics/index.js';
import {
  type CatalogueChange,
  type CollectionRecord,
  type Commit,
  collectionBusy,
  type ObjectStore,
  type RecordEdit,
  type Storage,
} from '../../storage/index.js';
import { collectionConflict, conflictingWriter, localApplyFailed } from '../errors.js';
import { type PrefixLengths, SlotSet } from '../slots.js';
import { LogArchive } from './archive.js';
import { collectionLockName, type FencedLock, requireUnlocked } from './fenced-lock.js';
import type { CommitConditions, CommitLog, CommittedEntry, KeyRevision, LogEntry } from './log.js';
import { encodeSegment, segmentName } from './segment.js';

/** The properties of a collection that its first ingest fixes for all nodes. */
export interface CollectionSchema {
  grid: string;
  precision: number;
  /** The pixel sizes of the band groups, and all other properties that must be equal on all nodes. */
  [field: string]: unknown;
}

interface StoredCollectionSchema {
  id: string;
  /** Revision of the key, which commits that rely on the collection compare. */
  revision: number;
  schema: CollectionSchema;
}

const SCHEMA_PREFIX = 'collections/';
/** The key of a collection, for transactions that compare it. */
export const schemaKey = (id: string) => SCHEMA_PREFIX + id;

/**
 * Stores a schema (for a new band group, for example) unless it has changed; `revision` 0 requires that the collection has none.
 * `current` is the schema afterwards.
 */
export async function updateSchema(
  store: CoordinationStore,
  { id, revision }: Pick<StoredCollectionSchema, 'id' | 'revision'>,
  schema: CollectionSchema,
): Promise<{ changed: boolean; current: StoredCollectionSchema | undefined }> {
  const value = JSON.stringify(schema);
  const { set, current } = await compareAndSet(store, { key: schemaKey(id), value, revision });
  return { changed: set, current: current && decodeSchema(current) };
}

/** Deletes the schema unless it has changed. From then on, commits that rely on the collection are refused. */
export async function deleteSchema(
  store: CoordinationStore,
  { id, revision }: Pick<StoredCollectionSchema, 'id' | 'revision'>,
): Promise<boolean> {
  return (await compareAndSet(store, { key: schemaKey(id), value: undefined, revision })).set;
}

export async function readSchema(
  store: CoordinationStore,
  id: string,
): Promise<StoredCollectionSchema | undefined> {
  const kv = await readKey(store, schemaKey(id));
  return kv && decodeSchema(kv);
}

/** Parses the value of a key `schemaKey`. TW_DHT_DOCUMENT_DAMAGED. */
function decodeSchema(kv: StoredValue): StoredCollectionSchema {
  const schema = parseJsonValue<CollectionSchema>(kv, ['grid', 'precision']);
  return { id: kv.key.slice(SCHEMA_PREFIX.length), revision: kv.modRevision, schema };
}

/**
 * Conditions that keep textures and tiles consistent: a texture is stored only if its tile exists, and deleted with it. So a commit that
 * stores textures and one that removes tiles must not be built from the same state. Each of them writes one key and compares the other, and
 * commits of one kind do not conflict with each other.
 *
 * The keys have the number of the last commit that stored textures, or removed or replaced tiles. They sort after the entries of the log.
 */
const TEXTURES_KEY = 'log/textures';
const REMOVALS_KEY = 'log/removals';

/** The keys that a commit may rely on, as they were before the commit was built. */
interface KnownConditions {
  schema: StoredCollectionSchema | undefined;
  textures: KeyRevision;
  removals: KeyRevision;
}

/** Reads the schema of a collection and both keys. */
async function readConditions(
  store: CoordinationStore,
  collection: string | undefined,
): Promise<KnownConditions> {
  const keys = [TEXTURES_KEY, REMOVALS_KEY, ...(collection === undefined ? [] : [schemaKey(collection)])];
  const { gets } = await store.read(keys.map((key) => ({ key })));
  const [textures, removals, schema] = gets.map(firstKeyValue);
  return {
    schema: schema && decodeSchema(schema),
    textures: { key: TEXTURES_KEY, modRevision: textures?.modRevision ?? 0 },
    removals: { key: REMOVALS_KEY, modRevision: removals?.modRevision ?? 0 },
  };
}

/** The conditions of a commit that was built after `known` was read. */
function textureConditions(
  { removed = [], edits = [] }: Commit,
  { textures, removals }: KnownConditions,
): CommitConditions & { touch: string[] } {
  const removesTiles = removed.length > 0;
  const storesTextures = edits.some(({ table, record }) => table === 'textures' && record);
  return {
    compare: [...(removesTiles ? [textures] : []), ...(storesTextures ? [removals] : [])],
    touch: [...(removesTiles ? [REMOVALS_KEY] : []), ...(storesTextures ? [TEXTURES_KEY] : [])],
  };
}

type CollectionEdit = Extract<RecordEdit, { table: 'collections' }>;

/** The replica of this node, which applies the commits. */
interface CommitApplier {
  /** Applies everything that the log has. */
  catchUp(): Promise<void>;
  /** Resolves when the tiles of the node are as of the last applied commit. */
  waitForSlots(timeoutMs: number): Promise<void>;
  /** Hands over a commit of this node, so that its segment need not be read again. */
  cacheOwnCommit(segment: string, commit: Commit): void;
  /** Applies a commit of this node if it is the next one. */
  applyOwn(entry: CommittedEntry): Promise<void>;
  /** Resolves when a commit is applied. */
  waitForCommit(seq: number, timeoutMs: number): Promise<void>;
}

export interface CommitterOptions {
  storage: Pick<Storage, 'dir' | 'catalogue'>;
  coordination: CoordinationStore;
  log: CommitLog;
  objects: ObjectStore;
  replica: CommitApplier;
  prefixLengths: PrefixLengths;
  /** Time limit of etcd for appending an entry, ms. Archiving and applying the entry may take twice as long. */
  timeoutMs?: number;
  metrics?: Pick<ClusterMetrics, 'commitSeconds'>;
}

const COMMIT_TIMEOUT_MS = 30_000;
const ARCHIVE_RETRY_MS = 500;
/** Maximum attempts of a commit whose collection keeps changing. */
const MAX_ATTEMPTS = 20;

/** A commit that was sent to the log. */
interface SentCommit {
  entry: LogEntry;
  conditions: CommitConditions;
}

/**
 * Invariants:
 * - An entry is appended only under a lock that is still held, after its files and its segment are in the store.
 * - `build` reads a catalogue that contains every commit that was acknowledged before.
 * - The key of a collection is read before the state that a commit is built from, and compared by the transaction that
 *   appends the entry, so no commit is built from a state that another commit has changed.
 * - The keys of `textureConditions` are read and compared in the same way.
 * - After a commit with an unknown outcome, a lock sends no other commit until `resolveOutcome` has found the outcome.
 */
export class Committer {
  private readonly archive: LogArchive;
  private readonly uncertainCommits = new WeakMap<FencedLock, SentCommit>();

  private readonly timeoutMs: number;

  constructor(private readonly options: CommitterOptions) {
    this.timeoutMs = options.timeoutMs ?? COMMIT_TIMEOUT_MS;
    this.archive = new LogArchive(options.log, options.objects);
  }

  /**
   * Finds the outcome of the last commit under `held` if it is unknown, and appends its entry if that has not happened yet. Throws
   * TW_DHT_OUTCOME_UNKNOWN and TW_DHT_COORDINATION_UNAVAILABLE if etcd still does not answer, TW_DHT_CLAIM_LOST.
   */
  async resolveOutcome(held: FencedLock): Promise<void> {
    const sent = this.uncertainCommits.get(held);
    if (!sent) return;
    await this.options.log.commit(held, sent.entry, sent.conditions, this.timeoutMs).catch((error) => {
      // In this case the entry was not appended, and the lock is still held.
      if (!collectionConflict.is(error)) throw error;
    });
    this.uncertainCommits.delete(held);
  }

  /** True if the outcome of the last commit under `held` is unknown. */
  isUncertain(held: FencedLock): boolean {
    return this.uncertainCommits.has(held);
  }

  /**
   * Commits the result of `build`; an empty commit leaves the lock unused. `collection` is the collection that the commit probably changes:
   * with it `build` is called once, without it twice. `also` are changes of this node's own records, written after the commit.
   */
  async commit(
    held: FencedLock,
    build: () => Promise<Commit>,
    also: CatalogueChange[] = [],
    collection?: string,
  ): Promise<void> {
    const { storage, replica, coordination } = this.options;
    let id = collection;
    for (let attempt = 0; ; attempt++) {
      const known = await readConditions(coordination, id);
      await replica.catchUp();
      await replica.waitForSlots(this.timeoutMs);
      const commit = await build();
      if (isEmpty(commit)) break;
      const changed = collectionOf(commit);
      // The key must be read before the state that the commit is built from.
      if (changed !== undefined && changed !== id) id = changed;
      else if (await this.tryCommit(held, commit, changed, known)) break;
      else if (attempt < MAX_ATTEMPTS) await backOff(attempt);
      else throw collectionConflict(id ?? held.name);
    }
    // This error must not look as if nothing had been committed.
    if (also.length > 0) await this.locally(held.name, storage.catalogue.write(also));
  }

  /** Returns false if a key that the commit relies on has changed since it was read. */
  private async tryCommit(
    held: FencedLock,
    commit: Commit,
    changed: string | undefined,
    known: KnownConditions,
  ): Promise<boolean> {
    const { log, objects, replica, prefixLengths } = this.options;
    this.archive.requireNoConflictingWriter();
    const startedAt = performance.now();
    const { bytes, slots } = encodeSegment(commit, prefixLengths);
    const segment = `${held.fence}-${randomUUID()}`;
    await objects.put(segmentName(segment), bytes, { signal: held.lost });
    const collection =
      changed === undefined ? undefined : await this.schemaToCompare(commit, held, changed, known.schema);
    if (collection === 'changed') return false;
    const conditions = textureConditions(commit, known);
    if (collection) conditions.compare.push(collection);
    replica.cacheOwnCommit(segment, commit);
    const entry = { segment, slots: new SlotSet(slots).toText() };
    let seq: number;
    try {
      seq = await log.commit(held, entry, conditions, this.timeoutMs);
    } catch (error) {
      if (outcomeUnknown.is(error)) this.uncertainCommits.set(held, { entry, conditions });
      if (collectionConflict.is(error)) return false;
      throw error;
    }
    const committed: CommittedEntry = { seq, ...entry, claim: held.name, fence: held.fence };
    // If this fails, the watch of the log reads the entry again, meets the same error and reports it.
    replica.applyOwn(committed).catch(() => undefined);
    const applied = replica.waitForCommit(seq, 2 * this.timeoutMs);
    await Promise.all([this.archiveEntry(committed), this.locally(held.name, applied)]);
    this.options.metrics?.commitSeconds.observe((performance.now() - startedAt) / 1e3);
    return true;
  }

  /** Waits for a step after the commit. Throws TW_DHT_NOT_NOTED if this node cannot do it. */
  private async locally(claim: string, step: Promise<void>): Promise<void> {
    await step.catch((error) => {
      throw localApplyFailed.because(error, claim, this.options.storage.dir, messageOf(error));
    });
  }

  /** Retries while the store is unreachable: the commit is made and visible, so it must not look failed. */
  private async archiveEntry(entry: CommittedEntry): Promise<void> {
    for (const startedAt = performance.now(); ; await sleep(ARCHIVE_RETRY_MS))
      try {
        await this.archive.archive(entry);
        return;
      } catch (error) {
        if (conflictingWriter.is(error)) throw error;
        if (performance.now() - startedAt > 2 * this.timeoutMs)
          throw outcomeUnknown.because(
            error,
            `commit ${entry.seq}`,
            this.options.objects.url,
            messageOf(error),
          );
      }
  }

  /**
   * The key that the transaction compares. `key` was read before the commit was built. A commit that changes the record of the collection
   * changes the key first, so that other commits that were built from the previous record fail. A key without a record stems from a failed
   * first commit of the collection and is replaced.
   */
  private async schemaToCompare(
    { edits = [] }: Commit,
    { fence }: FencedLock,
    id: string,
    key: StoredCollectionSchema | undefined,
  ): Promise<KeyRevision | 'changed'> {
    const { coordination, storage } = this.options;
    const change = edits.find(isCollectionEdit);
    if (change?.record === null) {
      if (!key) return revisionOf(id, undefined);
      await deleteSchema(coordination, key);
      return 'changed';
    }
    if (!change && key) return revisionOf(id, key);
    const existing = key ? undefined : await storage.catalogue.collections.get(id);
    if (existing) {
      await this.recreateSchema(existing);
      return 'changed';
    }
    if (!change?.record) throw collectionConflict(id);
    const { grid, precision } = change.record;
    const wanted = { grid, precision, fence };
    const { changed, current } = await updateSchema(
      coordination,
      { id, revision: key?.revision ?? 0 },
      wanted,
    );
    return changed ? revisionOf(id, current) : 'changed';
  }

  /** A deletion that ended before its commit leaves a collection record without a key. */
  private async recreateSchema({ id, grid, precision }: CollectionRecord): Promise<void> {
    const { coordination } = this.options;
    await requireUnlocked(coordination, collectionLockName(id), () => collectionBusy(id));
    await updateSchema(coordination, { id, revision: 0 }, { grid, precision });
  }
}

const revisionOf = (id: string, schema: StoredCollectionSchema | undefined): KeyRevision => ({
  key: schemaKey(id),
  modRevision: schema?.revision ?? 0,
});

/**
 * The collection whose key a commit compares: the one that it creates, changes or deletes, or whose tiles or other records it puts, because
 * these must not outlive the collection. Models may.
 */
function collectionOf({ added = [], edits = [] }: Commit): string | undefined {
  const changed = edits.find(isCollectionEdit);
  if (changed) return changed.key;
  if (added.length > 0) return added[0].collection;
  for (const { table, record } of edits)
    if (table !== 'models' && table !== 'collections' && record) return record.collection;
  return undefined;
}

const isCollectionEdit = (edit: RecordEdit): edit is CollectionEdit => edit.table === 'collections';

const isEmpty = ({ removed = [], added = [], edits = [] }: Commit) =>
  removed.length + added.length + edits.length === 0;
