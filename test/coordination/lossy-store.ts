import { coordinationUnavailable, outcomeUnknown } from '../../src/coordination/index.js';
import type {
  CallOptions,
  CoordinationStore,
  Transaction,
  TransactionResult,
} from '../../src/coordination/store.js';

/**
 * - `answered`: the normal case.
 * - `unsent`: the transaction does not reach the store.
 * - `unanswered`: it is made, but its answer is lost.
 * - `late`: it is made after some others, when its caller has stopped waiting.
 */
export type Fate = 'answered' | 'unsent' | 'unanswered' | 'late';

/** A real store behind an unreliable network: each change meets the next of `fates`; reads are answered. */
export class LossyStore implements CoordinationStore {
  private late: { after: number; send: () => Promise<unknown> }[] = [];
  private sent = 0;
  private readonly fates: Fate[];

  constructor(
    private readonly store: CoordinationStore,
    fates: Fate[],
  ) {
    this.fates = [...fates];
  }

  async transact(transaction: Transaction, waiting?: CallOptions): Promise<TransactionResult> {
    await this.deliver(this.sent++);
    const send = () => this.store.transact(transaction, waiting);
    const { success, failure = [] } = transaction;
    if ([...success, ...failure].every(({ op }) => op === 'get')) return send();
    const fate = this.fates.shift() ?? 'answered';
    if (fate === 'answered') return send();
    if (fate === 'unsent') throw coordinationUnavailable('a change', 'the test', fate);
    if (fate === 'unanswered') await send();
    else this.late.push({ after: this.sent + 1, send });
    throw outcomeUnknown('a change', 'the test', fate);
  }

  /** Sends the transactions that were delayed until the `n`th call. */
  async deliver(n: number): Promise<void> {
    const due = this.late.filter(({ after }) => after <= n);
    this.late = this.late.filter(({ after }) => after > n);
    // Nobody gets the answer or the refusal.
    for (const { send } of due) await send().catch(() => undefined);
  }

  read: CoordinationStore['read'] = (...args) => this.store.read(...args);
  grantLease: CoordinationStore['grantLease'] = (...args) => this.store.grantLease(...args);
  keepAlive: CoordinationStore['keepAlive'] = (...args) => this.store.keepAlive(...args);
  revokeLease: CoordinationStore['revokeLease'] = (...args) => this.store.revokeLease(...args);
  watch: CoordinationStore['watch'] = (...args) => this.store.watch(...args);
  close: CoordinationStore['close'] = () => this.store.close();
}
