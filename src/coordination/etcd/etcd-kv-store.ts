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
} from '../coordination-store.js';
import { leaseGone } from '../errors.js';
import { type EtcdLimits, etcdHealthWarnings } from './etcd-health.js';
import { EtcdHttpClient } from './etcd-http-client.js';
import {
  type EtcdKeyValue,
  type EtcdOperation,
  type EtcdTransactionResult,
  parseHeader,
  parseLeaseId,
  parseRemainingTtl,
  parseTransactionResult,
} from './etcd-responses.js';
import { EtcdWatch } from './etcd-watch.js';

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
