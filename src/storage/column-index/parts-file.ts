/**
 * Files of a JSON header and binary parts, each with a checksum:
 *
 *     'TWCI', format, length of the header, CRC-32 of the header    4 x 4 bytes, little endian
 *     header                                                        JSON, then zeros up to a multiple of 8 bytes
 *     parts in the order of the header                              each with zeros up to a multiple of 8 bytes
 */
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { endianness } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { messageOf } from '../../errors.js';

const MAGIC = 'TWCI';
const FORMAT = 5;
const HEADER_START = 16;
/** Bytes to checksum or write between two turns of the event loop. */
const STEP_BYTES = 1 << 20;

export interface Part {
  name: string;
  bytes: Uint8Array;
}

interface Header {
  endianness: 'LE' | 'BE';
  parts: { name: string; bytes: number; crc32: number }[];
}

/** The reason why a file cannot be used. The message continues a sentence that begins with the file's name. */
export class UnusableFile extends Error {}

/** Writes or replaces a file atomically, and syncs the file, but not its folder. `facts` become members of the header. */
export async function writeParts(path: string, facts: object, parts: Part[]): Promise<void> {
  const header: Header = { ...facts, endianness: endianness(), parts: [] };
  for (const { name, bytes } of parts)
    header.parts.push({ name, bytes: bytes.length, crc32: await checksum(bytes) });
  const json = Buffer.from(JSON.stringify(header));
  const start = Buffer.alloc(HEADER_START);
  start.write(MAGIC);
  [FORMAT, json.length, crc32(json)].forEach((value, i) => {
    start.writeUInt32LE(value, 4 + 4 * i);
  });
  const temporary = `${path}.tmp`;
  try {
    const file = await open(temporary, 'w');
    try {
      let at = HEADER_START + padded(json.length);
      await write(file, start, 0);
      await write(file, json, HEADER_START);
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
}

/** A file that is open for reading. Methods throw `UnusableFile` if the content differs from what was written. */
export class PartsFile<Facts> {
  private constructor(
    private readonly file: FileHandle,
    readonly header: Facts,
    private readonly parts: ReadonlyMap<string, { at: number; bytes: number; crc32: number }>,
  ) {}

  /** Calls `work` with an open file. Throws `UnusableFile` if the file cannot be read. */
  static async read<Facts, T>(path: string, work: (file: PartsFile<Facts>) => Promise<T>): Promise<T> {
    let file: FileHandle | undefined;
    try {
      file = await open(path, 'r');
      return await work(await PartsFile.readHeader<Facts>(file));
    } catch (error) {
      // Errors without a system call are faults of the program.
      if (error instanceof UnusableFile || !(error as NodeJS.ErrnoException).syscall) throw error;
      throw new UnusableFile(`cannot be read: ${messageOf(error)}`);
    } finally {
      await file?.close();
    }
  }

  private static async readHeader<Facts>(file: FileHandle): Promise<PartsFile<Facts>> {
    const { size } = await file.stat();
    const start = await readInto(file, Buffer.alloc(HEADER_START), 0);
    if (start.toString('latin1', 0, 4) !== MAGIC) throw new UnusableFile('is not a snapshot');
    const [format, length, crc] = [4, 8, 12].map((at) => start.readUInt32LE(at));
    if (format !== FORMAT) throw new UnusableFile(`has format ${format}`);
    if (HEADER_START + length > size) throw new UnusableFile('is truncated');
    const json = await readInto(file, Buffer.alloc(length), HEADER_START);
    if (crc32(json) !== crc) throw new UnusableFile('has a damaged header');
    const header: Header & Facts = JSON.parse(json.toString());
    if (header.endianness !== endianness())
      throw new UnusableFile('was written on a machine with another byte order');
    const parts = new Map<string, { at: number; bytes: number; crc32: number }>();
    let at = HEADER_START + padded(length);
    for (const { name, ...part } of header.parts) {
      parts.set(name, { at, ...part });
      at += padded(part.bytes);
    }
    return new PartsFile<Facts>(file, header, parts);
  }

  /** Size of a part in bytes; undefined if the file does not have it. */
  sizeOf(name: string): number | undefined {
    return this.parts.get(name)?.bytes;
  }

  /** Reads a part, which has the size of `into`. */
  async readPart(name: string, into: Uint8Array): Promise<Uint8Array> {
    const part = this.parts.get(name);
    if (part?.bytes !== into.length) throw new UnusableFile(`has a part ${name} of another length`);
    await readInto(this.file, into, part.at);
    if (crc32(into) !== part.crc32) throw new UnusableFile(`has a damaged part ${name}`);
    return into;
  }
}

const padded = (length: number) => Math.ceil(length / 8) * 8;

async function checksum(bytes: Uint8Array): Promise<number> {
  let crc = 0;
  for (let at = 0; at < bytes.length; at += STEP_BYTES) {
    crc = crc32(bytes.subarray(at, at + STEP_BYTES), crc);
    await setImmediate();
  }
  return crc;
}

async function write(file: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let from = 0; from < bytes.length; ) {
    const { bytesWritten } = await file.write(
      bytes,
      from,
      Math.min(STEP_BYTES, bytes.length - from),
      at + from,
    );
    from += bytesWritten;
  }
}

async function readInto<B extends Uint8Array>(file: FileHandle, bytes: B, at: number): Promise<B> {
  for (let from = 0; from < bytes.length; ) {
    const { bytesRead } = await file.read(bytes, from, bytes.length - from, at + from);
    if (bytesRead === 0) throw new UnusableFile('is truncated');
    from += bytesRead;
  }
  return bytes;
}
