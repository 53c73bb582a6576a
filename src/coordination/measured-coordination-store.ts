import type { ClusterMetrics } from '../metrics/index.js';
import type {
  CallOptions,
  CoordinationStore,
  KeyRange,
  Transaction,
  TransactionResult,
  Watch,
  WatchSignal,
} from './coordination-store.js';

/** A coordination store whose calls are measured; its watches are not. */
export class MeasuredKvStore implements CoordinationStore {
  constructor(
    private readonly store: CoordinationStore,
    private readonly calls: NonNullable<ClusterMetrics['etcd']>,
  ) {}

  transact(transaction: Transaction, waiting?: CallOptions): Promise<TransactionResult> {
    return this.calls.measure('transact', () => this.store.transact(transaction, waiting));
  }

  read(ranges: KeyRange[], options?: CallOptions & { serializable?: boolean }): Promise<TransactionResult> {
    return this.calls.measure('read', () => this.store.read(ranges, options));
  }

  grantLease(ttl: number, waiting?: CallOptions): Promise<string> {
    return this.calls.measure('grant_lease', () => this.store.grantLease(ttl, waiting));
  }

  keepAlive(lease: string, waiting?: CallOptions): Promise<boolean> {
    return this.calls.measure('keep_alive', () => this.store.keepAlive(lease, waiting));
  }

  revokeLease(lease: string, waiting?: CallOptions): Promise<void> {
    return this.calls.measure('revoke_lease', () => this.store.revokeLease(lease, waiting));
  }

  watch(range: KeyRange, wake: (wake: WatchSignal) => void, failed?: (error: unknown) => void): Watch {
    return this.store.watch(range, wake, failed);
  }

  close(): Promise<void> {
    return this.store.close();
  }
}
