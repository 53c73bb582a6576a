/**
 * The column index as a file, so that opening a folder need not read every record. The columns are written as they lie in
 * memory:
 *
 *     'TWCI', format, length of the header, CRC-32 of the header    4 x 4 bytes, little endian
 *     header                                                        JSON, then zeros up to a multiple of 8 bytes
 *     parts in the order of the header                              each with zeros up to a multiple of 8 bytes
 */
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { endianness } from 'node:os';
import { dirname } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { messageOf } from '../errors.js';
import { columnNames } from './columns.js';
import { syncFile } from './durable.js';
import { emptyImage, type RowsImage, type RowsNames } from './rows-image.js';

const MAGIC = 'TWCI';
const FORMAT = 2;
const START = 16;
/** Bytes that are summed up or written at once. */
const PIECE = 1 << 20;

/** What of the catalogue a snapshot holds. */
export interface SnapshotStamp {
  /** The last commit that is in it, and the tag of that commit. */
  sequence: number;
  tag: string;
  /** Tiles whose records were damaged, so that they are not in it. */
  damaged: string[];
}

interface Header extends SnapshotStamp {
  endianness: 'LE' | 'BE';
  rows: number;
  sorted: number;
  parts: { name: string; bytes: number; crc32: number }[];
}

/** Writes or replaces a snapshot as a whole. Others get their turn between its pieces. */
export async function writeSnapshot(path: string, image: RowsImage, stamp: SnapshotStamp): Promise<void> {
  const { rows, sorted } = image;
  const parts = [{ name: NAMES, bytes: await encodeNames(image.names) }, ...arraysOf(image)];
  const header: Header = { ...stamp, endianness: endianness(), rows, sorted, parts: [] };
  for (const { name, bytes } of parts)
    header.parts.push({ name, bytes: bytes.length, crc32: await checksum(bytes) });
  const json = Buffer.from(JSON.stringify(header));
  const start = Buffer.alloc(START);
  start.write(MAGIC);
  [FORMAT, json.length, crc32(json)].forEach((value, i) => {
    start.writeUInt32LE(value, 4 + 4 * i);
  });
  const temporary = `${path}.tmp`;
  try {
    const file = await open(temporary, 'w');
    try {
      let at = START + padded(json.length);
      await write(file, start, 0);
      await write(file, json, START);
      for (const { bytes } of parts) {
        await write(file, bytes, at);
        at += padded(bytes.length);
      }
      await file.truncate(at);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFile(dirname(path));
}

/** A snapshot, or why it cannot be used. What is given is what was written, to the last bit. */
export async function readSnapshot(
  path: string,
): Promise<{ image: RowsImage; stamp: SnapshotStamp } | { unusable: string }> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, 'r');
    return await read(file);
  } catch (error) {
    // What the system cannot read is as good as damaged; anything else is a fault of the program.
    if (!(error instanceof Unusable) && !(error as NodeJS.ErrnoException).syscall) throw error;
    return { unusable: error instanceof Unusable ? error.message : `cannot be read: ${messageOf(error)}` };
  } finally {
    await file?.close();
  }
}

/** The message goes on after the file's name. */
class Unusable extends Error {}

async function read(file: FileHandle): Promise<{ image: RowsImage; stamp: SnapshotStamp }> {
  const { size } = await file.stat();
  const start = await readInto(file, Buffer.alloc(START), 0);
  if (start.toString('latin1', 0, 4) !== MAGIC) throw new Unusable('is no snapshot');
  const [format, length, crc] = [4, 8, 12].map((at) => start.readUInt32LE(at));
  if (format !== FORMAT) throw new Unusable(`is of format ${format}`);
  if (START + length > size) throw new Unusable('is cut off');
  const json = await readInto(file, Buffer.alloc(length), START);
  if (crc32(json) !== crc) throw new Unusable('has a damaged header');
  const header: Header = JSON.parse(json.toString());
  if (header.endianness !== endianness()) throw new Unusable('is of a machine with another byte order');

  const { rows, sorted, sequence, tag, damaged } = header;
  let at = START + padded(length);
  const readPart = async ({ bytes, name, crc32: written }: Header['parts'][0], into: Uint8Array) => {
    if (bytes !== into.length) throw new Unusable(`has a part ${name} of another length`);
    await readInto(file, into, at);
    if (crc32(into) !== written) throw new Unusable(`has a damaged part ${name}`);
    at += padded(bytes);
    return into;
  };
  const [names, ...others] = header.parts;
  const texts = others.find(({ name }) => name === 'texts')!.bytes;
  const image = emptyImage(
    rows,
    sorted,
    texts,
    decodeNames(await readPart(names, Buffer.alloc(names.bytes))),
  );
  for (const [i, { bytes }] of arraysOf(image).entries()) await readPart(others[i], bytes);
  return { image, stamp: { sequence, tag, damaged } };
}

const NAMES = 'names';
/** Names of one line. */
const LINE = 8_192;

/** Lines of JSON: the small dictionaries, then the scenes, many in a line. */
async function encodeNames({ scenes, ...small }: RowsNames): Promise<Buffer> {
  const lines = [Buffer.from(`${JSON.stringify(small)}\n`)];
  for (let at = 0; at < scenes.length; at += LINE) {
    lines.push(Buffer.from(`${JSON.stringify(scenes.slice(at, at + LINE))}\n`));
    await setImmediate();
  }
  return Buffer.concat(lines);
}

function decodeNames(bytes: Uint8Array): RowsNames {
  const [small, ...scenes] = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    .toString()
    .trimEnd()
    .split('\n');
  return { ...JSON.parse(small), scenes: scenes.flatMap((line) => JSON.parse(line)) };
}

/** The bytes of an image's arrays, by name. They share its memory. */
function arraysOf({
  columns,
  removed,
  newest,
  texts,
  rows,
  sorted,
}: RowsImage): { name: string; bytes: Uint8Array }[] {
  const bytesOf = (array: ArrayBufferView) =>
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  return [
    ...columnNames.map((name) => ({ name: name as string, bytes: bytesOf(columns[name].subarray(0, rows)) })),
    { name: 'removed', bytes: removed.subarray(0, rows) },
    { name: 'newest', bytes: bytesOf(newest.subarray(0, sorted)) },
    { name: 'texts', bytes: texts },
  ];
}

const padded = (length: number) => Math.ceil(length / 8) * 8;

async function checksum(bytes: Uint8Array): Promise<number> {
  let crc = 0;
  for (let at = 0; at < bytes.length; at += PIECE) {
    crc = crc32(bytes.subarray(at, at + PIECE), crc);
    await setImmediate();
  }
  return crc;
}

async function write(file: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let from = 0; from < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, from, Math.min(PIECE, bytes.length - from), at + from);
    from += bytesWritten;
  }
}

async function readInto<B extends Uint8Array>(file: FileHandle, bytes: B, at: number): Promise<B> {
  for (let from = 0; from < bytes.length; ) {
    const { bytesRead } = await file.read(bytes, from, bytes.length - from, at + from);
    if (bytesRead === 0) throw new Unusable('is cut off');
    from += bytesRead;
  }
  return bytes;
}
