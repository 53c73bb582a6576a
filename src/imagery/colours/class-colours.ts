/** Colours of codes, such as classes of land cover, whose numeric order has no meaning. */

import { type Expression, toIdentifier } from '../../expressions/index.js';
import type { ColourTable } from '../../raster/index.js';
import type { TileRecord } from '../../storage/index.js';
import { type Colormap, opaque } from './colormap-lookup.js';

/** The legend of the National Land Cover Database (MRLC): code and RRGGBB. */
const NLCD_COLOURS = new Map([
  [11, 0x466b9f],
  [12, 0xd1def8],
  [21, 0xdec5c5],
  [22, 0xd99282],
  [23, 0xeb0000],
  [24, 0xab0000],
  [31, 0xb3ac9f],
  [41, 0x68ab5f],
  [42, 0x1c5f2c],
  [43, 0xb5c58f],
  [51, 0xaf963c],
  [52, 0xccb879],
  [71, 0xdfdfc2],
  [72, 0xd1d182],
  [73, 0xa4cc51],
  [74, 0x82ba9e],
  [81, 0xdcd939],
  [82, 0xab6c28],
  [90, 0xb8d9eb],
  [95, 0x6c9fb8],
]);

/** Colours of the mask codes: clear, cloud, shadow, snow, filled, not assessed. */
const MASK_COLOURS = new Map([
  [1, 0x6fa55b],
  [2, 0xffffff],
  [3, 0x404060],
  [4, 0x9fd8ff],
  [5, 0xe8c35a],
  [255, 0xb0b0b0],
]);

/** Twelve distinct colours (ColorBrewer, Set3) for codes without a legend. */
const QUALITATIVE_COLOURS = [
  0x8dd3c7, 0xffffb3, 0xbebada, 0xfb8072, 0x80b1d3, 0xfdb462, 0xb3de69, 0xfccde5, 0xd9d9d9, 0xbc80bd,
  0xccebc5, 0xffed6f,
];

/** Unscaled bytes with at most this number of distinct values in a tile count as codes. */
const MAX_CODES = 32;

/** The colormap of one band of codes; undefined if its values are measurements. `sorted`: values of the band. */
export function classColormap(
  tile: TileRecord,
  expressions: Expression[],
  sorted: Float64Array,
): Colormap | undefined {
  const [expression] = expressions;
  if (expressions.length !== 1 || expression.kind !== 'band') return undefined;
  const codes = new Set(sorted);
  const group = tile.groups.find(({ name, bands }) =>
    bands.some(
      (band, i) => expression.name === `${toIdentifier(name)}_b${i + 1}` || band.name === expression.name,
    ),
  );
  if (!group) return undefined;
  if (group.role === 'mask') return legend(MASK_COLOURS);
  const plain = group.bands.every(
    ({ scale, offset, commonName }) => scale === 1 && offset === 0 && !commonName,
  );
  if (group.dataType !== 'uint8' || !plain || codes.size > MAX_CODES) return undefined;
  if (tile.collection === 'nlcd' && [...codes].every((code) => NLCD_COLOURS.has(code)))
    return legend(NLCD_COLOURS);
  return legend(Array.from({ length: 256 }, (_, code) => [code, colourOfCode(code)]));
}

const legend = (colours: Iterable<readonly [code: number, rgb: number]>): Colormap => ({
  kind: 'values',
  colours: new Map([...colours].map(([code, rgb]) => [code, opaque(rgb)])),
});

/** The colour table of a TIFF for codes without a legend. */
export const codeColours = (): ColourTable =>
  [16, 8, 0].flatMap((shift) =>
    Array.from({ length: 256 }, (_, code) => 257 * ((colourOfCode(code) >> shift) & 0xff)),
  );

/** The colour of a code without a legend, RRGGBB. */
export const colourOfCode = (code: number): number => QUALITATIVE_COLOURS[code % QUALITATIVE_COLOURS.length];
