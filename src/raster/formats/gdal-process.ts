/**
 * Runs GDAL's programs as separate processes, so that this process survives a crash and its memory stays its own. A process can access only
 * its file: it has no network, no files beside it, no permission to write files, a limit of memory, and only the environment variables that
 * it needs. Files that refer to other files are refused.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, createReadStream } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { Semaphore } from '../../async/index.js';
import { messageOf } from '../../errors.js';
import { corrupt, gdalFailed, gdalTimeout, noGdal, unsupported } from '../errors.js';
import { type RasterType, withFile } from '../source.js';

type GdalProgram = 'gdalinfo' | 'gdal_translate';

/** One call of a program. */
interface GdalCall {
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
interface GdalLimits {
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
const THREADS_PER_PROCESS = 2;
/**
 * No core dumps and no files. macOS has no limit of address space. The limit of CPU time, which all threads could use within
 * the total time limit, ends a process whose parent was killed.
 */
const limitsOf = ({ totalMs }: GdalLimits) =>
  `ulimit -c 0; ulimit -f 0; ulimit -t ${Math.ceil((THREADS_PER_PROCESS * totalMs) / 1000)}; ulimit -v ${ADDRESS_SPACE_KIB} 2>/dev/null`;
/** The shell writes this line to stderr between two calls. */
const CALL_SEPARATOR = '\0';

/** Error messages include this many characters from the end of stderr. */
const STDERR_LENGTH = 4096;

const GDAL_CONFIG = {
  GDAL_PAM_ENABLED: 'NO',
  GDAL_DISABLE_READDIR_ON_OPEN: 'EMPTY_DIR',
  // No network: file names must not be URLs, and requests go to a proxy that does not exist.
  CPL_VSIL_CURL_ALLOWED_EXTENSIONS: 'none',
  GDAL_HTTP_PROXY: '127.0.0.1:1',
  PROJ_NETWORK: 'OFF',
  // With 1, the JPEG 2000 driver opens the file for every tile, at three times the cost.
  GDAL_NUM_THREADS: String(THREADS_PER_PROCESS),
  LC_ALL: 'C',
};

/** The environment variables that a program needs to start and to find its data. */
const ENVIRONMENT_ALLOWLIST =
  /^(PATH|HOME|TMPDIR|LD_LIBRARY_PATH|DYLD_\w+|GDAL_DATA|GDAL_DRIVER_PATH|PROJ_LIB|PROJ_DATA|CONDA_PREFIX)$/;

/** Running processes. Only these may be killed, because the system reuses process ids. */
const runningProcesses = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of runningProcesses) killGroup(child);
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
  runningProcesses.add(child);
  child.once('close', () => runningProcesses.delete(child));
  const stderr = collectStderr(child);
  const ended = waitForExit(child);
  const path = (call = stderr.length - 1) => calls[Math.min(call, calls.length - 1)].path;
  /** Why it was killed; the first reason counts. */
  let reason: unknown;
  const kill = (why: unknown) => {
    reason ??= why;
    if (runningProcesses.has(child)) killGroup(child);
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
    if (end !== 'exit code 0') throw gdalFailed(path(), program, end, lastWords(stderr.at(-1)));
    // The programs continue after some errors, but pixels are then missing. The error that a pipe holds no metadata is
    // harmless.
    for (const [i, said] of stderr.map(lastWords).entries())
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
    env: { ...Object.fromEntries(passedOn), ...GDAL_CONFIG, ...config },
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

const lastWords = (tail = '') => tail.trim().replace(/\.$/, '');

/** The formats that are read through GDAL. `GDAL_FORMATS` has the only drivers that may open them. */
export type GdalFileType = Exclude<RasterType, 'tiff' | 'hdf5' | 'envi' | 'mat'>;

interface GdalFormat {
  /** Name for users. */
  name: string;
  driver: string;
  /** The driver of a single layer, if GDAL has a separate one. */
  layerDriver?: string;
}

export const GDAL_FORMATS: Record<GdalFileType, GdalFormat> = {
  jp2: { name: 'JPEG 2000', driver: 'JP2OpenJPEG' },
  hfa: { name: 'Erdas Imagine (.img)', driver: 'HFA' },
  hdf4: { name: 'HDF4', driver: 'HDF4', layerDriver: 'HDF4Image' },
  netcdf: { name: 'netCDF', driver: 'netCDF' },
};

/** The format of a driver, for messages. */
export function formatOfGdalDriver(driver: string): string {
  const format = Object.values(GDAL_FORMATS).find((f) => f.driver === driver || f.layerDriver === driver);
  return format?.name ?? driver;
}

/**
 * Refuses files that make GDAL's libraries open another file at any path: an upload could read the server's disk through them. Throws
 * TW_RASTER_UNSUPPORTED if a file for `driver` refers to another file, and TW_RASTER_CORRUPT.
 */
export async function rejectExternalReferences(path: string, driver: string): Promise<void> {
  if (driver.startsWith('HDF4')) await withFile(path, ({ handle }) => rejectExternalElements(handle, path));
  if (driver === 'HFA') await withFile(path, ({ handle }) => rejectExternalRasters(handle, path));
}

async function bytesAt(file: FileHandle, position: number, size: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size), 0, size, position);
  return buffer.subarray(0, bytesRead);
}

const HDF4_BLOCK_HEADER_BYTES = 6;
const HDF4_DESCRIPTOR_BYTES = 12;
/** Bit in the tag of an element with special storage. Tags of users also have `HDF4_USER_TAG`, and are never special. */
const HDF4_SPECIAL_TAG = 0x4000;
const HDF4_USER_TAG = 0x8000;
const HDF4_EXTERNAL = 2;
const MAX_DESCRIPTORS = 1_000_000;

/**
 * HDF4 (HDF Specification and Developer's Guide, chapters 2 and 8): blocks of data descriptors, each a tag, a reference, an
 * offset and a length. The data of a special tag starts with a code; 2 is an element in another file.
 */
async function rejectExternalElements(file: FileHandle, path: string): Promise<void> {
  let seen = 0;
  const blocks = new Set<number>();
  for (let block = 4; block !== 0; ) {
    if (blocks.has(block)) throw corrupt(path, 'the blocks of its directory lead in a circle');
    blocks.add(block);
    const header = await bytesAt(file, block, HDF4_BLOCK_HEADER_BYTES);
    // GDAL reports the error of a file that ends here.
    if (header.length < HDF4_BLOCK_HEADER_BYTES) return;
    const descriptors = await bytesAt(
      file,
      block + HDF4_BLOCK_HEADER_BYTES,
      header.readUInt16BE(0) * HDF4_DESCRIPTOR_BYTES,
    );
    seen += 1 + descriptors.length / HDF4_DESCRIPTOR_BYTES;
    if (seen > MAX_DESCRIPTORS) throw corrupt(path, 'its directory does not end');
    for (let at = 0; at + HDF4_DESCRIPTOR_BYTES <= descriptors.length; at += HDF4_DESCRIPTOR_BYTES) {
      const tag = descriptors.readUInt16BE(at);
      if (!(tag & HDF4_SPECIAL_TAG) || tag & HDF4_USER_TAG) continue;
      const code = await bytesAt(file, descriptors.readUInt32BE(at + 4), 2);
      if (code.length === 2 && code.readUInt16BE(0) === HDF4_EXTERNAL)
        throw unsupported(path, 'part of its data is in another file (an HDF4 external element)');
    }
    block = header.readUInt32BE(2);
  }
}

const EXTERNAL_RASTER = 'externalrasterdms\0';
/** Offsets in an entry of an Erdas Imagine file: position and size of its data, and its name. */
const DATA_IN_ENTRY = 16;
const NAME_IN_ENTRY = 24;
const MAX_DATASET_NAMES = 65_536;

/** Erdas Imagine: an entry of this name refers to the file with the pixels, which must be beside it. */
async function rejectExternalRasters(file: FileHandle, path: string): Promise<void> {
  let start = 0;
  let text = '';
  for await (const chunk of createReadStream(path)) {
    text += (chunk as Buffer).toString('latin1').toLowerCase();
    for (let at = text.indexOf(EXTERNAL_RASTER); at >= 0; at = text.indexOf(EXTERNAL_RASTER, at + 1)) {
      const place = await bytesAt(file, Math.max(0, start + at - NAME_IN_ENTRY + DATA_IN_ENTRY), 8);
      if (place.length < 8) continue;
      const size = place.readUInt32LE(4);
      const names = await bytesAt(file, place.readUInt32LE(0), Math.min(size, MAX_DATASET_NAMES));
      if (size > MAX_DATASET_NAMES || /[/\\]/.test(names.toString('latin1')))
        throw unsupported(path, 'its pixels are in a file of another folder (an Erdas external raster)');
    }
    const kept = Math.min(text.length, EXTERNAL_RASTER.length - 1);
    start += text.length - kept;
    text = text.slice(text.length - kept);
  }
}

/** The checked output of `gdalinfo -json` for a dataset. */
export interface GdalInfo {
  width: number;
  height: number;
  /** WKT 2 and PROJ string; empty without a coordinate reference system. */
  wkt: string;
  proj4: string;
  /** GDAL's order: origin x, xx, xy, origin y, yx, yy. Undefined if the dataset is not georeferenced. */
  geoTransform: number[] | undefined;
  /** Longitude and latitude of the corners, as PROJ computes them: upper left, lower left, lower right, upper right. */
  corners: number[][] | undefined;
  /** Items of the default domain. */
  metadata: Record<string, string>;
  subdatasets: Record<string, string>;
  bands: GdalBand[];
}

export interface GdalBand {
  /** GDAL's name, such as UInt16. */
  type: string;
  signedByte: boolean;
  /** True if its values index a colour table. */
  palette: boolean;
  /** True for an alpha band. */
  alpha: boolean;
  /** Red, green, blue and alpha of each value, 0 to 255. */
  colours: number[][];
  block: [width: number, height: number];
  /** As text, so that nan and inf survive. */
  nodata: string | undefined;
  description: string | undefined;
  /** Its name in a netCDF file. */
  variable: string | undefined;
  scale: number | undefined;
  offset: number | undefined;
}

/** Limit of the output. A header of a few hundred layers has some 100 KB. */
const MAX_JSON_BYTES = 64 * 2 ** 20;

/** Limits concurrent processes, for all inputs together. */
const infoProcesses = new Semaphore(4);

/** Describes a dataset that only one driver may open. `path` is the file, for messages. */
export function runGdalInfo(path: string, dataset: string, driver: string): Promise<GdalInfo> {
  return infoProcesses.run(() => queryGdalInfo(path, dataset, driver));
}

async function queryGdalInfo(path: string, dataset: string, driver: string): Promise<GdalInfo> {
  await rejectExternalReferences(path, driver);
  const chunks: Uint8Array[] = [];
  const args = ['-json', '-proj4', '-norat', '-nogcp', '-if', driver, dataset];
  const limits = { totalMs: 120_000, outputBytes: MAX_JSON_BYTES };
  const format = formatOfGdalDriver(driver);
  for await (const chunk of runGdal({ program: 'gdalinfo', calls: [{ args, path, format }], limits }))
    chunks.push(chunk);
  const text = Buffer.concat(chunks).toString('utf8');
  try {
    return parseInfo(JSON.parse(text));
  } catch (error) {
    throw gdalFailed.because(error, path, 'gdalinfo', 'an answer that is not understood', text.slice(0, 200));
  }
}

type Items = Record<string, unknown> | undefined;

/** The output. A member of another type than expected throws an error, which the caller catches. */
type InfoOutput = Record<string, unknown> & {
  coordinateSystem?: Items;
  wgs84Extent?: { coordinates: unknown[][] };
  metadata?: Record<string, Items>;
  bands: InfoBand[];
};

type InfoBand = Record<string, unknown> & {
  colorTable?: { entries: unknown[] };
  metadata?: Record<string, Items>;
};

function parseInfo(info: InfoOutput): GdalInfo {
  const [width, height] = numbersOf(info.size, 2);
  return {
    width,
    height,
    wkt: textOf(info.coordinateSystem?.wkt) ?? '',
    proj4: textOf(info.coordinateSystem?.proj4) ?? '',
    geoTransform: info.geoTransform === undefined ? undefined : numbersOf(info.geoTransform, 6),
    corners: cornersOf(info.wgs84Extent),
    metadata: textItems(info.metadata?.['']),
    subdatasets: textItems(info.metadata?.SUBDATASETS),
    bands: info.bands.map(parseBand),
  };
}

/** Corners of a GeoJSON polygon; undefined if a corner has no counterpart on the globe. */
function cornersOf(polygon: InfoOutput['wgs84Extent']): number[][] | undefined {
  const ring = polygon?.coordinates[0];
  if (!Array.isArray(ring) || ring.length < 4) return undefined;
  return ring.slice(0, 4).map((corner) => numbersOf(corner, 2));
}

function parseBand(band: InfoBand): GdalBand {
  const [width, height] = numbersOf(band.block, 2);
  const nodata = band.noDataValue;
  return {
    type: textOf(band.type) ?? '',
    signedByte: textItems(band.metadata?.IMAGE_STRUCTURE).PIXELTYPE === 'SIGNEDBYTE',
    palette: band.colorInterpretation === 'Palette',
    alpha: band.colorInterpretation === 'Alpha',
    colours: band.colorTable ? band.colorTable.entries.map((entry) => numbersOf(entry, 4)) : [],
    block: [width, height],
    nodata: typeof nodata === 'number' ? String(nodata) : textOf(nodata),
    description: textOf(band.description) || undefined,
    variable: textItems(band.metadata?.['']).NETCDF_VARNAME,
    scale: numberOf(band.scale),
    offset: numberOf(band.offset),
  };
}

function numbersOf(value: unknown, count: number): number[] {
  if (!Array.isArray(value) || value.length !== count || !value.every((item) => typeof item === 'number'))
    throw new Error(`it has ${JSON.stringify(value)} instead of ${count} numbers`);
  return value;
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined);

/** NaN for a value that is not a number. */
const numberOf = (value: unknown) =>
  value === undefined ? undefined : typeof value === 'number' ? value : NaN;

/** The text items of a metadata domain; empty for XML domains, which are lists, and missing ones. */
function textItems(domain: Items = {}): Record<string, string> {
  const found = Object.entries(domain).filter(
    (item): item is [string, string] => !Array.isArray(domain) && typeof item[1] === 'string',
  );
  return Object.fromEntries(found);
}
