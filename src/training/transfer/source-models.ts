/** Which models of other places a place may start from. */
import type { JobContext } from '../../jobs/index.js';
import { plural } from '../../plural.js';
import { randomStream } from '../../random.js';
import { bestVersion, type ModelVersionRecord, type Storage, versionsOf } from '../../storage/index.js';
import type { TrainingCell } from '../data/training-cells.js';
import type { CardSummary } from '../registry/model-card.js';
import type { TextureIndex } from '../texture/texture-index.js';
import type { TransferPolicy } from './transfer-policy.js';

/** A model that a place may start from. */
export interface SourceModel {
  model: ModelVersionRecord;
  /** Between the places, as `TextureIndex` has it. */
  distance: number;
}

/** What is found for a place: at least one parent, the best first, or why there is none. */
export type SourceModelSearch = { parents: SourceModel[] } | { none: string };
export type SourceModelFinder = (
  place: Pick<TrainingCell, 'collection' | 'geocode'>,
) => Promise<SourceModelSearch>;

/** Places that are tried, the next where the model of one cannot be taken. */
const MAX_SOURCES_TRIED = 4;
/** Places that are probed: the nearest, and the nearest of other clusters. */
const NEAREST_PROBED = 4;
const MAX_PROBED = 8;

/** The best version for its place alone of each model of some kinds, where it is better than the mean of its training; none of the job itself. */
export async function availableSourceModels(
  storage: Pick<Storage, 'scanModels'>,
  kinds: string[],
  { id: except, log }: Pick<JobContext, 'id' | 'log'>,
): Promise<ModelVersionRecord[]> {
  const found: ModelVersionRecord[] = [];
  let older = 0;
  for await (const { record, error } of storage.scanModels()) {
    if (error) {
      log('warning', `no place starts from a model whose record is damaged: ${error.message}`);
      continue;
    }
    if (!kinds.includes(record.model)) continue;
    const perPlace = versionsOf(record).filter(({ card }) => {
      const { job, mode } = card as CardSummary;
      return job !== except && mode !== 'distributed';
    });
    const versions = perPlace.filter(({ card }) => (card as CardSummary).holdOut);
    if (perPlace.length > 0 && versions.length === 0) older++;
    const best = versions.length > 0 ? bestVersion(versions) : undefined;
    if (best && isUsableSource(best)) found.push(best);
  }
  if (older > 0)
    log(
      'warning',
      `${plural(older, 'model')} of an older version cannot be started from, because their training ground may touch the held-out ground of other places; train them again`,
    );
  return found;
}

/** One that is worse than the mean has learned nothing. */
export function isUsableSource({ card }: ModelVersionRecord): boolean {
  const { metrics, baseline } = card as CardSummary;
  return metrics.validation.mse < baseline.mean.mse;
}

/** Finds parents among some models of one kind. The same for the same models, textures and seed. */
export function sourceModelFinder(
  textures: TextureIndex,
  models: ModelVersionRecord[],
  policy: Exclude<TransferPolicy, 'none'>,
  seed: number,
): SourceModelFinder {
  const byPlace = new Map(models.map((model) => [keyOf(model), model]));
  return async ({ collection, geocode }) => {
    const own = await textures.clusterMembership(collection, geocode);
    if (!own) return { none: 'it is not known what it looks like; "tilewright texture" computes that' };
    if (policy !== 'probe' && own.cluster === undefined)
      return { none: 'its collection has no clusters; "tilewright texture" finds them' };
    // The held-out ground of cells of other sizes may overlap the training ground of this one.
    const isAlike = (place: { geocode: string }) => place.geocode.length === geocode.length;
    const nearest: Nearest = async (count, fits) => {
      const found = await textures.nearest(
        collection,
        geocode,
        count,
        (place) =>
          isAlike(place) && fits(place) && byPlace.has(keyOf({ collection, geocode: place.geocode })),
      );
      // Undefined where the collection was deleted meanwhile.
      return (found?.similar ?? []).map((place) => ({ ...place, model: byPlace.get(keyOf(place))! }));
    };
    const drawOther = async () => {
      const others = (await textures.places(collection)).filter(
        (place) =>
          isAlike(place) && place.cluster !== own.cluster && byPlace.has(keyOf({ collection, ...place })),
      );
      return others[Math.floor(randomStream(seed + hash(geocode)).next() * others.length)]?.geocode;
    };
    const parents = await CHOICES[policy].choose(nearest, own.cluster, drawOther);
    if (parents.length > 0) return { parents };
    if (policy !== 'similar') return { none: CHOICES[policy].none };
    const mates = await textures.nearest(collection, geocode, 1, ({ cluster }) => cluster === own.cluster);
    return { none: mates?.similar.length ? CHOICES.similar.none : 'no other place is in its cluster' };
  };
}

const keyOf = ({ collection, geocode }: { collection: string; geocode: string }) =>
  `${collection} ${geocode}`;

type FoundSourceModel = SourceModel & { geocode: string; cluster?: number };
type Nearest = (
  count: number,
  fits: (place: { geocode: string; cluster?: number }) => boolean,
) => Promise<FoundSourceModel[]>;

const CHOICES: Record<
  Exclude<TransferPolicy, 'none'>,
  {
    choose: (
      nearest: Nearest,
      cluster: number | undefined,
      drawOther: () => Promise<string | undefined>,
    ) => Promise<FoundSourceModel[]>;
    /** Where nothing is found. */
    none: string;
  }
> = {
  similar: {
    choose: (nearest, cluster) => nearest(MAX_SOURCES_TRIED, (place) => place.cluster === cluster),
    none: 'no other place of its cluster has a model that is of use (--representatives-first trains one first)',
  },
  random: {
    async choose(nearest, _, drawOther) {
      const drawn = await drawOther();
      return nearest(1, ({ geocode }) => geocode === drawn);
    },
    none: 'no place of another cluster has a model that is of use',
  },
  probe: {
    async choose(nearest) {
      const found = await nearest(NEAREST_PROBED, () => true);
      while (found.length < MAX_PROBED) {
        const [next] = await nearest(1, ({ cluster }) => !found.some((one) => one.cluster === cluster));
        if (!next) break;
        found.push(next);
      }
      return found;
    },
    none: 'no other place has a model that is of use (--representatives-first trains some first)',
  },
};

function hash(text: string): number {
  return [...text].reduce((sum, character) => (Math.imul(sum, 31) + character.charCodeAt(0)) | 0, 0);
}
