import { defineError } from '../errors.js';

export const noMask = defineError(
  'TW_WRANGLE_NO_MASK',
  500,
  'A tile has no mask, so its pixels cannot be told apart. Ingest its scene again.',
  (geocode: string) => `a tile of cell ${geocode} has no mask; ingest its scene again`,
);

export const wrangleFailed = defineError(
  'TW_WRANGLE_FAILED',
  500,
  'A tile could not be made; the message names what is wrong with its inputs. The other tiles are made.',
  (tile: string, detail: string) => `${tile} could not be made: ${detail}`,
);

export const allFailed = defineError(
  'TW_WRANGLE_ALL_FAILED',
  500,
  'None of the tiles could be made; the message names the first reasons.',
  (count: number, reasons: string[]) => `all ${count} tiles failed: ${reasons.join('; ')}`,
);
