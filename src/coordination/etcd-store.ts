/** The coordination store of a cluster in etcd, and warnings for the operator of etcd. */

import { coordinationRefused, leaseGone } from './errors.js';
import { EtcdHttpClient } from './etcd-client.js';
import {
  type EtcdKeyValue,
  type EtcdOperation,
  type EtcdTransactionResult,
  parseHeader,
  parseLeaseId,
  parseRange,
  parseRemainingTtl,
  parseTransactionResult,
} from './etcd-responses.js';
import { EtcdWatch } from './etcd-watch.js';
import type {
  CallOptions,
  CoordinationStore,
  KeyRange,
  KeyValue,
  Operation,
  RevisionCompare,
  Transaction,
  TransactionResult,
  Watch,
  WatchSignal,
} from './store.js';

interface EtcdLimits {
  /** Quota of the database in bytes (etcd 3.4 does not report it). */
  quotaBytes?: number;
  /** Number of revisions from which on a history that was never compacted causes a warning. */
  maxRevisions?: number;
}

/** The default of etcd. */
const DEFAULT_QUOTA_BYTES = 2 * 1024 ** 3;
const MAX_HISTORY_REVISIONS = 10_000;
const QUOTA_WARNING_RATIO = 0.6;
const ALL_KEYS = Buffer.from([0]).toString('base64');
/** `/tilewright/`, and the first key after all keys that begin with it. */
const OWN_KEY_RANGE = ['/tilewright/', '/tilewright0'].map((key) => Buffer.from(key).toString('base64'));

/**
 * Warnings for the operator of etcd, one sentence each: a nearly full database, history that is never compacted, keys of other programs.
 */
async function etcdHealthWarnings(
  client: EtcdHttpClient,
  { quotaBytes = DEFAULT_QUOTA_BYTES, maxRevisions = MAX_HISTORY_REVISIONS }: EtcdLimits = {},
): Promise<string[]> {
  const warnings: string[] = [];
  const { revision, fields } = await query(client, 'maintenance/status', {}, parseHeader);
  const share = Number(fields.dbSize) / quotaBytes;
  if (share >= QUOTA_WARNING_RATIO)
    warnings.push(
      `the database of etcd is at ${Math.round(share * 100)} % of its quota; compact and defragment it, or raise the quota`,
    );

  if (revision > maxRevisions && !(await wasCompacted(client)))
    warnings.push(
      `etcd keeps the complete history of ${revision} revisions; start it with --auto-compaction-retention=1h`,
    );

  const all = await count(client, ALL_KEYS, ALL_KEYS);
  const others = all - (await count(client, OWN_KEY_RANGE[0]!, OWN_KEY_RANGE[1]!));
  if (others > 0)
    warnings.push(`etcd holds ${others} keys of other programs, which share its quota with tilewright`);
  return warnings;
}

/** True if etcd has compacted the first revision. */
async function wasCompacted(client: EtcdHttpClient): Promise<boolean> {
  try {
    await query(client, 'kv/range', { key: OWN_KEY_RANGE[0], revision: '1' }, parseHeader);
    return false;
  } catch (error) {
    if (coordinationRefused.is(error) && error.message.includes('compacted')) return true;
    throw error;
  }
}

async function count(client: EtcdHttpClient, key: string, end: string): Promise<number> {
  const body = { key, range_end: end, count_only: true };
  return (await query(client, 'kv/range', body, (answer) => parseRange(parseHeader(answer).fields))).count;
}

function query<T>(
  client: EtcdHttpClient,
  path: string,
  body: object,
  parse: (answer: unknown) => T,
): Promise<T> {
  return client.post({ description: 'a health check of etcd', path, body, isIdempotent: true, parse });
}

/** The coordination store of a cluster: the keys below `/tilewright/<cluster>/` in etcd (3.4 or newer). */
export class EtcdStore implements CoordinationStore {
  private readonly client: EtcdHttpClient;
  private readonly root: string;
  private readonly watches = new Set<EtcdWatch>();

  /** `urls` of the servers, with or without a user and password. Each server has `attemptTimeoutMs` to answer. Sends nothing yet. */
  constructor(urls: string[], cluster: string, attemptTimeoutMs?: number) {
    this.client = new EtcdHttpClient(urls, attemptTimeoutMs);
    this.root = `/tilewright/${cluster}/`;
  }

  async transact(transaction: Transaction, { timeoutMs }: CallOptions = {}): Promise<TransactionResult> {
    const { compare = [], success: wanted, failure: otherwise = [] } = transaction;
    const isRead = [...wanted, ...otherwise].every(({ op }) => op === 'get');
    const success = wanted.map((operation) => this.encodeOperation(operation));
    const failure = otherwise.map((operation) => this.encodeOperation(operation));
    // The answer of an empty branch looks like a truncated answer, so the failure branch gets a probe.
    const isProbe = compare.length > 0 && failure.length === 0;
    if (isProbe) failure.push({ request_range: { ...this.encodeRange(compare[0]!), count_only: true } });
    const result = await this.client.post({
      description: isRead ? 'a read' : `the change of ${describeWrites(transaction)}`,
      path: 'kv/txn',
      body: { compare: compare.map((one) => this.encodeCompare(one)), success, failure },
      isIdempotent: isRead,
      timeoutMs,
      parse: (answer) => parseTransactionResult(answer, success, failure),
    });
    const decoded = this.decode(result);
    return isProbe && !result.succeeded ? { ...decoded, gets: [] } : decoded;
  }

  async read(
    ranges: KeyRange[],
    { timeoutMs, serializable = false }: CallOptions & { serializable?: boolean } = {},
  ): Promise<TransactionResult> {
    const success = ranges.map((range) => ({ request_range: { ...this.encodeRange(range), serializable } }));
    const result = await this.client.post({
      description: 'a read',
      path: 'kv/txn',
      body: { success },
      isIdempotent: true,
      timeoutMs,
      parse: (answer) => parseTransactionResult(answer, success, []),
    });
    return this.decode(result);
  }

  async grantLease(ttl: number, { timeoutMs }: CallOptions = {}): Promise<string> {
    // If the answer is lost, the granted lease expires unused.
    return this.client.post({
      description: 'a lease',
      path: 'lease/grant',
      body: { TTL: ttl },
      isIdempotent: true,
      timeoutMs,
      parse: parseLeaseId,
    });
  }

  async keepAlive(lease: string, { timeoutMs }: CallOptions = {}): Promise<boolean> {
    const remainingTtl = await this.client.post({
      description: `lease ${lease}`,
      path: 'lease/keepalive',
      body: { ID: lease },
      isIdempotent: true,
      timeoutMs,
      parse: (answer) => parseRemainingTtl(answer, lease),
    });
    return remainingTtl > 0;
  }

  async revokeLease(lease: string, { timeoutMs }: CallOptions = {}): Promise<void> {
    try {
      await this.client.post({
        description: `lease ${lease}`,
        path: 'lease/revoke',
        body: { ID: lease },
        isIdempotent: true,
        timeoutMs,
        parse: parseHeader,
      });
    } catch (error) {
      if (!leaseGone.is(error)) throw error;
    }
  }

  watch(range: KeyRange, onSignal: (signal: WatchSignal) => void, onError?: (error: unknown) => void): Watch {
    const watch = new EtcdWatch(this.client, this.encodeRange(range), onSignal, onError);
    this.watches.add(watch);
    return {
      close: () => {
        this.watches.delete(watch);
        watch.close();
      },
    };
  }

  async close(): Promise<void> {
    for (const watch of this.watches) watch.close();
    this.watches.clear();
  }

  /** Warnings for the operator of etcd, one sentence each: see `etcdHealthWarnings`. */
  healthWarnings(limits?: EtcdLimits): Promise<string[]> {
    return etcdHealthWarnings(this.client, limits);
  }

  private encodeCompare(compare: RevisionCompare): object {
    const key = toBase64(this.root + compare.key);
    return 'modRevision' in compare
      ? { key, target: 'MOD', result: 'EQUAL', mod_revision: `${compare.modRevision}` }
      : { key, target: 'CREATE', result: 'EQUAL', create_revision: `${compare.createRevision}` };
  }

  private encodeOperation(operation: Operation): EtcdOperation {
    if (operation.op === 'put') {
      const { key, value, lease = '' } = operation;
      const put = { key: toBase64(this.root + key), value: toBase64(value) };
      return { request_put: lease === '' ? put : { ...put, lease } };
    }
    const range = this.encodeRange(operation);
    if (operation.op === 'delete') return { request_delete_range: range };
    return { request_range: { ...range, limit: `${operation.limit ?? 0}` } };
  }

  private encodeRange({ key, end }: KeyRange): { key: string; range_end?: string } {
    const first = toBase64(this.root + key);
    return end === undefined ? { key: first } : { key: first, range_end: toBase64(this.root + end) };
  }

  private decode({ revision, succeeded, ranges }: EtcdTransactionResult): TransactionResult {
    const gets = ranges
      .filter((range) => range !== undefined)
      .map(({ kvs, more }) => ({ kvs: kvs.map((kv) => this.decodeKeyValue(kv)), more }));
    return { succeeded, revision, gets };
  }

  private decodeKeyValue(kv: EtcdKeyValue): KeyValue {
    return {
      key: fromBase64(kv.key).slice(this.root.length),
      value: fromBase64(kv.value ?? ''),
      // Revisions stay far below 2^53: a million a second would take 285 years.
      createRevision: Number(kv.create_revision),
      modRevision: Number(kv.mod_revision),
      lease: kv.lease ?? '',
    };
  }
}

const toBase64 = (text: string) => Buffer.from(text).toString('base64');
const fromBase64 = (text: string) => Buffer.from(text, 'base64').toString();

function describeWrites({ success }: Transaction): string {
  return success.flatMap((operation) => (operation.op === 'get' ? [] : [operation.key])).join(', ');
}
