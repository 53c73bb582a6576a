/** Watches of key ranges in etcd that survive failing servers and silent connections. */

import { backOff } from '../async/index.js';
import { coordinationRefused } from './errors.js';
import type { EtcdHttpClient } from './etcd-client.js';
import { parseHeader, parseRange } from './etcd-responses.js';
import type { WatchSignal } from './store.js';

const CHECK_INTERVAL_MS = 2000;
const START_TIMEOUT_MS = 1000;
/** Maximum wait before a watch is restarted. */
const MAX_BACKOFF_MS = 2000;

/** The newest revision in a range, and its number of keys. */
interface RangeState {
  newest: number;
  count: number;
}

/** One line of the answer to a watch. */
interface WatchLine {
  result?: {
    header: { revision: string };
    created?: boolean;
    canceled?: boolean;
    cancel_reason?: string;
    events?: { kv: { mod_revision: string } }[];
  };
  error?: { message?: string };
}

/**
 * Watches a range of keys from now on. A reader that gets a signal reads the range again, so the watch needs no start revision, and
 * compaction does no harm: whenever the stream ends, it is restarted, with a `start` signal. A server that fails is replaced by the next
 * one. If etcd refuses or cancels the watch, the server is not to blame: `onError` gets the reason, once until the watch has
 * started again.
 *
 * A server that hangs, is partitioned or whose connection is dead sends nothing, just like one without changes. So the silence of a
 * stream has no time limit. Instead the newest revision and the number of keys in the range are read every two seconds; every change
 * alters one of them. If one has changed and the stream has not reported that revision, the watch sends a signal. If the stream has
 * reported nothing at all since the last check, it is also restarted. Errors of these reads are ignored, because the reader's own reads
 * fail with them.
 */
export class EtcdWatch {
  private stream = new AbortController();
  private closed = false;
  /** True if the stream has reported a change since the last check. */
  private hasNotified = false;
  /** The newest revision that the stream has reported; events arrive in order. */
  private notifiedRevision = 0;
  private lastState: RangeState = { newest: 0, count: 0 };
  /** How often etcd has refused the watch since its last start. */
  private refusals = 0;
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly client: EtcdHttpClient,
    private readonly range: { key: string; range_end?: string },
    private readonly onSignal: (signal: WatchSignal) => void,
    private readonly onError?: (error: unknown) => void,
  ) {
    this.timer = setInterval(() => void this.check(), CHECK_INTERVAL_MS).unref();
    void this.run();
  }

  close(): void {
    this.closed = true;
    clearInterval(this.timer);
    this.stream.abort();
  }

  private async run(): Promise<void> {
    for (let tries = 0; !this.closed; tries++) {
      const startedAt = performance.now();
      const server = this.client.server;
      this.stream = new AbortController();
      try {
        await this.listen(server, this.stream);
      } catch (error) {
        if (this.closed) return;
        if (coordinationRefused.is(error)) this.onRefused(error);
        else this.client.failOver(server, error);
      }
      // A watch that lasted is restarted without delay.
      if (performance.now() - startedAt > MAX_BACKOFF_MS) tries = 0;
      await backOff(tries, MAX_BACKOFF_MS);
    }
  }

  /** etcd 3.4 also answers "permission denied" to an expired token. So the first refusal only makes the client authenticate again. */
  private onRefused(error: unknown): void {
    this.refusals++;
    if (this.refusals === 1) this.client.dropToken();
    if (this.refusals === 2) this.onError?.(error);
  }

  /** Returns when the server ends the stream. Throws if it breaks; TW_DHT_COORDINATION_REFUSED if etcd refuses or cancels the watch. */
  private async listen(server: number, stream: AbortController): Promise<void> {
    const start = setTimeout(() => stream.abort(), START_TIMEOUT_MS);
    const call = { description: 'a watch', path: 'watch', body: { create_request: this.range } };
    try {
      for await (const { result, error } of this.client.stream<WatchLine>(server, call, stream.signal)) {
        clearTimeout(start);
        if (result === undefined) throw new Error(error?.message ?? 'the answer to a watch has no result');
        if (result.canceled)
          throw coordinationRefused(
            call.description,
            this.client.endpoints,
            result.cancel_reason || 'it was canceled',
          );
        const revision = Number(result.header.revision);
        if (result.created) {
          this.lastState = (await this.readState()).seen;
          this.notifiedRevision = 0;
          this.refusals = 0;
          this.notify({ reason: 'start', revision });
        }
        if (result.events) {
          this.hasNotified = true;
          this.notifiedRevision = Number(result.events.at(-1)?.kv.mod_revision ?? 0);
          this.notify({ reason: 'change', revision: this.notifiedRevision });
        }
      }
    } finally {
      clearTimeout(start);
    }
  }

  private async check(): Promise<void> {
    try {
      const { seen, revision } = await this.readState();
      const isChanged = seen.newest !== this.lastState.newest || seen.count !== this.lastState.count;
      // A deletion leaves no revision behind.
      const isDeleted = seen.newest < this.lastState.newest || seen.count < this.lastState.count;
      if (isChanged && (isDeleted || seen.newest > this.notifiedRevision)) {
        if (!this.hasNotified) this.stream.abort();
        this.notify({ reason: 'start', revision });
      }
      this.lastState = seen;
      this.hasNotified = false;
    } catch {
      // The next check tries again.
    }
  }

  private async readState(): Promise<{ seen: RangeState; revision: number }> {
    return this.client.post({
      description: 'a read',
      path: 'kv/range',
      body: { ...this.range, limit: 1, keys_only: true, sort_order: 'DESCEND', sort_target: 'MOD' },
      isIdempotent: true,
      timeoutMs: CHECK_INTERVAL_MS,
      parse: (answer) => {
        const { revision, fields } = parseHeader(answer);
        const { kvs, count } = parseRange(fields);
        return { seen: { newest: Number(kvs[0]?.mod_revision ?? 0), count }, revision };
      },
    });
  }

  private notify(signal: WatchSignal): void {
    if (!this.closed) this.onSignal(signal);
  }
}
