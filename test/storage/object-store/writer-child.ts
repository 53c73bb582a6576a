/** `node writer-child.js URL FIRST`: puts objects FIRST, FIRST + 1 ... into a store until it is killed. */
import { writeSync } from 'node:fs';
import { openObjectStore } from '../../../src/storage/index.js';
import { bytesOf } from './contract.js';

/** Name and content of an object by its number: a few bytes or 8 MB. */
export function objectOf(n: number): { name: string; bytes: Buffer } {
  return { name: `tiles/${n % 5}/${n}`, bytes: bytesOf(n % 3 === 0 ? n : 8_000_000 + n, n) };
}

const [url, first] = process.argv.slice(2);
if (url !== undefined) {
  const store = await openObjectStore(url);
  for (let n = Number(first); ; n++) {
    const { name, bytes } = objectOf(n);
    writeSync(1, `put ${n}\n`);
    await store.put(name, bytes);
    writeSync(1, `acknowledged ${n}\n`);
  }
}
