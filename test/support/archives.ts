/** Archives written byte by byte, so that a test can write invalid ones. */
import { crc32, deflateRawSync } from 'node:zlib';

export interface ZipEntry {
  name: string | Buffer;
  content?: Buffer | string;
  /** Unix mode with the type of the file. If given, the entry is marked as created on Unix. */
  mode?: number;
  store?: boolean;
  flags?: number;
  /** Wrong values for the directory. Default: the true ones. */
  size?: number;
  crc?: number;
}

/** A zip file (APPNOTE 6.3.3): local headers with their data, the central directory, its end record. */
export function zip(entries: ZipEntry[]): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const entry of entries) {
    const name = Buffer.from(entry.name);
    const content = Buffer.from(entry.content ?? '');
    const data = entry.store ? content : deflateRawSync(content);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(entry.flags ?? 0x800, 2);
    common.writeUInt16LE(entry.store ? 0 : 8, 4);
    common.writeUInt32LE(entry.crc ?? crc32(content), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(entry.size ?? content.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), common, name, data]);
    const attributes = Buffer.alloc(14);
    attributes.writeUInt32LE(((entry.mode ?? 0) * 65536) >>> 0, 6);
    attributes.writeUInt32LE(offset, 10);
    const madeBy = Buffer.from([20, entry.mode === undefined ? 0 : 3]);
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02', 'latin1'), madeBy, common, attributes, name]));
    parts.push(local);
    offset += local.length;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(size, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, ...directory, end]);
}

export interface TarEntry {
  name: string;
  content?: Buffer | string;
  /** Type flag of ustar: 0 file, 1 link, 2 symlink, 3 device, 5 folder. */
  type?: string;
  linkname?: string;
  size?: number;
}

/** A tar file (POSIX.1-1988 ustar), names of at most 100 bytes. */
export function tar(entries: TarEntry[], { end = true } = {}): Buffer {
  const parts = entries.flatMap(({ name, content = '', type = '0', linkname = '', size }) => {
    const data = Buffer.from(content);
    const header = Buffer.alloc(512);
    header.write(name, 0, 100);
    header.write('0000644\0', 100);
    header.write(`${(size ?? data.length).toString(8).padStart(11, '0')}\0`, 124);
    header.write('00000000000\0', 136);
    header.write(type, 156);
    header.write(linkname, 157, 100);
    header.write('ustar\0' + '00', 257);
    header.write('        ', 148);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    return [header, data, Buffer.alloc((512 - (data.length % 512)) % 512)];
  });
  return Buffer.concat([...parts, Buffer.alloc(end ? 1024 : 0)]);
}
