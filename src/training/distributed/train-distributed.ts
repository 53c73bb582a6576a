/** The distributed mode: one model for all places, at which all nodes that hold some work together. */
import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { chosenEngine } from '../../engines/index.js';
import type { JobContext } from '../../jobs/index.js';
import { counted } from '../../plural.js';
import { parseFilter, rawUnlessAsked, searchTiles } from '../../query/index.js';
import { commonCell, type HeldTile, holdTiles, type Storage } from '../../storage/index.js';
import { version } from '../../version.js';
import type { TrainedPixels } from '../data/trained-pixels.js';
import { commonPixels, filesOf, groupByPlace, type Place, trainedPixels } from '../data/training-cells.js';
import { severalCollections, unlikeEngines } from '../errors.js';
import type { TrainPart } from '../jobs/merge-results.js';
import {
  DEFAULT_SEED,
  modelsOf,
  type TrainContext,
  type TrainInputs,
  validationTime,
} from '../jobs/train-options.js';
import { reasonsOf } from '../jobs/train-results.js';
import { modelNamed } from '../models/builtin-models.js';
import type { ModelSpec } from '../models/model-spec.js';
import { storeModel, type TrainedAbout, unstoredModel } from '../registry/store-model.js';
import { beginningOf, distributedReport, pooledPlaces, trafficOf } from './distributed-report.js';
import type { MemberTask, TrainedTogether } from './rank-messages.js';
import { MemberProcess } from './rank-process.js';
import type { Door, Doors } from './rendezvous.js';

/** What a node says of itself before the ring is made. */
interface Word {
  node: string;
  /** Where it is reached, and where it waits for the member before it; absent where it is alone. */
  url?: string;
  door?: string;
  /** The engine and this program, whose other versions may weight otherwise. */
  engine: string;
  /** Patches for training. Nodes without any are no members. */
  patches: number;
  /** Collections and grids of its places, and what their values are. */
  kinds: string[];
  /** The distinct pixel sizes of the places. */
  pixels: TrainedPixels[];
  /** Names the versions of all tiles that it trains on. */
  data: string;
}

/**
 * The part of this node: reads its places in one process, agrees with the other nodes on who trains, and trains with them. The first
 * member stores the model; then all remove their checkpoints. Throws TW_TRAIN_RING, TW_TRAIN_ENGINES, TW_TRAIN_COLLECTIONS, TW_TRAIN_DIVERGED.
 */
export async function trainDistributed(
  { storage, cores = availableParallelism(), neighbours }: TrainContext,
  inputs: TrainInputs,
  job: JobContext,
): Promise<TrainPart> {
  const [model] = modelsOf(inputs);
  const { epochs = modelNamed(model).epochs, patience, seed = DEFAULT_SEED, store: isStored = true } = inputs;
  const validationFrom = validationTime(inputs);
  const filter = rawUnlessAsked(parseFilter(inputs.filter ?? {}));
  job.message('choosing an engine');
  const engine = await chosenEngine(inputs.engine);
  job.signal.throwIfAborted();

  const results: TrainPart = {
    ...{ engine: engine.name, mode: 'distributed', models: [], skipped: [], failed: [] },
    spreads: {},
  };
  job.partial(() => results);
  const picked = await storage.getTiles(searchTiles(storage.index, filter).ids);
  const places = groupByPlace(picked.filter(job.isMine));
  const count = (done: number) => {
    const { skipped, failed } = results;
    job.progress({ total: places.length, done, skipped: skipped.length, failed: failed.length });
  };

  const node = storage.folder.node.id;
  const door = neighbours?.doors.add();
  const member = new MemberProcess(node, engine.name, cores);
  const end = () => member.end();
  let held: HeldTile | undefined;
  job.signal.addEventListener('abort', end);
  try {
    job.message('reading places');
    const tasks = placeTasks(storage, { model, validationFrom }, places, results);
    // Until the end, when the tiles are read again to score the model.
    held = await holdTiles(
      storage,
      tasks.flatMap(({ place }) => place.tiles.map((tile) => ({ tile, groups: tile.groups }))),
    );
    if (held.fetched > 0) results.bytesFetched = held.fetched;
    const { used, patches } = await readPlaces(member, model, tasks, results);
    count(0);
    for (const reason of reasonsOf(results, [model])) job.log('warning', `skipped ${reason}`);
    const words = await job.meet<Word>({
      ...{ node, engine: `${engine.name} ${engine.version}, tilewright ${version}`, patches },
      ...{ kinds: kindsOf(used, modelNamed(model)), pixels: pixelsOf(used, modelNamed(model)) },
      ...{ data: digest(used.map(versionsOf)) },
      ...(neighbours && door && { url: neighbours.url, door: door.id }),
    });
    const members = words.filter((word) => word.patches > 0);
    requireAlike(members);
    const index = members.findIndex((one) => one.node === node);
    if (index >= 0) {
      job.message(`training ${model} with ${engine.name}, ${counted(members.length, 'node')}`);
      job.log(
        'info',
        `${counted(used.length, 'place')}, ${counted(patches, 'patch', 'patches')}, engine ${engine.name}`,
      );
      const next = members[(index + 1) % members.length];
      const links =
        neighbours && door && members.length > 1
          ? await linksOf(next, neighbours.doors, door, job.signal)
          : undefined;
      const names = members.map((one) => one.node);
      // A job that stores nothing measures a whole training, and leaves the checkpoints of others alone.
      const own = isStored ? [] : [job.id];
      const task = digest([
        version,
        model,
        seed,
        epochs,
        patience,
        validationFrom,
        members.map(shaping),
        ...own,
      ]);
      const checkpoint = { folder: await storage.keptScratch(task), task };
      const trained = await member.train(
        { index, members: names, seed, epochs, patience, checkpoint },
        links,
        {
          onBegin: (beginning) => {
            if (index === 0) job.log('info', beginningOf(beginning));
          },
          onEpoch: ({ epoch }) => job.progress({ share: epoch / epochs }),
        },
      );
      if (index === 0) {
        const site = siteOf(used[0], trained);
        const pooled = pooledPlaces(trained);
        const about: TrainedAbout = {
          ...{ mode: 'distributed', model, filter, engine, seed, job: job.id },
          ...commonPixels(members.flatMap((one) => one.pixels)),
          distributed: distributedReport(trained, names, words.length),
        };
        const { model: stored, spread } = isStored
          ? await storeModel(storage, site, pooled, about)
          : unstoredModel(site, pooled, about);
        results.models.push(stored);
        results.spreads[stored.id] = spread;
        job.log('info', trafficOf(stored.distributed!));
      }
      await member.leave();
      await storage.removeScratch(checkpoint.folder);
      count(used.length);
    }
  } catch (error) {
    job.signal.throwIfAborted();
    throw error;
  } finally {
    job.signal.removeEventListener('abort', end);
    door?.close();
    member.end();
    held?.release();
  }
  return results;
}

type Task = MemberTask['places'][number];

/** The places that have the files that a model needs. The others go to the results. */
function placeTasks(
  storage: Storage,
  { model, validationFrom }: { model: string; validationFrom?: number },
  places: Place[],
  results: TrainPart,
): { place: Place; task: Task }[] {
  return places.flatMap((place) => {
    const { collection, geocode } = place;
    const files = filesOf(storage, modelNamed(model), place);
    if ('skipped' in files) {
      results.skipped.push({ geocode, model, reason: files.skipped });
      return [];
    }
    const tiles = place.tiles.map(({ id, version, start }) => ({ id, version, start }));
    return [{ place, task: { id: `${collection} ${geocode}`, geocode, tiles, ...files, validationFrom } }];
  });
}

/** The places that can be trained on. The others go to the results. */
async function readPlaces(
  member: MemberProcess,
  model: string,
  tasks: { place: Place; task: Task }[],
  results: TrainPart,
): Promise<{ used: Place[]; patches: number }> {
  const named = new Map(tasks.map(({ place, task }) => [task.id, place]));
  const { usable, patches, skipped, failed } = await member.read({
    model,
    places: tasks.map(({ task }) => task),
  });
  const geocodeOf = (id: string) => named.get(id)!.geocode;
  results.skipped.push(...skipped.map(({ id, reason }) => ({ geocode: geocodeOf(id), model, reason })));
  results.failed.push(...failed.map(({ id, ...error }) => ({ geocode: geocodeOf(id), model, ...error })));
  return { used: usable.map((id) => named.get(id)!), patches };
}

const kindsOf = (places: Place[], spec: ModelSpec) => [
  ...new Set(
    places.map((place) => {
      const { values } = trainedPixels(spec, place);
      const { collection, grid } = place;
      return values === 'reflectance' ? `${collection} (${grid})` : `${collection} (${grid}, ${values})`;
    }),
  ),
];

function pixelsOf(places: Place[], spec: ModelSpec): TrainedPixels[] {
  const pixels = places.map((place) => commonPixels([trainedPixels(spec, place)]));
  return [...new Map(pixels.map((one) => [JSON.stringify(one), one])).values()];
}

const versionsOf = ({ tiles }: Place) => tiles.map(({ id, version }) => [id, version]);

/** What of a member shapes the result. */
const shaping = ({ node, engine, data }: Word) => [node, engine, data];

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32);
}

function requireAlike(members: Word[]): void {
  const kinds = [...new Set(members.flatMap((member) => member.kinds))];
  if (kinds.length > 1) throw severalCollections(kinds.sort().join(', '));
  if (new Set(members.map(({ engine }) => engine)).size > 1)
    throw unlikeEngines(members.map(({ node, engine }) => `${node}: ${engine}`).join(', '));
}

/** The connections to the members before and after this one. */
async function linksOf({ node, url, door: to }: Word, doors: Doors, own: Door, signal: AbortSignal) {
  const reached = doors.reach({ node, url: url! }, to!);
  try {
    const [previous, next] = await Promise.race([Promise.all([own.visitor, reached]), aborted(signal)]);
    return { previous, next };
  } catch (error) {
    reached.then(
      (socket) => socket.destroy(),
      () => undefined,
    );
    throw error;
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/** The smallest cell that contains all places, with their tiles. */
function siteOf({ collection, grid }: Place, { members }: TrainedTogether) {
  const places = members.flatMap((member) => member.places);
  const geocode = commonCell(places.map((place) => place.geocode));
  return { collection, grid, geocode, tiles: places.flatMap((place) => place.tiles) };
}
