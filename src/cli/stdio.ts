/** Standard output and standard error that can no longer be written. */
import { getSystemErrorMap } from 'node:util';
import { messageOf } from '../errors.js';

let isStdoutBroken = false;

/** True if stdout has failed, for commands that would write to it without an end. */
export const hasStdoutFailed = () => isStdoutBroken;

/**
 * Lets a command go on to its end if stdout or stderr fails, so that it closes what it opened and its exit code says what it did. A reader
 * that has left (`tilewright search | head`) is not an error. Any other failure of stdout is reported and makes the exit code 1.
 */
export function handleStdioErrors(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (isStdoutBroken) return;
    isStdoutBroken = true;
    if (error.code === 'EPIPE') return;
    process.stderr.write(`error: stdout: ${systemMessage(error)}\n`);
    // The command sets its own exit code later.
    process.once('exit', () => {
      process.exitCode = 1;
    });
  });
  // The messages have no other place to go to, and the work does not depend on them.
  process.stderr.on('error', () => {});
}

function systemMessage(error: NodeJS.ErrnoException): string {
  return getSystemErrorMap().get(error.errno ?? 0)?.[1] ?? messageOf(error);
}
