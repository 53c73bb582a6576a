/**
 * Curriculum: the most typical cell of each cluster (its representative, called seed here) trains first, and the other cells start
 * from its model. All nodes of a job agree on the seeds and wait for them.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobContext } from '../../jobs/index.js';
import { type ModelVersionRecord, type Storage, versionNamed } from '../../storage/index.js';
import type { TextureIndex } from '../texture/index.js';

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
 * Returns a predicate for the cells that train next: for each cluster, collection and kind of model without a seed so far, the cell
 * nearest to the centre among those that any node offers. Undefined if no node offers any.
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
    if (key !== undefined && !seeded.has(key)) add(own, key, { ...one, fromCentre: fromCentre! });
  }
  const all: Seeds = {};
  for (const offer of await allGather(own))
    for (const [key, seed] of Object.entries(offer)) add(all, key, seed);
  const chosen = new Set(Object.values(all).map(nameOf));
  return chosen.size === 0 ? undefined : (one) => chosen.has(nameOf(one));
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

function add(seeds: Seeds, key: string, seed: Seeds[string]): void {
  const known = seeds[key];
  const isNearer =
    !known ||
    seed.fromCentre < known.fromCentre ||
    (seed.fromCentre === known.fromCentre && seed.geocode < known.geocode);
  if (isNearer) seeds[key] = seed;
}

const nameOf = ({ model, collection, geocode }: CellModel) => `${model} ${collection} ${geocode}`;
