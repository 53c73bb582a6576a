/** Models of other cells from which the cells of a job start: how they are found, recorded, and trained first. */

import { setTimeout as sleep } from 'node:timers/promises';
import { TilewrightError } from '../errors.js';
import type { JobContext } from '../jobs/index.js';
import {
  bestVersion,
  type ModelVersionRecord,
  type Storage,
  versionNamed,
  versionsOf,
} from '../storage/index.js';
import { randomStream } from '../utils/random.js';
import { plural } from '../utils/text.js';
import type { TrainingCell } from './cells.js';
import type { HeldOutDates } from './hold-out.js';
import type { FreezingSchedule } from './learner.js';
import {
  type CardSummary,
  type TrainingMode,
  type TransferPolicy,
  type TransferProvenance,
  trainedOn,
  trainingDates,
} from './model-card.js';
import type { TextureIndex } from './texture/texture-index.js';
import type { SourceModelFiles, WarmStartOptions, WarmStartResult } from './warm-start.js';

/** A model that a cell may start from. */
export interface SourceModel {
  model: ModelVersionRecord;
  /** Texture distance between the cells, as in `TextureIndex`. */
  distance: number;
}

/** At least one parent, the best first; or the reason why no parent is usable. */
type SourceModelSearch = { parents: SourceModel[] } | { none: string };
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
 * Returns, for each model of these kinds, its best version if it beats the mean on the selection patches. Versions of this job and of some
 * modes are excluded.
 */
export async function availableSourceModels(
  storage: { models: Pick<Storage['models'], 'scanAll'> },
  kinds: string[],
  { id: except, log }: Pick<JobContext, 'id' | 'log'>,
  {
    excludedModes = MODES_OF_MANY_CELLS,
    heldOut,
  }: { excludedModes?: readonly TrainingMode[]; heldOut?: HeldOutDates | undefined } = {},
): Promise<ModelVersionRecord[]> {
  const found: ModelVersionRecord[] = [];
  let older = 0;
  let leaking = 0;
  let regional = 0;
  for await (const { record, error } of storage.models.scanAll()) {
    if (error) {
      log('warning', `a model whose record is damaged is not used: ${error.message}`);
      continue;
    }
    if (!kinds.includes(record.model)) continue;
    const all = versionsOf(record).filter(({ card }) => (card as CardSummary).job !== except);
    const perCell = all.filter(({ card }) => !excludedModes.includes((card as CardSummary).mode));
    if (perCell.length === 0 && all.some(({ card }) => (card as CardSummary).mode === 'regional')) regional++;
    const split = perCell.filter(({ card }) => (card as CardSummary).holdOut);
    if (perCell.length > 0 && split.length === 0) older++;
    const versions = split.filter(
      ({ card }) => !heldOut || trainedOn(card as CardSummary, heldOut) === undefined,
    );
    if (split.length > 0 && versions.length === 0) leaking++;
    const best = versions.length > 0 ? bestVersion(versions) : undefined;
    if (best && isUsableSource(best)) found.push(best);
  }
  if (leaking > 0)
    log(
      'warning',
      `${plural(leaking, 'model')} cannot be used, because dates that this training holds out were in their training`,
    );
  if (regional > 0)
    log(
      'warning',
      `${plural(regional, 'model')} of a region cannot be used at other places, because they have learned from ground that those hold out; train models of single places with --mode partitioned`,
    );
  if (older > 0)
    log(
      'warning',
      `${plural(older, 'model')} of an older version cannot be used at other places, because their training ground may touch the held-out ground of other places; train them again`,
    );
  return found;
}

/** A model that is not better than the mean has learned nothing. Selection patches decide, because validation patches only report. */
export function isUsableSource({ card }: ModelVersionRecord): boolean {
  const { selection } = card as CardSummary;
  return selection !== undefined && selection.mse < selection.mean;
}

/** Finds parents among models of one kind. The result is the same for the same models, textures and seed. */
export function sourceModelFinder(
  textures: TextureIndex,
  models: ModelVersionRecord[],
  policy: Exclude<TransferPolicy, 'none'>,
  seed: number,
): SourceModelFinder {
  const byCell = new Map(models.map((model) => [cellKey(model), model]));
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
        (cell) => isAlike(cell) && fits(cell) && byCell.has(cellKey({ collection, geocode: cell.geocode })),
      );
      // Undefined if the collection has been deleted in the meantime.
      return (found?.similar ?? []).map((cell) => ({ ...cell, model: byCell.get(cellKey(cell))! }));
    };
    const choose: Record<typeof policy, () => Promise<FoundSourceModel[]>> = {
      similar: () => nearest(MAX_SOURCES_TRIED, ({ cluster }) => cluster === own.cluster),
      async random() {
        const others = (await textures.cells(collection)).filter(
          (cell) =>
            isAlike(cell) && cell.cluster !== own.cluster && byCell.has(cellKey({ collection, ...cell })),
        );
        const drawn = others[Math.floor(randomStream(seed + textHash(geocode)).next() * others.length)];
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

const cellKey = ({ collection, geocode }: { collection: string; geocode: string }) =>
  `${collection} ${geocode}`;

type FoundSourceModel = SourceModel & { geocode: string; cluster?: number };

const REASONS_WITHOUT_SOURCE = {
  similar: 'no other place of the cluster has a usable model (--representatives-first trains one first)',
  random: 'no place of another cluster has a usable model',
  probe: 'no other place has a usable model (--representatives-first trains some first)',
};

function textHash(text: string): number {
  return [...text].reduce((sum, character) => (Math.imul(sum, 31) + character.charCodeAt(0)) | 0, 0);
}

/** How the cells of a job find the models that they start from. */
export interface TransferPlan {
  policy: Exclude<TransferPolicy, 'none'>;
  fineTuning: FreezingSchedule;
  /** Finders by kind of model. */
  finders: ReadonlyMap<string, SourceModelFinder>;
}

/** Source models of one cell: for the process that trains it, and for the provenance. */
export interface SourceCandidates {
  start?: WarmStartOptions;
  found: SourceModelSearch;
  refused: NonNullable<WarmStartResult['refused']>;
}

/** Finds the models that a cell may start from, and fetches their files. Throws temporary errors (503). */
export async function findSources(
  storage: Storage,
  { policy, finders }: TransferPlan,
  kind: string,
  cell: TrainingCell,
): Promise<SourceCandidates> {
  const found = await finders.get(kind)!(cell);
  if ('none' in found) return { found, refused: [] };
  const parents: SourceModelFiles[] = [];
  const refused: SourceCandidates['refused'] = [];
  for (const { model } of found.parents) {
    const { id } = model;
    try {
      parents.push(await sourceModelFiles(storage, model));
    } catch (error) {
      if (!(error instanceof TilewrightError) || error.status === 503) throw error;
      refused.push({ id, reason: error.message });
    }
  }
  return { found, refused, start: { parents, probe: policy === 'probe' } };
}

/** Fetches the files of a model. Throws the errors of `ensureFile`. */
export async function sourceModelFiles(
  storage: Storage,
  model: ModelVersionRecord,
): Promise<SourceModelFiles> {
  const { id, version } = model;
  const topology = await storage.models.ensureFile(model, 'model.json');
  return { id, version, topology, weights: await storage.models.ensureFile(model, 'weights.bin') };
}

/** Returns the provenance and the id of the parent. `start`: the result of the training process. */
export function transferProvenance(
  { policy, fineTuning }: TransferPlan,
  { found, refused: unread }: SourceCandidates,
  start: WarmStartResult = {},
): { parent: string | null; transfer: TransferProvenance } {
  const plan = { policy, fineTuning };
  if ('none' in found) return { parent: null, transfer: { ...plan, fresh: found.none } };
  const refused = [...unread, ...(start.refused ?? [])];
  const details = { ...(start.probed && { probed: start.probed }), ...(refused.length > 0 && { refused }) };
  const parent = found.parents.find(({ model }) => model.id === start.parent?.id);
  if (!parent) {
    const fresh = start.probed
      ? `none of ${plural(start.probed.length - 1, 'probed model')} is better on it than a fresh one`
      : refused.map(({ id, reason }) => `${id}: ${reason}`).join('; ');
    return { parent: null, transfer: { ...plan, fresh, ...details } };
  }
  const { id, version, card } = parent.model;
  const dates = trainingDates(card as CardSummary);
  return { parent: id, transfer: { ...plan, version, dates, distance: parent.distance, ...details } };
}

/** A model that is or will be trained, by kind and cell. */
export interface CellModel {
  model: string;
  collection: string;
  geocode: string;
}

/** The seed of each cluster, collection and kind of model among the cells of one node or of all nodes. */
type Seeds = Record<string, CellModel & { fromCentre: number }>;

/** Maximum time to wait for a model that another node has stored. */
const MODEL_ARRIVAL_TIMEOUT_MS = 30_000;
const POLL_INTERVAL_MS = 100;

/**
 * Elects the cells that train first: the most typical cell of each cluster, called its seed, trains before the cells that start from its
 * model. Returns a predicate for the cells that train next: for each cluster, collection and kind of model without a seed so far, the cell
 * nearest to the centre among those that any node offers. Undefined if no node offers any. All nodes of a job agree on the seeds.
 */
export async function electClusterSeeds(
  textures: TextureIndex,
  offered: CellModel[],
  seeds: CellModel[],
  { allGather }: Pick<JobContext, 'allGather'>,
): Promise<((one: CellModel) => boolean) | undefined> {
  const clusterOf = async ({ model, collection, geocode }: CellModel) => {
    const { cluster, fromCentre } = (await textures.clusterMembership(collection, geocode)) ?? {};
    return { key: cluster === undefined ? undefined : `${model} ${cluster} ${collection}`, fromCentre };
  };
  const seeded = new Set(await Promise.all(seeds.map(async (seed) => (await clusterOf(seed)).key)));
  const own: Seeds = {};
  for (const { model, collection, geocode } of offered) {
    const one = { model, collection, geocode };
    const { key, fromCentre } = await clusterOf(one);
    if (key !== undefined && !seeded.has(key)) keepNearest(own, key, { ...one, fromCentre: fromCentre! });
  }
  const all: Seeds = {};
  for (const offer of await allGather(own))
    for (const [key, seed] of Object.entries(offer)) keepNearest(all, key, seed);
  const chosen = new Set(Object.values(all).map(cellModelKey));
  return chosen.size === 0 ? undefined : (one) => chosen.has(cellModelKey(one));
}

/** Returns the models of all seeds, including those of other nodes, as soon as they have arrived. */
export async function awaitSeedModels(
  storage: { models: Pick<Storage['models'], 'get'> },
  own: { id: string; version: string }[],
  { allGather, log, signal }: Pick<JobContext, 'allGather' | 'log' | 'signal'>,
): Promise<ModelVersionRecord[]> {
  const seeds = (await allGather(own)).flat();
  // A model that this node stored and that is missing has been deleted.
  const isOwn = (id: string) => own.some((one) => one.id === id);
  const until = performance.now() + MODEL_ARRIVAL_TIMEOUT_MS;
  const arrived: ModelVersionRecord[] = [];
  for (const { id, version } of seeds) {
    for (;;) {
      const record = await storage.models.get(id);
      const seed = record && versionNamed(record, version);
      if (seed) {
        arrived.push(seed);
        break;
      }
      if (isOwn(id) || performance.now() > until) {
        log('warning', `no place starts from ${id}: its version ${version} is not on this node`);
        break;
      }
      await sleep(POLL_INTERVAL_MS, undefined, { signal });
    }
  }
  return arrived;
}

function keepNearest(seeds: Seeds, key: string, seed: Seeds[string]): void {
  const known = seeds[key];
  const isNearer =
    !known ||
    seed.fromCentre < known.fromCentre ||
    (seed.fromCentre === known.fromCentre && seed.geocode < known.geocode);
  if (isNearer) seeds[key] = seed;
}

const cellModelKey = ({ model, collection, geocode }: CellModel) => `${model} ${collection} ${geocode}`;
