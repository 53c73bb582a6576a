import { backOff } from '../../async/index.js';
import { coordinationRefused } from '../errors.js';
import type { Wake } from '../kv-store.js';
import type { EtcdClient } from './etcd-http-client.js';
import { rangeOf, withRevision } from './etcd-responses.js';

const CHECK_INTERVAL = 2000;
const START_TIMEOUT = 1000;
/** Maximum wait before a watch is begun again, ms. */
const LONGEST_PAUSE = 2000;

/** The newest revision in a range, and its number of keys. */
interface Seen {
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
 * A watch of a range of keys, from now on. A woken reader reads everything again, so the watch needs no revision to start from, and compaction
 * does no harm: when the stream ends, for whatever reason, it is begun again, with a wake. A server that fails is replaced by
 * the next one. If etcd refuses or cancels the watch, the server is not to blame: the reason goes to `failed`, once until the watch has
 * begun again.
 *
 * A server that hangs, is cut off from the others, or whose connection is dead sends nothing, as a quiet one does. So there is no limit
 * to how long a stream may be silent. Instead the newest revision in the range and its number of keys are read every two seconds: one of
 * them differs after every change that is still to be seen. If one does, and the stream has not reported that revision, the reader is
 * woken, and if the stream has reported nothing in this time, it is begun again. Errors of these reads are left to the reader, whose
 * own reads meet them.
 */
export class EtcdWatch {
  private stream = new AbortController();
  private closed = false;
  /** Whether the stream has told of changes since the last check. */
  private told = false;
  /** The newest revision that it has told of: events come in their order. */
  private toldRevision = 0;
  private seen: Seen = { newest: 0, count: 0 };
  /** How often etcd has refused the watch since it last began. */
  private refusals = 0;
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly client: EtcdClient,
    private readonly range: { key: string; range_end?: string },
    private readonly wake: (wake: Wake) => void,
    private readonly failed?: (error: unknown) => void,
  ) {
    this.timer = setInterval(() => void this.check(), CHECK_INTERVAL).unref();
    void this.run();
  }

  close(): void {
    this.closed = true;
    clearInterval(this.timer);
    this.stream.abort();
  }

  private async run(): Promise<void> {
    for (let tries = 0; !this.closed; tries++) {
      const begun = performance.now();
      const server = this.client.server;
      this.stream = new AbortController();
      try {
        await this.listen(server, this.stream);
      } catch (error) {
        if (this.closed) return;
        if (coordinationRefused.is(error)) this.refused(error);
        else this.client.avoid(server, error);
      }
      // Only a watch that has lasted is begun again at once.
      if (performance.now() - begun > LONGEST_PAUSE) tries = 0;
      await backOff(tries, LONGEST_PAUSE);
    }
  }

  /** etcd 3.4 says "permission denied" for an expired token, too. So the first refusal only makes the client authenticate again. */
  private refused(error: unknown): void {
    this.refusals++;
    if (this.refusals === 1) this.client.dropToken();
    if (this.refusals === 2) this.failed?.(error);
  }

  /** Returns when the server ends the stream. Throws if it breaks; TW_DHT_COORDINATION_REFUSED if etcd refuses or cancels the watch. */
  private async listen(server: number, stream: AbortController): Promise<void> {
    const start = setTimeout(() => stream.abort(), START_TIMEOUT);
    const call = { what: 'a watch', path: 'watch', body: { create_request: this.range } };
    try {
      for await (const { result, error } of this.client.stream<WatchLine>(server, call, stream.signal)) {
        clearTimeout(start);
        if (result === undefined) throw new Error(error?.message ?? 'the answer to a watch has no result');
        if (result.canceled)
          throw coordinationRefused(call.what, this.client.where, result.cancel_reason || 'it was canceled');
        const revision = Number(result.header.revision);
        if (result.created) {
          this.seen = (await this.look()).seen;
          this.toldRevision = 0;
          this.refusals = 0;
          this.wakeUp({ why: 'start', revision });
        }
        if (result.events) {
          this.told = true;
          this.toldRevision = Number(result.events.at(-1)?.kv.mod_revision ?? 0);
          this.wakeUp({ why: 'change', revision: this.toldRevision });
        }
      }
    } finally {
      clearTimeout(start);
    }
  }

  private async check(): Promise<void> {
    try {
      const { seen, revision } = await this.look();
      const isChanged = seen.newest !== this.seen.newest || seen.count !== this.seen.count;
      // What goes leaves no revision behind.
      const isGone = seen.newest < this.seen.newest || seen.count < this.seen.count;
      if (isChanged && (isGone || seen.newest > this.toldRevision)) {
        if (!this.told) this.stream.abort();
        this.wakeUp({ why: 'start', revision });
      }
      this.seen = seen;
      this.told = false;
    } catch {
      // The next check comes.
    }
  }

  private async look(): Promise<{ seen: Seen; revision: number }> {
    return this.client.post({
      what: 'a read',
      path: 'kv/range',
      body: { ...this.range, limit: 1, keys_only: true, sort_order: 'DESCEND', sort_target: 'MOD' },
      repeatable: true,
      patience: CHECK_INTERVAL,
      read: (answer) => {
        const { revision, fields } = withRevision(answer);
        const { kvs, count } = rangeOf(fields);
        return { seen: { newest: Number(kvs[0]?.mod_revision ?? 0), count }, revision };
      },
    });
  }

  private wakeUp(wake: Wake): void {
    if (!this.closed) this.wake(wake);
  }
}
