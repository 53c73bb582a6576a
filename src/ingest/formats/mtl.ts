/** Landsat's MTL text, which is ODL. Read as latin1, because delivered files may carry NUL or other bytes after END. */
import { odlNodes, parseOdl } from '../../raster/index.js';

export type MtlGroup = { [key: string]: string };

/** Group name -> its keys. Nested groups are flattened by their own name; quotes are removed. */
export function parseMtl(text: string): Map<string, MtlGroup> {
  const [, ...groups] = odlNodes(parseOdl(text));
  return new Map(groups.map(({ name, values }) => [name, values]));
}
