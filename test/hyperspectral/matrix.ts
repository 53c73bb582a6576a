/** Files of analyses. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TilewrightNode } from '../../src/node.js';

/** The numbers of a NumPy file of f64. */
export async function matrixOf(node: TilewrightNode, job: string, name: string): Promise<Float64Array> {
  const bytes = await readFile(join(await node.storage.results.makeFolder(job), name));
  return new Float64Array(bytes.buffer.slice(bytes.byteOffset + 10 + bytes.readUInt16LE(8)));
}
