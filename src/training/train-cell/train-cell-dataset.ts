import { type ReadRasters, readAcquisitions } from '../data/index.js';
import { imagesToScore, type TileImages } from '../evaluation/index.js';
import type { ModelSpec } from '../models/index.js';
import { labelImages, makePatches, type TrainValidationPatches } from '../patches/index.js';
import type { TrainCellTask } from './train-cell-task.js';

interface CellDataset {
  dataset: TrainValidationPatches;
  /** Files for the tile scores. */
  source: TileImages;
}

/** Returns the patches of a cell, or the reason why it cannot be trained. The pixels are released. `kept`: see `readAcquisitions`. */
export async function readCellDataset(
  spec: ModelSpec,
  { dates, pairs, validationFrom }: Pick<TrainCellTask, 'dates' | 'pairs' | 'validationFrom'>,
  kept?: ReadRasters,
): Promise<(CellDataset | { skipped: string }) & { bytesRead: number }> {
  const pixels = await readAcquisitions(dates, kept);
  if ('skipped' in pixels) return { ...pixels, bytesRead: 0 };
  const { bytesRead } = pixels;
  const images = labelImages(spec, pixels.dates, pairs);
  const patches = makePatches(spec, images, validationFrom);
  if ('skipped' in patches) return { ...patches, bytesRead };
  const { dataset } = patches;
  const scored = imagesToScore(images, dataset.validationImages);
  return { dataset, source: { dates, pairs, scored }, bytesRead };
}
