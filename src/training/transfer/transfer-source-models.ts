/** Finds the models of other cells from which a cell may start. */
import type { JobContext } from '../../jobs/index.js';
import { bestVersion, type ModelVersionRecord, type Storage, versionsOf } from '../../storage/index.js';
import { plural } from '../../utils/plural.js';
import { randomStream } from '../../utils/random.js';
import type { TrainingCell } from '../data/index.js';
import type { CardSummary, TrainingMode, TransferPolicy } from '../registry/index.js';
import type { TextureIndex } from '../texture/index.js';

/** A model that a cell may start from. */
export interface SourceModel {
  model: ModelVersionRecord;
  /** Texture distance between the cells, as in `TextureIndex`. */
  distance: number;
}

/** At least one parent, the best first; or the reason why no parent is usable. */
export type SourceModelSearch = { parents: SourceModel[] } | { none: string };
export type SourceModelFinder = (
  cell: Pick<TrainingCell, 'collection' | 'geocode'>,
) => Promise<SourceModelSearch>;

/** Maximum number of source cells: if the model of one cannot be used, the next is tried. */
const MAX_SOURCES_TRIED = 4;
/** Source cells that are compared: the nearest, and the nearest of other clusters. */
const NEAREST_PROBED = 4;
const MAX_PROBED = 8;

/** Models of these modes have learned from the ground of other cells, which those may hold out. */
const MODES_OF_MANY_CELLS = ['distributed', 'regional'] as const;

/**
 * Returns, for each model of these kinds, its best version if it beats the mean baseline. Versions of this job and of some modes are
 * excluded.
 */
export async function availableSourceModels(
  storage: { models: Pick<Storage['models'], 'scanAll'> },
  kinds: string[],
  { id: except, log }: Pick<JobContext, 'id' | 'log'>,
  excludedModes: readonly TrainingMode[] = MODES_OF_MANY_CELLS,
): Promise<ModelVersionRecord[]> {
  const found: ModelVersionRecord[] = [];
  let older = 0;
  for await (const { record, error } of storage.models.scanAll()) {
    if (error) {
      log('warning', `a model whose record is damaged is not used: ${error.message}`);
      continue;
    }
    if (!kinds.includes(record.model)) continue;
    const perCell = versionsOf(record).filter(({ card }) => {
      const { job, mode } = card as CardSummary;
      return job !== except && !excludedModes.includes(mode);
    });
    const versions = perCell.filter(({ card }) => (card as CardSummary).holdOut);
    if (perCell.length > 0 && versions.length === 0) older++;
    const best = versions.length > 0 ? bestVersion(versions) : undefined;
    if (best && isUsableSource(best)) found.push(best);
  }
  if (older > 0)
    log(
      'warning',
      `${plural(older, 'model')} of an older version cannot be used at other places, because their training ground may touch the held-out ground of other places; train them again`,
    );
  return found;
}

/** A model that is worse than the mean has learned nothing. */
export function isUsableSource({ card }: ModelVersionRecord): boolean {
  const { metrics, baseline } = card as CardSummary;
  return metrics.validation.mse < baseline.mean.mse;
}

/** Finds parents among models of one kind. The result is the same for the same models, textures and seed. */
export function sourceModelFinder(
  textures: TextureIndex,
  models: ModelVersionRecord[],
  policy: Exclude<TransferPolicy, 'none'>,
  seed: number,
): SourceModelFinder {
  const byCell = new Map(models.map((model) => [keyOf(model), model]));
  return async ({ collection, geocode }) => {
    const own = await textures.clusterMembership(collection, geocode);
    if (!own) return { none: 'the texture is unknown; compute it with "tilewright texture"' };
    if (policy !== 'probe' && own.cluster === undefined)
      return { none: 'the collection has no clusters; compute them with "tilewright texture"' };
    // Cells of another size are excluded: their held-out ground may overlap the training ground of this cell.
    const isAlike = (cell: { geocode: string }) => cell.geocode.length === geocode.length;
    const nearest = async (
      count: number,
      fits: (cell: { geocode: string; cluster?: number }) => boolean,
    ): Promise<FoundSourceModel[]> => {
      const found = await textures.nearest(
        collection,
        geocode,
        count,
        (cell) => isAlike(cell) && fits(cell) && byCell.has(keyOf({ collection, geocode: cell.geocode })),
      );
      // Undefined if the collection has been deleted in the meantime.
      return (found?.similar ?? []).map((cell) => ({ ...cell, model: byCell.get(keyOf(cell))! }));
    };
    const choose: Record<typeof policy, () => Promise<FoundSourceModel[]>> = {
      similar: () => nearest(MAX_SOURCES_TRIED, ({ cluster }) => cluster === own.cluster),
      async random() {
        const others = (await textures.cells(collection)).filter(
          (cell) =>
            isAlike(cell) && cell.cluster !== own.cluster && byCell.has(keyOf({ collection, ...cell })),
        );
        const drawn = others[Math.floor(randomStream(seed + hash(geocode)).next() * others.length)];
        return nearest(1, (cell) => cell.geocode === drawn?.geocode);
      },
      async probe() {
        const found = await nearest(NEAREST_PROBED, () => true);
        while (found.length < MAX_PROBED) {
          const [next] = await nearest(1, ({ cluster }) => !found.some((one) => one.cluster === cluster));
          if (!next) break;
          found.push(next);
        }
        return found;
      },
    };
    const parents = await choose[policy]();
    if (parents.length > 0) return { parents };
    if (policy !== 'similar') return { none: REASONS_WITHOUT_SOURCE[policy] };
    const mates = await textures.nearest(collection, geocode, 1, ({ cluster }) => cluster === own.cluster);
    return {
      none: mates?.similar.length ? REASONS_WITHOUT_SOURCE.similar : 'no other place is in the cluster',
    };
  };
}

const keyOf = ({ collection, geocode }: { collection: string; geocode: string }) =>
  `${collection} ${geocode}`;

type FoundSourceModel = SourceModel & { geocode: string; cluster?: number };

const REASONS_WITHOUT_SOURCE = {
  similar: 'no other place of the cluster has a usable model (--representatives-first trains one first)',
  random: 'no place of another cluster has a usable model',
  probe: 'no other place has a usable model (--representatives-first trains some first)',
};

function hash(text: string): number {
  return [...text].reduce((sum, character) => (Math.imul(sum, 31) + character.charCodeAt(0)) | 0, 0);
}
