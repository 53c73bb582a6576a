/** Ctrl-C and SIGTERM. */
import { constants } from 'node:os';

/** The signal by which the process ends after the command has cleaned up. */
let exitSignal: NodeJS.Signals | undefined;

/**
 * An AbortSignal that Ctrl-C and SIGTERM abort. A second Ctrl-C ends the process immediately. `exitBySignal` later ends the process by the
 * same signal, so that a shell loop around the command stops too.
 */
export function interruptSignal(): AbortSignal {
  return stopSignal((signal) => {
    exitSignal = signal;
  });
}

/** Works like `interruptSignal` for a server, which normally ends by a signal and exits with 0. */
export function stopSignal(onStop: (signal: NodeJS.Signals) => void = () => {}): AbortSignal {
  const controller = new AbortController();
  const stop = (signal: NodeJS.Signals) => {
    onStop(signal);
    controller.abort(new Error(`stopped by ${signal}`));
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  return controller.signal;
}

/** Ends the process by the signal that interrupted the command, if one did. */
export async function exitBySignal(): Promise<void> {
  if (!exitSignal) return;
  // The kernel ignores the signal for the first process of a container, so set the exit code that shells use for it.
  process.exitCode = 128 + constants.signals[exitSignal];
  for (const stream of [process.stdout, process.stderr])
    await new Promise<unknown>((resolve) => stream.write('', resolve));
  process.removeAllListeners(exitSignal);
  process.kill(process.pid, exitSignal);
}
