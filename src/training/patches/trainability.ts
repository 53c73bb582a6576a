/** Checks whether a place has enough patches to be trained, before a process is started for it. */
import { readRaster } from '../../raster/index.js';
import { type GroupRecord, holdTiles, type Storage } from '../../storage/index.js';
import { clearPixels, type DatePixels, isCloudy, readableOf } from '../data/acquisition-pixels.js';
import type { DatePair, PlaceDate } from '../data/acquisitions.js';
import { coarsened, differInSize } from '../data/read-acquisitions.js';
import { coarsestGroup, filesOf, type Place } from '../data/training-cells.js';
import { modelNamed } from '../models/builtin-models.js';
import { bandsOf, type ModelSpec } from '../models/model-spec.js';
import type { Image } from './labelled-images.js';
import { tooFewPatches } from './patches.js';

/** Why a model cannot be trained at a place, without reading a band; undefined if nothing speaks against it. Throws the TW_STORE_ and TW_RASTER_ errors. */
export async function unfit(
  storage: Storage,
  model: string,
  place: Place,
  validationFrom: number | undefined,
): Promise<string | undefined> {
  const spec = modelNamed(model);
  const files = filesOf(storage, spec, place);
  if ('skipped' in files) return files.skipped;
  const masks = ({ role }: GroupRecord) => role === 'mask';
  const held = await holdTiles(
    storage,
    place.tiles.map((tile) => ({ tile, groups: tile.groups.filter(masks) })),
  );
  try {
    return await unfitByMasks(storage, spec, place, { ...files, validationFrom });
  } finally {
    held.release();
  }
}

/**
 * The same of a place whose bands are there, and whose masks are on this node. Bands may have more gaps than their mask, which make the
 * patches fewer: so a place that is unfit here is unfit, and the process that reads the bands may still find one unfit that passes.
 * Throws the TW_RASTER_ errors.
 */
export async function unfitByMasks(
  storage: Pick<Storage, 'tilePath'>,
  spec: ModelSpec,
  { tiles }: Pick<Place, 'tiles'>,
  { dates, pairs, validationFrom }: { dates: PlaceDate[]; pairs?: DatePair[]; validationFrom?: number },
): Promise<string | undefined> {
  const tileOf = new Map(tiles.map((tile) => [storage.tilePath(tile, 'mask'), tile]));
  const sizes = dates.map(({ mask }) => coarsestGroup(bandsOf(spec), tileOf.get(mask)!)!);
  for (const size of sizes) {
    const differing = differInSize(sizes[0], size);
    if (differing !== undefined) return differing;
  }
  const [{ width, height }] = sizes;
  const pixels: DatePixels[] = [];
  for (const { time, mask } of dates) {
    const { header, bands } = await readRaster(mask, [0]);
    pixels.push({ time, width, height, bands: {}, mask: coarsened(bands[0], header, { width, height }) });
  }
  return tooFewPatches(spec, masksAsImages(spec, pixels, pairs), validationFrom);
}

/** What the masks say of the images that `imagesOf` makes: a pixel counts unless the mask speaks against it. */
function masksAsImages(spec: ModelSpec, dates: DatePixels[], pairs: DatePair[] = []): Image[] {
  const withoutBands = { ...spec, inputs: [] };
  const image = (date: DatePixels, counts: Uint8Array): Image => {
    const { time, width, height, mask } = date;
    return {
      ...{ time, width, height, mask, counts },
      inputs: [],
      targets: [],
      readable: readableOf(withoutBands, date),
    };
  };
  if (spec.target.kind !== 'clear') return dates.map((date) => image(date, clearPixels(date, [])));
  return pairs.map(({ cloudy, clear }) => {
    const known = clearPixels(dates[clear], []);
    const counts = readableOf(withoutBands, dates[cloudy]).map((one, at) => one & known[at]);
    return {
      ...image(dates[cloudy], counts),
      time: Math.max(dates[cloudy].time, dates[clear].time),
      cloud: dates[cloudy].mask.map((code) => (isCloudy(code) ? 1 : 0)),
    };
  });
}
