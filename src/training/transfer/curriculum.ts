/**
 * Seeds first: of each cluster the most typical place trains before the others, which then start from its model (curriculum). All nodes of
 * a job agree on the seeds, and wait for them.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobContext } from '../../jobs/index.js';
import { type ModelVersionRecord, type Storage, versionNamed } from '../../storage/index.js';
import type { TextureIndex } from './texture-index.js';

/** A model that is or will be trained, by its kind and place. */
export interface ModelOfPlace {
  model: string;
  collection: string;
  geocode: string;
}

/** The seed of each cluster among the places of one node, or of all. */
type Seeds = Record<string, { geocode: string; fromCentre: number }>;

/** What a node waits for a model that another one has stored, ms. */
const PATIENCE = 30_000;
const PAUSE = 100;

/** Tells the seeds, of which each cluster, collection and kind of model has one at most: the place nearest to the centre. */
export async function agreeOnSeeds(
  textures: TextureIndex,
  own: ModelOfPlace[],
  { meet }: Pick<JobContext, 'meet'>,
): Promise<(one: ModelOfPlace) => boolean> {
  const seeds: Seeds = {};
  const keys = new Map<string, string>();
  for (const one of own) {
    const { cluster, fromCentre } = (await textures.among(one.collection, one.geocode)) ?? {};
    if (cluster === undefined) continue;
    const key = `${one.model} ${cluster} ${one.collection}`;
    keys.set(nameOf(one), key);
    add(seeds, key, { geocode: one.geocode, fromCentre: fromCentre! });
  }
  const all: Seeds = {};
  for (const word of await meet(seeds)) for (const [key, seed] of Object.entries(word)) add(all, key, seed);
  return (one) => all[keys.get(nameOf(one)) ?? '']?.geocode === one.geocode;
}

/** The models of all seeds, those of other nodes as well, as soon as they are here. */
export async function trainedSeeds(
  storage: Pick<Storage, 'getModel'>,
  own: { id: string; version: string }[],
  { meet, log, signal }: Pick<JobContext, 'meet' | 'log' | 'signal'>,
): Promise<ModelVersionRecord[]> {
  const seeds = (await meet(own)).flat();
  const until = performance.now() + PATIENCE;
  const arrived: ModelVersionRecord[] = [];
  for (const { id, version } of seeds) {
    for (;;) {
      const record = await storage.getModel(id);
      const seed = record && versionNamed(record, version);
      if (seed) {
        arrived.push(seed);
        break;
      }
      if (performance.now() > until) {
        log('warning', `no place starts from ${id}: its version ${version} has not come to this node`);
        break;
      }
      await sleep(PAUSE, undefined, { signal });
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

const nameOf = ({ model, collection, geocode }: ModelOfPlace) => `${model} ${geocode} ${collection}`;
