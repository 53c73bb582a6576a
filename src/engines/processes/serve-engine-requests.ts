/** Child side of the request/response protocol with `EngineProcess`. */
import {
  type ErrorDocument,
  type ErrorMaker,
  messageOf,
  TilewrightError,
  toErrorDocument,
} from '../../errors.js';

/** Answers one kind of request. `report` sends progress; it resolves when the message has left the process. */
export type Handler<Input, Result, Progress = never> = (
  input: Input,
  report: (progress: Progress) => Promise<void>,
) => Promise<Result>;

/** The requests that a child answers, by name. Inputs, results and progress must be structured-cloneable. */
export type Handlers = Record<string, Handler<never, unknown, unknown>>;

export interface Request {
  name: string;
  input: unknown;
}

/** Any number of `progress`, then one `result` or `error`. */
export type Reply = { progress: unknown } | { result: unknown } | { error: ErrorDocument };

/**
 * Answers the requests of the parent until the channel closes, which ends the process. An error that is not a TilewrightError is sent as
 * `failure`.
 */
export function serveRequests<H extends Handlers>(handlers: H, failure: ErrorMaker<[reason: string]>): void {
  process.on('message', async ({ name, input }: Request) => {
    try {
      await send({ result: await handlers[name](input as never, (progress) => send({ progress })) });
    } catch (error) {
      const known = error instanceof TilewrightError ? error : failure.because(error, messageOf(error));
      await send({ error: toErrorDocument(known) });
    }
  });
  process.on('disconnect', () => process.exit());
}

/** Resolves when the message has been sent, so that a busy child does not delay its messages until it has finished. */
function send(reply: Reply): Promise<void> {
  return new Promise((resolve) => {
    // If the parent has ended, the channel closes, which ends this process.
    process.send!(reply, () => resolve());
  });
}
