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

export const splitTooFine = defineError(
  'TW_WRANGLE_TOO_FINE',
  400,
  'A tile would be split into too many cells, or into cells that its grid does not have. Give a smaller precision.',
  (grid: string, geocode: string, precision: number, most: number) =>
    `cell ${geocode} cannot be split into ${grid} cells of precision ${precision}: give a smaller --precision, for at most ${most} cells a tile`,
);

export const unknownCollection = defineError(
  'TW_WRANGLE_NO_COLLECTION',
  404,
  'There is no collection of this name whose cells could be taken over. `tilewright info` lists those that exist.',
  (id: string) => `there is no collection ${JSON.stringify(id)} whose cells could be taken over`,
);
