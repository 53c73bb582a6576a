/** The records of all subscriptions in the coordination store, one key for each. */

import {
  type CoordinationStore,
  compareAndSet,
  documentDamaged,
  parseJsonValue,
  readKey,
  type StoredValue,
  scanPrefix,
} from '../coordination/index.js';
import { TilewrightError } from '../errors.js';
import type { IngestInputs, StacSource } from '../ingest/index.js';
import type { JobStatus } from '../storage/index.js';
import { messageCheck, NUMBER, objectOf, TEXT } from '../utils/json-schema.js';
import { subscriptionExists, subscriptionLimit, subscriptionNotFound } from './errors.js';

/** The inputs of the job of a round. */
export type SubscriptionInputs = Pick<
  IngestInputs,
  'collection' | 'grid' | 'precision' | 'bbox' | 'compress' | 'cloudTest'
> & { stac: Omit<StacSource, 'url' | 'items'> & { url: string } };

export type SubscriptionState = 'active' | 'paused';

export interface Round {
  /** The time for which it was planned, which identifies it; for a round that was asked for, its start. */
  planned: number;
  startedAt: number;
  /** Absent between the claim of the round and the start of its job. */
  job?: string;
  status: JobStatus;
  finishedAt?: number;
  /** The scenes that an ended round has stored. */
  result?: RoundResult;
  error?: { code: string; message: string };
}

/** Numbers of scenes, and of the tiles of the new ones. */
export interface RoundResult {
  /** New scenes, and those that have changed. */
  ingested: number;
  unchanged: number;
  failed: number;
  tiles: number;
}

/** A subscription as it is stored. Times are milliseconds since 1970. */
export interface SubscriptionRecord {
  id: string;
  created: number;
  inputs: SubscriptionInputs;
  /** Time between two rounds, ms. */
  every: number;
  state: SubscriptionState;
  nextRunAt: number;
  /** The last round. */
  round?: Round;
  /** Start of the last round that has stored all scenes of its search. */
  succeededAt?: number;
}

/** True until the job of the round has ended. */
export const isRunning = (round: Round | undefined): round is Round =>
  round !== undefined && round.finishedAt === undefined;

const checkRecord = messageCheck(
  objectOf(
    {
      id: TEXT,
      created: NUMBER,
      inputs: objectOf({ stac: objectOf({ url: TEXT }) }),
      every: NUMBER,
      state: { enum: ['active', 'paused'] satisfies SubscriptionState[] },
      nextRunAt: NUMBER,
    },
    { round: objectOf({ planned: NUMBER, startedAt: NUMBER, status: TEXT }), succeededAt: NUMBER },
  ),
);

const RECORDS_PREFIX = 'subscriptions/records/';
const PAGE_RECORDS = 100;
const MAX_SUBSCRIPTIONS = 1000;

export interface StoredSubscription {
  record: SubscriptionRecord;
  /** Revision of the key. */
  revision: number;
}

/** Invariant: a record is replaced only in the state that its writer has read. */
export class SubscriptionStore {
  constructor(private readonly open: () => Promise<CoordinationStore>) {}

  /** All subscriptions in the order of their ids. `onDamaged` gets TW_DHT_DOCUMENT_DAMAGED; by default it is thrown. */
  async all(onDamaged: (error: TilewrightError) => void = rethrow): Promise<StoredSubscription[]> {
    const found: StoredSubscription[] = [];
    for await (const kvs of scanPrefix(await this.open(), RECORDS_PREFIX, PAGE_RECORDS))
      for (const kv of kvs) {
        try {
          found.push(parse(kv));
        } catch (error) {
          if (!(error instanceof TilewrightError)) throw error;
          onDamaged(error);
        }
      }
    return found;
  }

  /** Throws TW_SUBSCRIPTION_NOT_FOUND. */
  async get(id: string): Promise<StoredSubscription> {
    const kv = await readKey(await this.open(), RECORDS_PREFIX + id);
    if (!kv) throw subscriptionNotFound(id);
    return parse(kv);
  }

  /** Throws TW_SUBSCRIPTION_EXISTS, TW_SUBSCRIPTION_LIMIT. */
  async create(record: SubscriptionRecord): Promise<void> {
    const ids = (await this.all()).map(({ record }) => record.id);
    if (!ids.includes(record.id) && ids.length >= MAX_SUBSCRIPTIONS)
      throw subscriptionLimit(MAX_SUBSCRIPTIONS);
    if (!(await this.replace(record, 0))) throw subscriptionExists(record.id);
  }

  /** Returns the stored record, or undefined if it no longer has `revision`. */
  async replace(record: SubscriptionRecord, revision: number): Promise<StoredSubscription | undefined> {
    const key = RECORDS_PREFIX + record.id;
    const value = JSON.stringify(record);
    const { set, current } = await compareAndSet(await this.open(), { key, value, revision });
    return set ? { record, revision: current!.modRevision } : undefined;
  }

  /** Changes a record as it is when the change is written. Throws TW_SUBSCRIPTION_NOT_FOUND. */
  async update(
    id: string,
    change: (record: SubscriptionRecord) => SubscriptionRecord,
  ): Promise<StoredSubscription> {
    for (;;) {
      const { record, revision } = await this.get(id);
      const replaced = await this.replace(change(record), revision);
      if (replaced) return replaced;
    }
  }

  /** Throws TW_SUBSCRIPTION_NOT_FOUND. */
  async remove(id: string): Promise<void> {
    for (;;) {
      const { revision } = await this.get(id);
      const key = RECORDS_PREFIX + id;
      if ((await compareAndSet(await this.open(), { key, value: undefined, revision })).set) return;
    }
  }
}

function rethrow(error: TilewrightError): never {
  throw error;
}

/** Throws TW_DHT_DOCUMENT_DAMAGED. */
function parse(kv: StoredValue): StoredSubscription {
  const record = parseJsonValue<SubscriptionRecord>(kv, ['id', 'every']);
  if (checkRecord(record) !== undefined || kv.key !== RECORDS_PREFIX + record.id)
    throw documentDamaged(kv.key);
  return { record, revision: kv.modRevision };
}
