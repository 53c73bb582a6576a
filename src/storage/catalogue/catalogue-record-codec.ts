/**
 * A record on disk: the CRC-32 of its key and its JSON (4 bytes, big endian), then the JSON as UTF-8. LevelDB returns
 * flipped bytes without an error, so each record has its own checksum. It includes the key, because a flipped byte in a
 * key would put an intact record in the place of another.
 */
import { crc32 } from 'node:zlib';
import { storageCorrupt } from '../errors.js';

export function encodeRecord(key: string, record: unknown): Buffer {
  const json = JSON.stringify(record);
  const bytes = Buffer.allocUnsafe(4 + Buffer.byteLength(json));
  bytes.write(json, 4, 'utf8');
  bytes.writeUInt32BE(crc32(bytes.subarray(4), crc32(key)), 0);
  return bytes;
}

/** `where` names the table in the error. Throws TW_STORAGE_CORRUPT. */
export function decodeRecord(where: string, key: string, bytes: Buffer): unknown {
  const json = bytes.subarray(4);
  if (bytes.length < 4 || bytes.readUInt32BE(0) !== crc32(json, crc32(key)))
    throw storageCorrupt(`record ${JSON.stringify(key)}`, `table ${where} of the catalogue`);
  return JSON.parse(json.toString('utf8'));
}
