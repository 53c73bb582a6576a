/**
 * The column index as files, so that opening a folder need not read every record:
 *
 *     <commit>.snap    the stamp, the names of the rows files, and which of their rows are removed
 *     <random>.rows    one run each, without the marks of its rows
 *
 * A run does not change when it has been merged, so the next snapshot refers to the same file.
 */
import { randomBytes } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFile } from '../../files/durable-fs.js';
import type { Columns } from '../columns.js';
import type { RowsImage } from '../run-image.js';
import { type Part, PartsFile, Unusable, writeParts } from './parts-file.js';
import { type RowsFacts, readRows, writeRows } from './run-file.js';

/** The state of the catalogue that a snapshot holds. */
export interface SnapshotStamp {
  /** The last commit in the snapshot, and the tag of that commit. */
  sequence: number;
  tag: string;
  /** Tiles with damaged records, which are not in the snapshot. */
  damaged: string[];
}

export interface Snapshot {
  stamp: SnapshotStamp;
  images: RowsImage[];
  /** Names of the files that make up the snapshot. */
  files: string[];
}

interface StoredRun {
  /** Name of the rows file. */
  file: string;
  rows: number;
}

type Facts = SnapshotStamp & { runs: StoredRun[] };

const SNAPSHOT = '.snap';

/** About so many bytes of a rows file per row. */
const ROW_BYTES = 64;

/**
 * The snapshot in a folder. Only one call at a time.
 * Invariant: `stored` has the rows files that are complete, by the columns of their runs.
 */
export class SnapshotFolder {
  private readonly stored = new WeakMap<Columns, StoredRun>();

  constructor(private readonly dir: string) {}

  /** The name of the newest snapshot. */
  async newest(): Promise<string | undefined> {
    const names = (await readdir(this.dir)).filter((name) => name.endsWith(SNAPSHOT));
    return names.sort().at(-1);
  }

  /** Reads a snapshot, exactly as it was written, or says why it cannot be used. */
  async read(name: string): Promise<Snapshot | { unusable: string }> {
    try {
      return await PartsFile.read<Facts | (SnapshotStamp & RowsFacts), Snapshot>(
        join(this.dir, name),
        async (file) => {
          const { sequence, tag, damaged } = file.facts;
          const stamp = { sequence, tag, damaged };
          if (holdsRows(file)) return { stamp, images: [await readRows(file)], files: [name] };
          const runs = file as PartsFile<Facts>;
          const files = [name, ...runs.facts.runs.map((run) => run.file)];
          return { stamp, images: await this.readRuns(runs), files };
        },
      );
    } catch (error) {
      if (!(error instanceof Unusable)) throw error;
      return { unusable: error.message };
    }
  }

  /** About so many bytes would `write` write. */
  bytesToWrite(images: readonly RowsImage[]): number {
    return images.reduce((sum, image) => sum + (this.storedRun(image) ? 1 : 1 + ROW_BYTES) * image.rows, 0);
  }

  /** Writes a snapshot, then removes all files that it does not need. Gives the event loop turns. */
  async write(images: readonly RowsImage[], stamp: SnapshotStamp): Promise<void> {
    const runs: StoredRun[] = [];
    for (const image of images) runs.push(this.storedRun(image) ?? (await this.writeRun(image)));
    // The rows files must be in the folder before a snapshot names them.
    await syncFile(this.dir);
    const name = `${String(stamp.sequence).padStart(12, '0')}${SNAPSHOT}`;
    await writeParts(join(this.dir, name), { ...stamp, runs } satisfies Facts, images.map(marksOf));
    await syncFile(this.dir);
    await this.keepOnly([name, ...runs.map(({ file }) => file)]);
  }

  /** Removes all files with other names. */
  async keepOnly(names: readonly string[]): Promise<void> {
    const kept = new Set(names);
    for (const name of await readdir(this.dir))
      if (!kept.has(name)) await rm(join(this.dir, name), { force: true });
  }

  private storedRun({ columns, rows }: RowsImage): StoredRun | undefined {
    const known = this.stored.get(columns);
    return known?.rows === rows ? known : undefined;
  }

  private async writeRun(image: RowsImage): Promise<StoredRun> {
    const run = { file: `${randomBytes(8).toString('hex')}.rows`, rows: image.rows };
    await writeRows(join(this.dir, run.file), image);
    this.stored.set(image.columns, run);
    return run;
  }

  private async readRuns(file: PartsFile<Facts>): Promise<RowsImage[]> {
    const images: RowsImage[] = [];
    for (const [i, run] of file.facts.runs.entries()) {
      const image = await PartsFile.read(join(this.dir, run.file), readRows);
      if (image.rows !== run.rows) throw new Unusable(`has another number of rows than ${run.file}`);
      await file.readPart(marksName(i), image.removed);
      // A file that lacks a part is written again with the next snapshot.
      if (!image.lacksWavelengths) this.stored.set(image.columns, run);
      images.push(image);
    }
    return images;
  }
}

/** Whether this is a snapshot of format 2, which holds the rows itself. */
function holdsRows(
  file: PartsFile<Facts | (SnapshotStamp & RowsFacts)>,
): file is PartsFile<SnapshotStamp & RowsFacts> {
  return !('runs' in file.facts);
}

const marksName = (i: number) => `removed ${i}`;

function marksOf({ removed, rows }: RowsImage, i: number): Part {
  return { name: marksName(i), bytes: removed.subarray(0, rows) };
}
