/** The process of a command: signals, standard output and error, the limit of open files, and the cache of compiled code. */
import { readFileSync, statSync } from 'node:fs';
import module from 'node:module';
import { constants, homedir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../errors.js';
import { visibleText } from '../utils/text.js';
import { fileDescriptorLimitTooLow } from './errors.js';

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
  // The messages have no other output, and the work does not depend on them.
  process.stderr.on('error', () => {});
}

/** Prints warnings as the command prints errors. Node itself would add the id of the process and advice about its own flags. */
export function printWarnings(): void {
  // Nothing listens if the user has turned off warnings, for example with NODE_NO_WARNINGS=1.
  if (process.listenerCount('warning') === 0) return;
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => {
    process.stderr.write(`${visibleText(`${name === 'Warning' ? 'warning' : name}: ${message}`)}\n`);
  });
}

/**
 * Loading the program opens about 100 files at the same time. A server needs more for its database, and each thread of an ingest loads
 * its own modules.
 */
const MIN_FILE_DESCRIPTORS = 256;

/** Throws TW_CLI_DESCRIPTORS if the limit of open files is too low. Does not check systems without /proc, which do not report the limit. */
export function requireFileDescriptors(): void {
  let limits: string;
  try {
    limits = readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return;
  }
  const limit = /^Max open files +(\d+) /m.exec(limits)?.[1];
  if (limit !== undefined && Number(limit) < MIN_FILE_DESCRIPTORS)
    throw fileDescriptorLimitTooLow(Number(limit), MIN_FILE_DESCRIPTORS);
}

/** From Node 22.1. The types are those of Node 20. */
interface CompileCache {
  enableCompileCache?(folder: string): unknown;
}

/**
 * Lets Node keep compiled code between commands, in the cache folder of the user. Node does nothing if it cannot write there, and
 * NODE_DISABLE_COMPILE_CACHE and NODE_COMPILE_CACHE take precedence. Node's own folder, below /tmp, is open to other users.
 */
export function enableCompileCache(): void {
  const folder = userCacheFolder();
  if (folder !== undefined) (module as CompileCache).enableCompileCache?.(folder);
}

/** Undefined if the home folder cannot be found or belongs to another user, as with `sudo` that keeps HOME. */
function userCacheFolder(): string | undefined {
  try {
    const { XDG_CACHE_HOME } = process.env;
    const parent = XDG_CACHE_HOME || homedir();
    if (process.geteuid && statSync(parent).uid !== process.geteuid()) return undefined;
    return join(parent, XDG_CACHE_HOME ? 'tilewright' : '.cache/tilewright');
  } catch {
    // The cache only saves time, so a command also runs without it.
    return undefined;
  }
}
