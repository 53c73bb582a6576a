/**
 * Runs GDAL's programs as separate processes, so that this process survives a crash and its memory stays its own. A process
 * can access only its file: it has no network, no files beside it, no permission to write files, a limit of memory, and only
 * the environment variables that it needs.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { messageOf } from '../../errors.js';
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
  /** Run one after another until one fails; at least one. */
  calls: GdalCall[];
  /** Configuration options of GDAL in addition to those of every run. */
  config?: Record<string, string>;
  signal?: AbortSignal | undefined;
  limits?: Partial<GdalLimits>;
}

/** In milliseconds and bytes. */
export interface GdalLimits {
  /** Total time. */
  totalMs: number;
  /** Time without a byte of output. */
  stallMs: number;
  outputBytes: number;
}

/** A signal for all runs within some work, which need not pass it on. */
const contextSignal = new AsyncLocalStorage<AbortSignal>();

/** Kills the GDAL processes that `work` starts, at any depth, when `signal` aborts. */
export function withGdalSignal<T>(signal: AbortSignal, work: () => T): T {
  return contextSignal.run(signal, work);
}

const DEFAULT_LIMITS: GdalLimits = { totalMs: 30 * 60_000, stallMs: 5 * 60_000, outputBytes: Infinity };

/** Address space of a process, KiB. Libraries and thread stacks need most of 1 GiB before any pixel is read. */
const ADDRESS_SPACE_KIB = 4 * 1024 * 1024;
/** Threads of a process. */
const THREADS = 2;
/**
 * No core dumps and no files. macOS has no limit of address space. The limit of CPU time, which all threads could use within
 * the total time limit, ends a process whose parent was killed.
 */
const limitsOf = ({ totalMs }: GdalLimits) =>
  `ulimit -c 0; ulimit -f 0; ulimit -t ${Math.ceil((THREADS * totalMs) / 1000)}; ulimit -v ${ADDRESS_SPACE_KIB} 2>/dev/null`;
/** The shell writes this line to stderr between two calls. */
const CALL_SEPARATOR = '\0';

/** Error messages include this many characters from the end of stderr. */
const STDERR_LENGTH = 4096;

const CONFIG = {
  GDAL_PAM_ENABLED: 'NO',
  GDAL_DISABLE_READDIR_ON_OPEN: 'EMPTY_DIR',
  // No network: file names must not be URLs, and requests go to a proxy that does not exist.
  CPL_VSIL_CURL_ALLOWED_EXTENSIONS: 'none',
  GDAL_HTTP_PROXY: '127.0.0.1:1',
  PROJ_NETWORK: 'OFF',
  // With 1, the JPEG 2000 driver opens the file for every tile, at three times the cost.
  GDAL_NUM_THREADS: String(THREADS),
  LC_ALL: 'C',
};

/** The environment variables that a program needs to start and to find its data. */
const ENVIRONMENT_ALLOWLIST =
  /^(PATH|HOME|TMPDIR|LD_LIBRARY_PATH|DYLD_\w+|GDAL_DATA|GDAL_DRIVER_PATH|PROJ_LIB|PROJ_DATA|CONDA_PREFIX)$/;

/** Running processes. Only these may be killed, because the system reuses process ids. */
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) killGroup(child);
});

/**
 * Yields the stdout of the calls of a program; the program waits while the caller is busy. The program is killed if the caller
 * stops early, if `signal` aborts (its reason is thrown), or at a limit, which applies to all calls together. Several calls in
 * one run are cheaper than one each: to start a process, the system copies the memory table of this process. Throws
 * TW_RASTER_NO_GDAL, TW_RASTER_GDAL_FAILED and TW_RASTER_GDAL_TIMEOUT.
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
      // The process has ended, or `kill` has destroyed the stream.
      throw reason ?? error;
    }
    const end = await ended;
    if (reason !== undefined) throw reason;
    if (end !== 'exit code 0') throw gdalFailed(path(), program, end, words(stderr.at(-1)));
    // The programs continue after some errors, but pixels are then missing. The error that a pipe holds no metadata is
    // harmless.
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
    // A process group, so that the shell is killed together with its children.
    detached: true,
  });
}

/** Script for a shell with the program as $0 and the concatenated arguments of all calls. */
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
    // All processes of the group have ended.
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
      // Not in this folder: search the next one.
    }
  }
  return undefined;
}

/** Describes how a process ended. */
function waitForExit(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(messageOf(error)));
    child.once('close', (code, signal) => resolve(signal ? `signal ${signal}` : `exit code ${code}`));
  });
}

/** The end of stderr of each call so far, including the running one. */
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
