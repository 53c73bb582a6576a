/** Handles errors of standard output and standard error, and prints warnings. */
import { messageOf } from '../../errors.js';

let isStdoutBroken = false;

/** True if stdout has failed. Commands that run without an end check this. */
export const hasStdoutFailed = () => isStdoutBroken;

/**
 * Lets a command complete if stdout or stderr fails, so that it closes its resources and sets its exit code. A closed pipe
 * (`tilewright search | head`) is not an error. Any other failure of stdout is reported and sets the exit code 1.
 */
export function handleStdioErrors(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (isStdoutBroken) return;
    isStdoutBroken = true;
    if (error.code === 'EPIPE') return;
    process.stderr.write(`error: stdout: ${messageOf(error)}\n`);
    // The command sets its own exit code later.
    process.once('exit', () => {
      process.exitCode = 1;
    });
  });
  // There is no other output for the messages, and the work does not depend on them.
  process.stderr.on('error', () => {});
}

/** Prints warnings as the command prints errors. Node itself would add the id of the process and advice about its own flags. */
export function printWarnings(): void {
  // Nothing listens if the user has turned off warnings, for example with NODE_NO_WARNINGS=1.
  if (process.listenerCount('warning') === 0) return;
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => {
    process.stderr.write(`${name === 'Warning' ? 'warning' : name}: ${message}\n`);
  });
}
