import type { EtcdClient } from './etcd-client.js';
import { backOff } from './settle.js';
import type { Wake } from './store.js';

const CHECK_INTERVAL = 2000;
const START_TIMEOUT = 1000;

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
    events?: { kv: { mod_revision: string } }[];
  };
}

/**
 * A watch of a range of keys, from now on. Since a woken reader reads everything again, no revision to start from is needed, and
 * compacted history does no harm: where the stream ends for whatever reason, it is begun anew at the next server with a
 * wake.
 *
 * A server that hangs or is cut off from the others sends nothing, as a quiet one does. So the newest revision in the range and its
 * number of keys are read every two seconds: one of them differs after every change that is still to be seen. If one does, and the stream
 * has not told of that revision, the reader is woken, and if the stream has told of nothing in this time, it is begun anew. Errors are left
 * to the reader: its own reads meet them.
 */
export class EtcdWatch {
  private stream = new AbortController();
  private closed = false;
  /** Whether the stream has told of changes since the last check. */
  private told = false;
  /** The newest revision that it has told of: events come in their order. */
  private toldRevision = 0;
  private seen: Seen = { newest: 0, count: 0 };
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly client: EtcdClient,
    private readonly range: { key: string; range_end?: string },
    private readonly wake: (wake: Wake) => void,
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
      const server = this.client.server;
      this.stream = new AbortController();
      try {
        await this.listen(server, this.stream);
        tries = 0;
      } catch {
        if (!this.closed) this.client.avoid(server);
      }
      await backOff(tries);
    }
  }

  /** Until the server ends the watch, or it breaks. */
  private async listen(server: number, stream: AbortController): Promise<void> {
    const start = setTimeout(() => stream.abort(), START_TIMEOUT);
    const body = { create_request: this.range };
    try {
      for await (const { result } of this.client.stream<WatchLine>(server, 'watch', body, stream.signal)) {
        clearTimeout(start);
        if (result === undefined || result.canceled) return;
        const revision = Number(result.header.revision);
        if (result.created) {
          this.seen = (await this.look()).seen;
          this.toldRevision = 0;
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
    const { header, kvs, count } = await this.client.post<{
      header: { revision: string };
      kvs?: { mod_revision: string }[];
      count?: string;
    }>({
      what: 'a read',
      path: 'kv/range',
      body: { ...this.range, limit: 1, keys_only: true, sort_order: 'DESCEND', sort_target: 'MOD' },
      repeatable: true,
      patience: CHECK_INTERVAL,
    });
    const seen = { newest: Number(kvs?.[0]?.mod_revision ?? 0), count: Number(count ?? 0) };
    return { seen, revision: Number(header.revision) };
  }

  private wakeUp(wake: Wake): void {
    if (!this.closed) this.wake(wake);
  }
}
