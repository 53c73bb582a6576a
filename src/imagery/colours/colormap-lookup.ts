/** Colours of the values of a single plane. A colour is a number 0xRRGGBBAA; its last byte is opacity. */
import { firstIndex } from '../../utils/bisection.js';

export type Colormap =
  /** 256 colours of 4 bytes for the integers from 0 to 255; other values have no colour. */
  | { kind: 'ramp'; colours: Uint8Array }
  /** Colours of exact values; other values have no colour. */
  | { kind: 'values'; colours: Map<number, number> }
  /** Values in [`bounds[i]`, `bounds[i + 1]`) have `colours[i]`; undefined means no colour. */
  | { kind: 'intervals'; bounds: number[]; colours: (number | undefined)[] };

/** Returns a function from a value to its colour, 0 (transparent) if it has no colour. */
export function colormapLookup(colouring: Colormap): (value: number) => number {
  switch (colouring.kind) {
    case 'ramp': {
      const { colours } = colouring;
      const view = new DataView(colours.buffer, colours.byteOffset, colours.byteLength);
      return (value) => (value > -1 && value < 256 ? view.getUint32(4 * Math.trunc(value)) : 0);
    }
    case 'values': {
      const { colours } = colouring;
      return (value) => colours.get(value) ?? 0;
    }
    case 'intervals': {
      const { bounds, colours } = colouring;
      return (value) => colours[firstIndex(bounds.length, (i) => !(bounds[i] <= value)) - 1] ?? 0;
    }
  }
}

/** The colour 0xRRGGBB without transparency. */
export const opaque = (rgb: number): number => ((rgb << 8) | 255) >>> 0;
