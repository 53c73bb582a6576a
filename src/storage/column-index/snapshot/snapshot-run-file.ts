/** A run of the column index as a file. The columns have the same layout as in memory. */
import { setImmediate } from 'node:timers/promises';
import { columnNames } from '../index-columns.js';
import { emptyImage, type RunImage, type RunNames } from '../index-run-image.js';
import { type Part, type PartsFile, UnusableFile, writeParts } from './snapshot-parts-file.js';

export interface RunHeader {
  rows: number;
  sorted: number;
}

const NAMES = 'names';
/** Part of files of format 2; in later formats the snapshot has the marks. */
const REMOVED = 'removed';
/** Part that files of older versions lack. */
const WAVELENGTHS = 'wavelengths';
const NAMES_PER_LINE = 8_192;

/** Writes an image without its `removed`. */
export async function writeRun(path: string, image: RunImage): Promise<void> {
  const { rows, sorted } = image;
  const names = { name: NAMES, bytes: await encodeNames(image.names) };
  await writeParts(path, { rows, sorted } satisfies RunHeader, [names, ...arraysOf(image)]);
}

/** Throws `UnusableFile`. */
export async function readRun(file: PartsFile<RunHeader>): Promise<RunImage> {
  const { rows, sorted } = file.header;
  const names = await file.readPart(NAMES, Buffer.alloc(sizeOf(file, NAMES)));
  const image = emptyImage(rows, sorted, sizeOf(file, 'texts'), decodeNames(names));
  if (file.sizeOf(WAVELENGTHS) === undefined) {
    image.names.wavelengthRanges = [null];
    image.lacksWavelengths = true;
  }
  for (const { name, bytes } of arraysOf(image))
    if (name !== WAVELENGTHS || !image.lacksWavelengths) await file.readPart(name, bytes);
  if (file.sizeOf(REMOVED) !== undefined) await file.readPart(REMOVED, image.removed);
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
