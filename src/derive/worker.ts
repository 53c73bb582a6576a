/** A worker thread of `DerivePool`: reads tiles, makes tiles or arrays from them, and encodes their files. */
import { handleTasksByKind } from '../async/index.js';
import { type CogImage, encodeCog } from '../raster/index.js';
import { readBandsAtSize } from './bands.js';
import { cutTile } from './cut-tile.js';
import { fillTile } from './fill-tile.js';

const HANDLERS = {
  fill: fillTile,
  cut: cutTile,
  planes: readBandsAtSize,
  stack: ({ image }: { image: CogImage }) => Uint8Array.from(encodeCog(image)),
};

export type DeriveHandlers = typeof HANDLERS;

handleTasksByKind(HANDLERS, (result) => {
  if (result === null) return [];
  if (result instanceof Uint8Array) return [result.buffer];
  const arrays = 'files' in result ? result.files.flatMap(({ bytes }) => bytes ?? []) : result;
  return arrays.map(({ buffer }) => buffer as ArrayBuffer);
});
