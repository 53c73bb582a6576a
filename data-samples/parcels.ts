import { Kinds } from './kinds.js';
import { hash, uniform } from './random.js';

/** The crop at a point of the farmland. `green`, `nir` and `field` are as in Landscape; edges belong to no field. */
interface Parcel {
  kind: number;
  green: number;
  nir: number;
  field: number;
}

const BLOCK = 2300;
const MARGIN = 9;
const ROW_PERIOD = 42;

/**
 * The field at a place. Fields lie in strips; the strips of a block of 2.3 km run one way. Fields with wide rows have
 * less near infrared than closed ones of the same mean colour, so rows contain information that the colour lacks.
 */
export function parcelAt(x: number, y: number, elevation: number, seed: number): Parcel {
  const blockX = Math.floor((x + 0.35 * y) / BLOCK);
  const blockY = Math.floor((y - 0.2 * x) / BLOCK);
  const block = seed + 4096 * blockX + blockY;
  // A rational point of the unit circle: a direction without sine and cosine.
  const t = uniform(blockX, blockY, seed + 301) * 2 - 1;
  const cos = (1 - t * t) / (1 + t * t);
  const sin = (2 * t) / (1 + t * t);
  const along = x * cos + y * sin;
  const across = y * cos - x * sin;
  const stripHeight = 130 + 130 * uniform(blockX, blockY, seed + 302);
  const strip = Math.floor(across / stripHeight);
  const length = 240 + 300 * uniform(strip, 0, block + 303);
  const position = along / length + uniform(strip, 1, block + 304);
  const field = Math.floor(position);

  const inStrip = across - strip * stripHeight;
  const inField = (position - field) * length;
  const wide = uniform(field, strip, block + 305) ** 2;
  const hiddenNir = 0.92 + 0.16 * uniform(field, strip, block + 306);
  const vigour = 0.75 + 0.4 * uniform(field, strip, block + 307);
  if (inStrip < MARGIN || inField < MARGIN)
    return { kind: Kinds.meadow, green: 0.9, nir: hiddenNir, field: 0 };
  const phase = inStrip / ROW_PERIOD - Math.floor(inStrip / ROW_PERIOD);
  const rows = Math.abs(2 * phase - 1) - 0.5;
  return {
    kind: crop(uniform(field, strip, block + 308), elevation),
    green: vigour * (1 + 0.9 * wide * rows),
    nir: hiddenNir * (1.08 - 0.4 * wide),
    field: hash(field, strip, block + 309),
  };
}

/** Meadows on the slopes, peat in the lowest places. */
function crop(choice: number, elevation: number): number {
  if (elevation > 0.5 && choice < 0.45) return Kinds.meadow;
  if (elevation < 0.4 && choice < 0.5) return Kinds.peatCrop;
  if (choice < 0.12) return Kinds.soil;
  if (choice < 0.4) return Kinds.winterWheat;
  if (choice < 0.58) return Kinds.maize;
  if (choice < 0.74) return Kinds.rape;
  if (choice < 0.88) return Kinds.meadow;
  return Kinds.peatCrop;
}
