/** Plans the check of one place: its latest model, and the dates that are newer than those of its training. */
import type { ModelVersionRecord, Storage, TileRecord } from '../../storage/index.js';
import { type AcquisitionFiles, acquisitionFiles, bandValueKinds, type TrainingCell } from '../data/index.js';
import type { DateError } from '../evaluation/index.js';
import { getModelSpec, requiredBands } from '../models/index.js';
import type { CardSummary } from '../registry/index.js';
import type { CheckTask } from './check-task.js';

/** Clocks of satellites, deliveries and servers may differ by this. */
const CLOCK_TOLERANCE_MS = 86_400_000;
/** Dates from which looks are computed cover the cell and have hardly any cloud. */
const CLEAR = { coverage: 95, cloudCover: 5 };

export interface PlannedCheck {
  tiles: TileRecord[];
  /** Errors of the training, from the card. Undefined for models without a truth. */
  known: DateError[] | undefined;
  task: Omit<CheckTask, 'model'>;
}

/**
 * Returns the last date of the data of a model, milliseconds since 1970. Dates that are later than the training itself are wrong, unless
 * all are: then the clock of the server was.
 */
export function trainedUntil({ data, createdAt }: Pick<CardSummary, 'data' | 'createdAt'>): number {
  const times = data.map(({ datetime }) => Date.parse(datetime));
  const possible = times.filter((time) => time <= Date.parse(createdAt) + CLOCK_TOLERANCE_MS);
  return (possible.length > 0 ? possible : times).reduce((a, b) => Math.max(a, b), -Infinity);
}

/** Returns the check, or the reason why the place cannot be judged. `now`: milliseconds since 1970. */
export function planCheck(
  storage: Pick<Storage, 'tilePath'>,
  model: ModelVersionRecord,
  { tiles }: TrainingCell,
  now: number,
): PlannedCheck | { unknown: string } {
  const spec = getModelSpec(model.model);
  const card = model.card as CardSummary;
  const until = trainedUntil(card);
  if (until === -Infinity) return { unknown: 'the card of the model names no date' };
  const newer = tiles.filter(({ start }) => start > until);
  if (newer.length === 0) return { unknown: 'no date is newer than the training' };
  const past = newer.filter(({ start }) => start <= now + CLOCK_TOLERANCE_MS);
  if (past.length === 0) return { unknown: 'the new dates are in the future; check their times' };
  const hasTruth = spec.target.kind !== 'clear';
  if (hasTruth && !card.dateErrors)
    return {
      unknown:
        'the card of the model has no errors of single dates, because an older version of tilewright trained the model; train it again',
    };
  const bands = requiredBands(spec);
  const { values = 'reflectance', pixelSize } = card;
  const usable = (tile: TileRecord) =>
    bandValueKinds(bands, [tile]).every((kind) => kind === values) && (hasTruth || isClear(tile));
  const filesOf = (from: TileRecord[]): { tile: TileRecord; files: AcquisitionFiles }[] =>
    from.filter(usable).flatMap((tile) => {
      const files = acquisitionFiles(storage, bands, tile);
      return files ? [{ tile, files }] : [];
    });
  const fresh = filesOf(past);
  if (fresh.length === 0)
    return {
      unknown: hasTruth
        ? `none of the new dates has ${bands.join(', ')} as ${values}`
        : 'none of the new dates is clear',
    };
  const trained = new Set(card.data.map(({ id }) => id));
  const known = hasTruth ? [] : filesOf(tiles.filter(({ id }) => trained.has(id)));
  if (!hasTruth && known.length < 2)
    return { unknown: 'fewer than 2 clear dates of the training still exist' };
  const { width, height } = pixelSize ?? {};
  return {
    tiles: [...known, ...fresh].map(({ tile }) => tile),
    known: card.dateErrors,
    task: {
      known: known.map(({ files }) => files),
      fresh: fresh.map(({ files }) => files),
      ...(width !== undefined && height !== undefined && { size: { width, height } }),
    },
  };
}

const isClear = ({ coverage, cloudCover }: TileRecord) =>
  coverage >= CLEAR.coverage &&
  cloudCover !== null &&
  cloudCover !== undefined &&
  cloudCover <= CLEAR.cloudCover;
