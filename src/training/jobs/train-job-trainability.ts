/** Checks whether a cell has enough patches to be trained, before a process is started for it. */
import { readRaster } from '../../raster/index.js';
import { type GroupRecord, pinTiles, type Storage } from '../../storage/index.js';
import {
  type AcquisitionFiles,
  type AcquisitionPixels,
  clearMask,
  coarsenMask,
  coarsestGroup,
  type DatePair,
  differInSize,
  type TrainingCell,
  trainingFiles,
} from '../data/index.js';
import { getModelSpec, type ModelSpec, requiredBands } from '../models/index.js';
import { type LabelledImage, labelImages, tooFewPatches } from '../patches/index.js';

/**
 * Returns the reason why a model cannot be trained at a cell, from masks only; undefined if none is found. Throws the TW_STORE_ and
 * TW_RASTER_ errors.
 */
export async function reasonNotTrainable(
  storage: Storage,
  model: string,
  cell: TrainingCell,
  validationFrom: number | undefined,
): Promise<string | undefined> {
  const spec = getModelSpec(model);
  const files = trainingFiles(storage, spec, cell);
  if ('skipped' in files) return files.skipped;
  const masks = ({ role }: GroupRecord) => role === 'mask';
  const held = await pinTiles(
    storage,
    cell.tiles.map((tile) => ({ tile, groups: tile.groups.filter(masks) })),
  );
  try {
    return await reasonNotTrainableByMasks(storage, spec, cell, { ...files, validationFrom });
  } finally {
    held.release();
  }
}

/**
 * Like `reasonNotTrainable`, for a cell that has the bands, and whose masks are on this node. Bands may have more gaps than their mask,
 * which reduces the patches: a cell that is rejected here is unsuitable, but the process that reads the bands may reject a cell that
 * passes. Throws the TW_RASTER_ errors.
 */
export async function reasonNotTrainableByMasks(
  storage: Pick<Storage, 'tilePath'>,
  spec: ModelSpec,
  { tiles }: Pick<TrainingCell, 'tiles'>,
  {
    dates,
    pairs,
    validationFrom,
  }: { dates: AcquisitionFiles[]; pairs?: DatePair[]; validationFrom?: number },
): Promise<string | undefined> {
  const tileOf = new Map(tiles.map((tile) => [storage.tilePath(tile, 'mask'), tile]));
  const sizes = dates.map(({ mask }) => coarsestGroup(requiredBands(spec), tileOf.get(mask)!)!);
  for (const size of sizes) {
    const differing = differInSize(sizes[0], size);
    if (differing !== undefined) return differing;
  }
  const [{ width, height }] = sizes;
  const pixels: AcquisitionPixels[] = [];
  for (const { time, mask } of dates) {
    const { header, bands } = await readRaster(mask, [0]);
    pixels.push({ time, width, height, bands: {}, mask: coarsenMask(bands[0], header, { width, height }) });
  }
  return tooFewPatches(spec, masksAsImages(spec, pixels, pairs), validationFrom);
}

/** Returns images like `labelImages`, from masks only: a pixel counts unless its mask code excludes it. */
function masksAsImages(spec: ModelSpec, dates: AcquisitionPixels[], pairs: DatePair[] = []): LabelledImage[] {
  const withoutPrior = pairs.map(({ cloudy, clear }) => ({ cloudy, clear }));
  if (spec.target.kind === 'clear') return labelImages({ ...spec, inputs: [] }, dates, withoutPrior);
  return dates.map((date) => {
    const usable = clearMask(date, []);
    return { ...date, inputs: [], targets: [], inputMask: usable, targetMask: usable };
  });
}
