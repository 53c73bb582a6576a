/** A worker thread of `DerivePool`: reads tiles, makes tiles or arrays from them, and encodes their files. */

import { handleTasksByKind } from '../async/index.js';
import { encodeCog } from '../raster/index.js';
import type { StackTask } from './derive-tasks.js';
import { readBandsAtSize } from './tensors/resize-bands.js';
import { cutTile } from './tiles/cut-tile.js';
import { fillTile } from './tiles/fill-tile.js';

const HANDLERS = {
  fill: fillTile,
  cut: cutTile,
  planes: readBandsAtSize,
  stack: ({ image }: StackTask) => Uint8Array.from(encodeCog(image)),
};

export type DeriveHandlers = typeof HANDLERS;

handleTasksByKind(HANDLERS, (result) => {
  if (result === null) return [];
  if (result instanceof Uint8Array) return [result.buffer];
  const arrays = 'files' in result ? result.files.flatMap(({ bytes }) => bytes ?? []) : result;
  return arrays.map(({ buffer }) => buffer as ArrayBuffer);
});
