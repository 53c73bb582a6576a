/** All colormaps of Matplotlib and rio-tiler, by rio-tiler's names. `named-colormap-table.ts` lists their origins. */
import { inflateSync } from 'node:zlib';
import { NAMES, STEPS } from './named-colormap-table.js';

const COLORMAP_SIZE = 256;
const OPAQUE = 255;
const REVERSED = '_r';

/** Names in lower case, sorted. With the suffix `_r` the order of the colours is reversed. */
export const COLORMAPS: readonly string[] = NAMES.split(' ');

let steps: Buffer | undefined;

/** Returns 256 colours of 4 bytes (red, green, blue, opacity); undefined for an unknown name. Case does not matter. */
export function namedColormap(name: string): Uint8Array | undefined {
  const known = name.toLowerCase();
  const reversed = known.endsWith(REVERSED);
  const number = COLORMAPS.indexOf(reversed ? known.slice(0, -REVERSED.length) : known);
  if (number < 0) return undefined;
  steps ??= inflateSync(Buffer.from(STEPS, 'base64'));
  const colours = new Uint8Array(4 * COLORMAP_SIZE).fill(OPAQUE);
  for (let channel = 0; channel < 3; channel++) {
    let value = 0;
    for (let i = 0; i < COLORMAP_SIZE; i++) {
      value = (value + steps[(3 * number + channel) * COLORMAP_SIZE + i]) & 255;
      colours[4 * (reversed ? COLORMAP_SIZE - 1 - i : i) + channel] = value;
    }
  }
  return colours;
}
