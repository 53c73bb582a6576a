/** An AbortSignal that Ctrl-C and SIGTERM raise once; a second Ctrl-C ends the process at once. */
export function interruptSignal(): AbortSignal {
  const controller = new AbortController();
  const stop = (signal: NodeJS.Signals) => controller.abort(new Error(`stopped by ${signal}`));
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  return controller.signal;
}
