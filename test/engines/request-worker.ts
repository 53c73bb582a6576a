/** A child process for tests of the request/response protocol. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Handler, serveRequests } from '../../src/engines/processes.js';
import { predictionFailed, trainingFailed } from '../../src/training/errors.js';

export type TestHandlers = {
  echo: Handler<unknown, unknown>;
  /** Reports 1, 2 ... before it resolves to the same number. */
  count: Handler<number, number, number>;
  /** Rejects with an error that has a code, or with one that has none. */
  fail: Handler<'with code' | 'without code', never>;
  /** Returns what cannot be sent. */
  unsendable: Handler<undefined, () => void>;
  /** Ends the process, or its channel alone, and never answers. */
  end: Handler<'exit' | 'abort' | 'uncaught' | 'disconnect', never>;
  /** Answers, then exits with code 4. */
  last: Handler<undefined, string>;
  /** Never answers. */
  hang: Handler<undefined, never, 'started'>;
};

const never = () => new Promise<never>((_, reject) => setTimeout(reject, 600_000));

serveRequests<TestHandlers>(
  {
    echo: async (input) => input,
    async count(to, report) {
      for (let i = 1; i <= to; i++) await report(i);
      return to;
    },
    async fail(how) {
      if (how === 'with code') throw predictionFailed('no such thing');
      throw new Error('no such thing');
    },
    unsendable: async () => () => undefined,
    async end(how) {
      process.stderr.write('a warning that is no reason\n');
      if (how === 'exit') process.exit(3);
      if (how === 'abort') process.abort();
      if (how === 'disconnect')
        setImmediate(() => {
          process.removeAllListeners('disconnect');
          process.disconnect();
        });
      if (how === 'uncaught')
        setImmediate(() => {
          throw new RangeError('nobody catches this');
        });
      return never();
    },
    async last() {
      void sleep(20).then(() => process.exit(4));
      return 'the last answer';
    },
    async hang(_, report) {
      await report('started');
      return never();
    },
  },
  trainingFailed,
);
