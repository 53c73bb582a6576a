/**
 * The column index as files, so that opening a folder does not read every record:
 *
 *     <commit>.snap    the header, the names of the rows files, and the marks of their rows
 *     <random>.rows    one run, without the marks of its rows
 *
 * A merged run does not change any more, so the next snapshot refers to the same file.
 */

import { randomBytes } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { orIfMissing } from '../disk.js';
import { fsyncPath } from '../files.js';
import { type Columns, columnNames, emptyImage, type RunImage, type RunNames } from './columns.js';
import { type Part, PartsFile, UnusableFile, writeParts } from './parts-file.js';

/** The header of the file of a run. The columns have the same layout as in memory. */
interface RunHeader {
  rows: number;
  sorted: number;
}

const NAMES_PART = 'names';
const NAMES_PER_LINE = 8_192;

/** Writes an image without its `removed`. */
async function writeRun(path: string, image: RunImage): Promise<void> {
  const { rows, sorted } = image;
  const names = { name: NAMES_PART, bytes: await encodeNames(image.names) };
  await writeParts(path, { rows, sorted } satisfies RunHeader, [names, ...arraysOf(image)]);
}

/** Throws `UnusableFile`. */
async function readRun(file: PartsFile<RunHeader>): Promise<RunImage> {
  const { rows, sorted } = file.header;
  const names = await file.readPart(NAMES_PART, Buffer.alloc(sizeOf(file, NAMES_PART)));
  const image = emptyImage(rows, sorted, sizeOf(file, 'texts'), decodeNames(names));
  for (const { name, bytes } of arraysOf(image)) await file.readPart(name, bytes);
  return image;
}

function sizeOf(file: PartsFile<RunHeader>, name: string): number {
  const size = file.sizeOf(name);
  if (size === undefined) throw new UnusableFile(`has no part ${name}`);
  return size;
}

/** Lines of JSON: first the small dictionaries, then the scenes, `NAMES_PER_LINE` in a line. */
async function encodeNames({ scenes, ...small }: RunNames): Promise<Buffer> {
  const lines = [Buffer.from(`${JSON.stringify(small)}\n`)];
  for (let at = 0; at < scenes.length; at += NAMES_PER_LINE) {
    lines.push(Buffer.from(`${JSON.stringify(scenes.slice(at, at + NAMES_PER_LINE))}\n`));
    await setImmediate();
  }
  return Buffer.concat(lines);
}

function decodeNames(bytes: Uint8Array): RunNames {
  const [small, ...scenes] = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    .toString()
    .trimEnd()
    .split('\n');
  return { ...JSON.parse(small), scenes: scenes.flatMap((line) => JSON.parse(line)) };
}

/** The bytes of an image's arrays, which share its memory. */
function arraysOf({ columns, newest, texts, rows, sorted }: RunImage): Part[] {
  const bytesOf = (array: ArrayBufferView) =>
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  return [
    ...columnNames.map((name) => ({ name, bytes: bytesOf(columns[name].subarray(0, rows)) })),
    { name: 'newest', bytes: bytesOf(newest.subarray(0, sorted)) },
    { name: 'texts', bytes: texts },
  ];
}

/** The state of the catalogue that a snapshot contains. */
interface SnapshotHeader {
  /** The last commit in the snapshot, and the tag of that commit. */
  sequence: number;
  tag: string;
  /** Tiles with damaged records, which are not in the snapshot. */
  damaged: string[];
}

interface Snapshot {
  header: SnapshotHeader;
  images: RunImage[];
  /** Names of the files that make up the snapshot. */
  files: string[];
}

interface StoredRun {
  /** Name of the rows file. */
  file: string;
  rows: number;
}

type StoredHeader = SnapshotHeader & { runs: StoredRun[] };

const SNAPSHOT_EXTENSION = '.snap';
const SNAPSHOT_NAME = /^\d{12}\.snap$/;

const EST_BYTES_PER_ROW = 72;

/**
 * The snapshot in a folder. Callers make one call at a time.
 * Invariant: `stored` has the rows files that are complete, by the columns of their runs.
 */
export class SnapshotFolder {
  private readonly stored = new WeakMap<Columns, StoredRun>();

  constructor(private readonly dir: string) {}

  /** The name of the newest snapshot, which begins with the number of its commit. */
  async newest(): Promise<string | undefined> {
    const names = (await orIfMissing(readdir(this.dir), [])).filter((name) => SNAPSHOT_NAME.test(name));
    return names.sort().at(-1);
  }

  /** Reads a snapshot. Throws `UnusableFile`. */
  read(name: string): Promise<Snapshot> {
    return PartsFile.read<StoredHeader, Snapshot>(join(this.dir, name), async (file) => {
      const { runs, sequence, tag, damaged } = file.header;
      const files = [name, ...runs.map((run) => run.file)];
      return { header: { sequence, tag, damaged }, images: await this.readRuns(file), files };
    });
  }

  /** Estimated number of bytes that `write` would write. */
  bytesToWrite(images: readonly RunImage[]): number {
    return images.reduce(
      (sum, image) => sum + (this.storedRun(image) ? 1 : 1 + EST_BYTES_PER_ROW) * image.rows,
      0,
    );
  }

  /** Writes a snapshot, then removes all files that it does not need. Does not block the event loop. */
  async write(images: readonly RunImage[], header: SnapshotHeader): Promise<void> {
    const runs: StoredRun[] = [];
    for (const image of images) runs.push(this.storedRun(image) ?? (await this.writeRun(image)));
    // The rows files must be in the folder before a snapshot names them.
    await fsyncPath(this.dir);
    const name = `${String(header.sequence).padStart(12, '0')}${SNAPSHOT_EXTENSION}`;
    await writeParts(join(this.dir, name), { ...header, runs } satisfies StoredHeader, images.map(marksOf));
    await fsyncPath(this.dir);
    await this.removeOthers([name, ...runs.map(({ file }) => file)]);
  }

  /** Removes all files with other names. */
  async removeOthers(names: readonly string[]): Promise<void> {
    const kept = new Set(names);
    for (const name of await readdir(this.dir))
      if (!kept.has(name)) await rm(join(this.dir, name), { force: true });
  }

  private storedRun({ columns, rows }: RunImage): StoredRun | undefined {
    const known = this.stored.get(columns);
    return known?.rows === rows ? known : undefined;
  }

  private async writeRun(image: RunImage): Promise<StoredRun> {
    const run = { file: `${randomBytes(8).toString('hex')}.rows`, rows: image.rows };
    await writeRun(join(this.dir, run.file), image);
    this.stored.set(image.columns, run);
    return run;
  }

  private async readRuns(file: PartsFile<StoredHeader>): Promise<RunImage[]> {
    const images: RunImage[] = [];
    for (const [i, run] of file.header.runs.entries()) {
      const image = await PartsFile.read(join(this.dir, run.file), readRun);
      if (image.rows !== run.rows) throw new UnusableFile(`has another number of rows than ${run.file}`);
      await file.readPart(marksName(i), image.removed);
      this.stored.set(image.columns, run);
      images.push(image);
    }
    return images;
  }
}

const marksName = (i: number) => `removed ${i}`;

function marksOf({ removed, rows }: RunImage, i: number): Part {
  return { name: marksName(i), bytes: removed.subarray(0, rows) };
}
