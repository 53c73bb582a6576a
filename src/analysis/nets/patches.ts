/** The labelled pixels of a tile with the spectra around them, as networks are trained on them. Runs in worker threads. */
import { eachPixelAround, type Neighbour } from '../blocks-around.js';
import { chance } from '../classifier/labelled-spectra.js';
import type { Standard } from '../classifier/network.js';
import { eachLabelled, type LabelledTile } from '../labels/labelled-pixels.js';
import { toHalf } from './half.js';
import type { Precision } from './nets.js';

/** Plain data, in memory that threads share. */
export interface Patches {
  /** Standardised spectra, one after another; each is held once, however many patches show it. Halves are their bits. */
  spectra: Float32Array | Uint16Array;
  /** Of each labelled pixel, in the order of the rows: its code, its set (an index of `SETS`), and the side x side spectra of its patch, row by row, -1 where there is none. */
  codes: Uint8Array;
  sets: Uint8Array;
  patches: Int32Array;
}

export interface PatchesTask extends LabelledTile {
  kind: 'patches';
  around: Neighbour[];
  standard: Standard;
  /** Of the labelled pixels that are taken, 0 to 1. */
  share: number;
  side: number;
  precision: Precision;
}

export function labelledPatches(task: PatchesTask): Patches {
  const { file, place, standard, share, side, around, precision } = task;
  const { centre, deviation } = standard;
  const bands = centre.length;
  const labelled: { pixel: number; set: number; code: number }[] = [];
  eachLabelled(task, ({ column, row, stride }, groups) => {
    for (const { set, code, indexes } of groups)
      for (const index of indexes) {
        const pixel = (row + Math.floor(index / stride)) * file.width + column + (index % stride);
        if (share === 1 || chance(place.geocode, pixel) < share) labelled.push({ pixel, set, code });
      }
  });
  labelled.sort((a, b) => a.pixel - b.pixel);

  const reach = (side - 1) / 2;
  const width = file.width + 2 * reach;
  /** Positions of a patch in the widened tile. */
  const places = labelled.flatMap(({ pixel }) => {
    const corner = Math.floor(pixel / file.width) * width + (pixel % file.width);
    return Array.from({ length: side * side }, (_, i) => corner + Math.floor(i / side) * width + (i % side));
  });
  const wanted = new Uint8Array(width * (file.height + 2 * reach));
  for (const at of places) wanted[at] = 1;
  const numbers = new Int32Array(wanted.length).fill(-1);
  const found: Float32Array[] = [];
  eachPixelAround(file, around, { reach, wanted }, (places, spectrum) => {
    for (const at of places) numbers[at] = found.length;
    found.push(Float32Array.from(spectrum, (value, b) => (value - centre[b]!) / deviation[b]!));
  });
  const spectra = new Float32Array(found.length * bands);
  for (const [i, one] of found.entries()) spectra.set(one, i * bands);
  return {
    spectra: shared(precision === 'mixed' ? toHalf(spectra) : spectra),
    codes: shared(Uint8Array.from(labelled, ({ code }) => code)),
    sets: shared(Uint8Array.from(labelled, ({ set }) => set)),
    patches: shared(Int32Array.from(places, (at) => numbers[at]!)),
  };
}

function shared<T extends Float32Array | Uint16Array | Uint8Array | Int32Array>(values: T): T {
  const copy = new (values.constructor as new (buffer: SharedArrayBuffer) => T)(
    new SharedArrayBuffer(values.byteLength),
  );
  copy.set(values);
  return copy;
}
