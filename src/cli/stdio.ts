/** Handles errors of standard output and standard error. */
import { messageOf } from '../errors.js';

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
