/**
 * Runs GDAL's programs as processes of their own, so that neither a crash nor the memory of a decoder is ours.
 *
 * A process is given nothing but the file: no network, no files beside it, no writing of files, a limit on memory, and an
 * environment without anything of this process that it does not need.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { gdalFailed, gdalTimeout, noGdal } from '../errors.js';

export type GdalProgram = 'gdalinfo' | 'gdal_translate';

/** One call of a program. */
export interface GdalCall {
  args: string[];
  /** The file that is read and its format, for messages. */
  path: string;
  format: string;
}

export interface GdalRun {
  program: GdalProgram;
  /** One after another, as long as all goes well; at least one. */
  calls: GdalCall[];
  /** Configuration options of GDAL besides those that every run has. */
  config?: Record<string, string>;
  signal?: AbortSignal | undefined;
  limits?: Partial<GdalLimits>;
}

/** In milliseconds and bytes. */
export interface GdalLimits {
  /** From start to end. */
  totalMs: number;
  /** Without a byte of output. */
  stallMs: number;
  outputBytes: number;
}

/** A signal for all runs within some work, which need not pass it on. */
const contextSignal = new AsyncLocalStorage<AbortSignal>();

/** Ends the processes of GDAL that `work` starts, at any depth, when `signal` aborts. */
export function withGdalSignal<T>(signal: AbortSignal, work: () => T): T {
  return contextSignal.run(signal, work);
}

const DEFAULT_LIMITS: GdalLimits = { totalMs: 30 * 60_000, stallMs: 5 * 60_000, outputBytes: Infinity };

/** Address space of a process, in KiB: libraries and thread stacks take most of 1 GiB before any pixel is there. */
const ADDRESS_SPACE_KIB = 4 * 1024 * 1024;
/** Threads of a process. */
const THREADS = 2;
/**
 * No core dumps, no files. macOS knows no limit of address space; then there is none. The CPU time that all threads could use within the
 * total limit ends a process whose parent was killed.
 */
const limitsOf = ({ totalMs }: GdalLimits) =>
  `ulimit -c 0; ulimit -f 0; ulimit -t ${Math.ceil((THREADS * totalMs) / 1000)}; ulimit -v ${ADDRESS_SPACE_KIB} 2>/dev/null`;
/** What the shell writes to stderr between two calls. */
const CALL_SEPARATOR = '\0';

/** The end of what a program says on stderr that goes into an error, in characters. */
const STDERR_LENGTH = 4096;

const CONFIG = {
  GDAL_PAM_ENABLED: 'NO',
  GDAL_DISABLE_READDIR_ON_OPEN: 'EMPTY_DIR',
  // No network: no file name may be a URL, and what asks all the same finds a proxy that nobody runs.
  CPL_VSIL_CURL_ALLOWED_EXTENSIONS: 'none',
  GDAL_HTTP_PROXY: '127.0.0.1:1',
  PROJ_NETWORK: 'OFF',
  // With 1 the JPEG 2000 driver opens the file anew for every tile, at three times the cost.
  GDAL_NUM_THREADS: String(THREADS),
  LC_ALL: 'C',
};

/** What a program needs of our environment to start and to find its own data. */
const ENVIRONMENT_ALLOWLIST =
  /^(PATH|HOME|TMPDIR|LD_LIBRARY_PATH|DYLD_\w+|GDAL_DATA|GDAL_DRIVER_PATH|PROJ_LIB|PROJ_DATA|CONDA_PREFIX)$/;

/** Those that have not ended: only these may be killed, because the system gives their ids to others later. */
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) killGroup(child);
});

/**
 * What the calls of a program write to stdout, as it comes; the program waits while the caller is busy. It is killed when the
 * caller stops early, when `signal` aborts (its reason is thrown) and at a limit, which is one for all calls together.
 * Several calls at once cost less than one at a time: to start a process, the system copies the table of our memory.
 * Throws TW_RASTER_NO_GDAL, TW_RASTER_GDAL_FAILED and TW_RASTER_GDAL_TIMEOUT.
 */
export async function* runGdal(run: GdalRun): AsyncGenerator<Uint8Array, void, undefined> {
  const { program, calls, signal = contextSignal.getStore() } = run;
  const limits = { ...DEFAULT_LIMITS, ...run.limits };
  const { totalMs, stallMs, outputBytes } = limits;
  signal?.throwIfAborted();
  const child = start(run, limits);
  running.add(child);
  child.once('close', () => running.delete(child));
  const stderr = collectStderr(child);
  const ended = waitForExit(child);
  const path = (call = stderr.length - 1) => calls[Math.min(call, calls.length - 1)].path;
  /** Why it was killed; the first reason counts. */
  let reason: unknown;
  const kill = (why: unknown) => {
    reason ??= why;
    if (running.has(child)) killGroup(child);
    child.stdout?.destroy();
  };
  const onAbort = () => kill(signal?.reason);
  signal?.addEventListener('abort', onAbort);
  const total = setTimeout(() => kill(gdalTimeout(path(), program, `${totalMs / 1000} s`)), totalMs);
  const stall = setTimeout(
    () => kill(gdalTimeout(path(), program, `${stallMs / 1000} s without output`)),
    stallMs,
  );
  let bytes = 0;
  try {
    try {
      for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > outputBytes)
          throw gdalFailed(path(), program, `wrote more than ${outputBytes} bytes`, '');
        yield chunk;
        stall.refresh();
      }
    } catch (error) {
      // Ours, or the end of a stream that `kill` destroyed.
      throw reason ?? error;
    }
    const end = await ended;
    if (reason !== undefined) throw reason;
    if (end !== 'exit code 0') throw gdalFailed(path(), program, end, words(stderr.at(-1)));
    // The programs go on after some errors, and pixels are missing then; that a pipe holds no metadata is none.
    for (const [i, said] of stderr.map(words).entries())
      if (/^ERROR \d+: (?!Read or update mode not supported on \/vsistdout)/m.test(said))
        throw gdalFailed(path(i), program, 'an error', said);
  } finally {
    clearTimeout(total);
    clearTimeout(stall);
    signal?.removeEventListener('abort', onAbort);
    kill(undefined);
  }
}

function start({ program, calls, config }: GdalRun, limits: GdalLimits): ChildProcess {
  const found = onPath(program);
  if (found === undefined) throw noGdal(calls[0].path, calls[0].format, program);
  const passedOn = Object.entries(process.env).filter(([name]) => ENVIRONMENT_ALLOWLIST.test(name));
  return spawn('/bin/sh', ['-c', scriptOf(calls, limits), found, ...calls.flatMap(({ args }) => args)], {
    env: { ...Object.fromEntries(passedOn), ...CONFIG, ...config },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: the shell is killed together with what it runs.
    detached: true,
  });
}

/** For a shell that is given the program as $0 and the arguments of all calls after each other. */
function scriptOf(calls: GdalCall[], limits: GdalLimits): string {
  let next = 1;
  const commands = calls.map(({ args }) => ['"$0"', ...args.map(() => `"\${${next++}}"`)].join(' '));
  const last = commands.pop();
  const before = commands.map((command) => `${command} || exit; printf '\\0' >&2`);
  return [limitsOf(limits), ...before, `exec ${last}`].join('; ');
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // All of it has ended.
  }
}

function onPath(program: string): string | undefined {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder, program);
    try {
      if (folder !== '') accessSync(path, constants.X_OK);
      else continue;
      return path;
    } catch {
      // Not in this folder: look in the next.
    }
  }
  return undefined;
}

/** How a process ended, in words. */
function waitForExit(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(signal ? `signal ${signal}` : `exit code ${code}`));
  });
}

/** The end of what each call has said on stderr so far, up to the one that runs now. */
function collectStderr(child: ChildProcess): string[] {
  const tails = [''];
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    const [more, ...next] = text.split(CALL_SEPARATOR);
    tails.push(`${tails.pop()}${more}`, ...next);
    for (const [i, tail] of tails.entries()) tails[i] = tail.slice(-STDERR_LENGTH);
  });
  return tails;
}

const words = (tail = '') => tail.trim().replace(/\.$/, '');
