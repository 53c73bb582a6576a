import { coordinationUnavailable, leaseGone } from '../errors.js';
import { type EtcdLimits, etcdWarnings } from './etcd-check.js';
import { EtcdClient } from './etcd-client.js';
import { EtcdWatch } from './etcd-watch.js';
import type {
  Compare,
  CoordinationStore,
  KeyRange,
  KeyValue,
  Operation,
  RangeResult,
  Transaction,
  TransactionResult,
  Waiting,
  Wake,
  Watch,
} from './store.js';

/** As the gateway writes them. */
interface EtcdKeyValue {
  key: string;
  value?: string;
  create_revision: string;
  mod_revision: string;
  lease?: string;
}
interface EtcdTransactionResult {
  header: { revision: string };
  succeeded?: boolean;
  responses?: { response_range?: { kvs?: EtcdKeyValue[]; more?: boolean } }[];
}

/** The coordination store of a cluster: the keys below `/tilewright/<cluster>/` in etcd (3.4 or newer). */
export class EtcdStore implements CoordinationStore {
  private readonly client: EtcdClient;
  private readonly root: string;
  private readonly watches = new Set<EtcdWatch>();

  /** `urls` of its servers, `http://host:2379` or with a user and password; each has `attempt` ms to answer. Nothing is sent yet. */
  constructor(urls: string[], cluster: string, attempt?: number) {
    this.client = new EtcdClient(urls, attempt);
    this.root = `/tilewright/${cluster}/`;
  }

  async transact(transaction: Transaction, { patience }: Waiting = {}): Promise<TransactionResult> {
    const { compare = [], success, failure = [] } = transaction;
    const isRead = [...success, ...failure].every(({ op }) => op === 'get');
    const result = await this.client.post<EtcdTransactionResult>({
      what: isRead ? 'a read' : `the change of ${writtenKeys(transaction)}`,
      path: 'kv/txn',
      body: {
        compare: compare.map((one) => this.encodeCompare(one)),
        success: success.map((operation) => this.encodeOperation(operation)),
        failure: failure.map((operation) => this.encodeOperation(operation)),
      },
      repeatable: isRead,
      patience,
    });
    return this.decode(result);
  }

  async read(
    ranges: KeyRange[],
    { patience, serializable = false }: Waiting & { serializable?: boolean } = {},
  ): Promise<TransactionResult> {
    const success = ranges.map((range) => ({ request_range: { ...this.encodeRange(range), serializable } }));
    const body = { success };
    const call = { what: 'a read', path: 'kv/txn', body, repeatable: true, patience };
    return this.decode(await this.client.post<EtcdTransactionResult>(call));
  }

  async grantLease(ttl: number, { patience }: Waiting = {}): Promise<string> {
    // A lease that was granted without our knowing it ends unused.
    const call = { what: 'a lease', path: 'lease/grant', body: { TTL: ttl }, repeatable: true, patience };
    return (await this.client.post<{ ID: string }>(call)).ID;
  }

  async keepAlive(lease: string, { patience }: Waiting = {}): Promise<boolean> {
    const body = { ID: lease };
    const call = { what: `lease ${lease}`, path: 'lease/keepalive', body, repeatable: true, patience };
    const { result } = await this.client.post<{ result?: { TTL?: string } }>(call);
    // Only etcd's own word says that a lease is gone.
    if (result === undefined)
      throw coordinationUnavailable(call.what, this.client.where, 'the answer has no result');
    return Number(result.TTL ?? 0) > 0;
  }

  async revokeLease(lease: string, { patience }: Waiting = {}): Promise<void> {
    const body = { ID: lease };
    try {
      await this.client.post({
        what: `lease ${lease}`,
        path: 'lease/revoke',
        body,
        repeatable: true,
        patience,
      });
    } catch (error) {
      if (!leaseGone.is(error)) throw error;
    }
  }

  watch(range: KeyRange, wake: (wake: Wake) => void, failed?: (error: unknown) => void): Watch {
    const watch = new EtcdWatch(this.client, this.encodeRange(range), wake, failed);
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

  /** What the operator of etcd should know, one sentence each: see `etcdWarnings`. */
  warnings(limits?: EtcdLimits): Promise<string[]> {
    return etcdWarnings(this.client, limits);
  }

  private encodeCompare(compare: Compare): object {
    const key = toBase64(this.root + compare.key);
    return 'modRevision' in compare
      ? { key, target: 'MOD', result: 'EQUAL', mod_revision: `${compare.modRevision}` }
      : { key, target: 'CREATE', result: 'EQUAL', create_revision: `${compare.createRevision}` };
  }

  private encodeOperation(operation: Operation): object {
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

  private decode({ header, succeeded = false, responses = [] }: EtcdTransactionResult): TransactionResult {
    const gets: RangeResult[] = [];
    for (const { response_range: range } of responses)
      if (range)
        gets.push({ kvs: (range.kvs ?? []).map((kv) => this.decodeKeyValue(kv)), more: range.more ?? false });
    return { succeeded, revision: Number(header.revision), gets };
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

function writtenKeys({ success }: Transaction): string {
  return success.flatMap((operation) => (operation.op === 'get' ? [] : [operation.key])).join(', ');
}
