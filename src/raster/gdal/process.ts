/**
 * Runs GDAL's programs as processes of their own, so that neither a crash nor the memory of a decoder is ours.
 *
 * A process is given nothing but the file: no network, no files beside it, no writing of files, a limit on memory, and an
 * environment without anything of this process that it does not need.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { gdalFailed, gdalTimeout, noGdal } from '../errors.js';

export type GdalProgram = 'gdalinfo' | 'gdal_translate';

export interface GdalRun {
  program: GdalProgram;
  args: string[];
  /** The file that is read and its format, for messages. */
  path: string;
  format: string;
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

const LIMITS: GdalLimits = { totalMs: 30 * 60_000, stallMs: 5 * 60_000, outputBytes: Infinity };

/** Address space of a process, in KiB: libraries and thread stacks take most of 1 GiB before any pixel is there. */
const ADDRESS_SPACE_KIB = 4 * 1024 * 1024;
/** CPU time of a process, in seconds: ends one that nobody waits for any more. */
const CPU_SECONDS = 2 * 30 * 60;
/** No core dumps, no files. macOS knows no limit of address space; then there is none. */
const WITH_LIMITS = `ulimit -c 0; ulimit -f 0; ulimit -t ${CPU_SECONDS}; ulimit -v ${ADDRESS_SPACE_KIB} 2>/dev/null; exec "$@"`;

/** The end of what a program says on stderr that goes into an error. */
const STDERR_BYTES = 4096;

const CONFIG = {
  GDAL_PAM_ENABLED: 'NO',
  GDAL_DISABLE_READDIR_ON_OPEN: 'EMPTY_DIR',
  // No network: no file name may be a URL, and what asks all the same finds a proxy that nobody runs.
  CPL_VSIL_CURL_ALLOWED_EXTENSIONS: 'none',
  GDAL_HTTP_PROXY: '127.0.0.1:1',
  PROJ_NETWORK: 'OFF',
  // With 1 the JPEG 2000 driver opens the file anew for every tile, at three times the cost.
  GDAL_NUM_THREADS: '2',
  LC_ALL: 'C',
};

/** What a program needs of our environment to start and to find its own data. */
const PASSED_ON =
  /^(PATH|HOME|TMPDIR|LD_LIBRARY_PATH|DYLD_\w+|GDAL_DATA|GDAL_DRIVER_PATH|PROJ_LIB|PROJ_DATA|CONDA_PREFIX)$/;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/**
 * What a program writes to stdout, as it comes; the program waits while the caller is busy. It is killed when the caller
 * stops early, when `signal` aborts (its reason is thrown) and at a limit.
 * Throws TW_RASTER_NO_GDAL, TW_RASTER_GDAL_FAILED and TW_RASTER_GDAL_TIMEOUT.
 */
export async function* gdalOutput(run: GdalRun): AsyncGenerator<Uint8Array, void, undefined> {
  const { program, path, signal } = run;
  const { totalMs, stallMs, outputBytes } = { ...LIMITS, ...run.limits };
  signal?.throwIfAborted();
  const child = start(run);
  running.add(child);
  const stderr = tailOf(child);
  const ended = endOf(child);
  /** Why it was killed; the first reason counts. */
  let reason: unknown;
  const kill = (why: unknown) => {
    reason ??= why;
    child.kill('SIGKILL');
    child.stdout?.destroy();
  };
  const onAbort = () => kill(signal?.reason);
  signal?.addEventListener('abort', onAbort);
  const total = setTimeout(() => kill(gdalTimeout(path, program, `${totalMs / 1000} s`)), totalMs);
  const stall = setTimeout(
    () => kill(gdalTimeout(path, program, `${stallMs / 1000} s without output`)),
    stallMs,
  );
  let bytes = 0;
  try {
    try {
      for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > outputBytes) throw gdalFailed(path, program, `wrote more than ${outputBytes} bytes`, '');
        yield chunk;
        stall.refresh();
      }
    } catch (error) {
      // Ours, or the end of a stream that `kill` destroyed.
      throw reason ?? error;
    }
    const end = await ended;
    if (reason !== undefined) throw reason;
    const said = stderr();
    if (end !== 'exit code 0') throw gdalFailed(path, program, end, said);
    // The programs go on after some errors, and pixels are missing then; that a pipe holds no metadata is none.
    if (/^ERROR \d+: (?!Read or update mode not supported on \/vsistdout)/m.test(said))
      throw gdalFailed(path, program, 'an error', said);
  } finally {
    clearTimeout(total);
    clearTimeout(stall);
    signal?.removeEventListener('abort', onAbort);
    kill(undefined);
    running.delete(child);
  }
}

function start({ program, args, path, format, config }: GdalRun): ChildProcess {
  const found = onPath(program);
  if (found === undefined) throw noGdal(path, format, program);
  const passedOn = Object.entries(process.env).filter(([name]) => PASSED_ON.test(name));
  return spawn('/bin/sh', ['-c', WITH_LIMITS, 'sh', found, ...args], {
    env: { ...Object.fromEntries(passedOn), ...CONFIG, ...config },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
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
function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(signal ? `signal ${signal}` : `exit code ${code}`));
  });
}

function tailOf(child: ChildProcess): () => string {
  let tail = Buffer.alloc(0);
  child.stderr?.on('data', (chunk: Buffer) => {
    tail = Buffer.concat([tail, chunk]).subarray(-STDERR_BYTES);
  });
  return () => tail.toString('utf8').trim().replace(/\.$/, '');
}
