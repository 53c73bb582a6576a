/** Ctrl-C and SIGTERM. */
import { constants } from 'node:os';

/** The signal by which the process ends after the command has cleaned up. */
let exitSignal: NodeJS.Signals | undefined;

/**
 * An AbortSignal that Ctrl-C and SIGTERM raise once; a second Ctrl-C ends the process at once. `exitBySignal` then ends the process by the
 * same signal, which stops a shell loop that runs the command.
 */
export function interruptSignal(): AbortSignal {
  return stopSignal((signal) => {
    exitSignal = signal;
  });
}

/** Works like `interruptSignal` for a server, whose end by a signal is the normal one. */
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
  // The kernel ignores this signal for the first process of a container, which then ends with the exit code that shells give to it.
  process.exitCode = 128 + constants.signals[exitSignal];
  for (const stream of [process.stdout, process.stderr])
    await new Promise<unknown>((resolve) => stream.write('', resolve));
  process.removeAllListeners(exitSignal);
  process.kill(process.pid, exitSignal);
}
