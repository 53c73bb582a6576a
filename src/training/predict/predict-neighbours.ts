/** The tiles around a tile that its prediction reads, and the models that are blended at its borders. */
import { findNeighbourTiles } from '../../derive/index.js';
import { gridByName, type PixelGrid } from '../../grid/index.js';
import type { TileFinder } from '../../query/index.js';
import {
  type ModelVersionRecord,
  modelDamaged,
  type Storage,
  storeCorrupt,
  storeLost,
  type TileRecord,
} from '../../storage/index.js';
import { acquisitionFiles, type BandValueKind, bandValueKinds, coarsestGroup } from '../data/index.js';
import type { ModelFiles, TileHalo, TileNeighbour } from '../halo/index.js';
import { haloWidth } from '../inference/index.js';
import { getModelSpec, type ModelSpec } from '../models/index.js';
import type { CardSummary } from '../registry/index.js';
import { planHaloDates } from './predict-prior-dates.js';

export interface NeighbourContext {
  storage: Storage;
  finder: TileFinder;
  /** Returns the model that maps a tile; undefined if none does. */
  modelOf(tile: TileRecord): Promise<ModelVersionRecord | undefined>;
  /** Returns the files of a model; undefined if they are damaged. */
  filesOf(model: ModelVersionRecord): Promise<ModelFiles | undefined>;
}

/** How the model of a tile reads it. */
interface ReadAs {
  spec: ModelSpec;
  /** Group whose pixel size the model reads, and the size of the tile at it. */
  group: string;
  size: PixelGrid;
  values: BandValueKind;
  /** True if it is a model of cloud removal that reads other dates. */
  readsPrior?: boolean;
}

interface PlannedHalo {
  halo: TileHalo;
  tiles: TileRecord[];
  /** Identifies the blended models. */
  models: string;
  /** True if tiles may be missing, because no node answered for them, or if a model of a neighbour is damaged. */
  isPartial: boolean;
}

/** Finds the neighbours of a tile in its scene. Tiles that cannot be read in the same way are left out. */
export async function planHalo(
  context: NeighbourContext,
  tile: TileRecord,
  as: ReadAs,
): Promise<PlannedHalo> {
  const { storage, finder } = context;
  const { width, height } = as.size;
  const reach = Math.min(haloWidth(as.spec), width, height);
  const found = await findNeighbourTiles(finder, tile, as.size, reach);
  const neighbours: TileNeighbour[] = [];
  const tiles: TileRecord[] = [];
  const models: string[] = [];
  let isPartial = found.unanswered > 0;
  let { readsPrior = false } = as;
  for (const { tile: other, east, south } of found.tiles) {
    // If the halo is as wide as the tile, rounding errors can add cells beyond those around it.
    if (Math.abs(east) > 1 || Math.abs(south) > 1) continue;
    const { inputs } = as.spec;
    const size = other.groups.find(({ role, name }) => role === 'data' && name === as.group);
    const date = acquisitionFiles(storage, inputs, other);
    const coarsest = coarsestGroup(inputs, other);
    if (!size || !date || !coarsest || coarsest.width < size.width || coarsest.height < size.height) continue;
    if (bandValueKinds(inputs, [other]).some((kind) => kind !== as.values)) continue;
    const chosen = await context.modelOf(other);
    const model = chosen && isReadAs(chosen, as) ? chosen : undefined;
    const files = model && (await context.filesOf(model));
    if (model && files) {
      models.push(`${model.id} ${model.version}`);
      readsPrior ||= hasPrior(model);
    } else if (model) isPartial = true;
    tiles.push(other);
    neighbours.push({
      ...{ east, south, date, size: { width: size.width, height: size.height } },
      ...(files && { model: files }),
    });
  }
  const dates = readsPrior ? await planHaloDates(context, as.spec, [tile, ...tiles]) : undefined;
  return {
    halo: {
      origin: originOf(tile, as.size),
      neighbours: neighbours.map((one, i) => ({ ...one, ...(dates && { dates: dates.cells[i + 1] }) })),
      ...(dates && { dates: dates.cells[0] }),
    },
    tiles: [...tiles, ...(dates?.tiles ?? [])],
    models: models.join('\n'),
    isPartial: isPartial || (dates?.isPartial ?? false),
  };
}

/** True for models of cloud removal that read other dates: those of older versions, whose cards have no held-out ground, do not. */
export function hasPrior({ model, card }: ModelVersionRecord): boolean {
  const { holdOut, distributed } = card as CardSummary;
  const isCloudRemoval = getModelSpec(model).target.kind === 'clear';
  return isCloudRemoval && (holdOut ?? distributed?.places[0]?.holdOut) !== undefined;
}

/** True if a model reads pixels of the same size and kind. Models of older versions have no pixel size. */
function isReadAs({ card }: ModelVersionRecord, { group, values }: ReadAs): boolean {
  const { pixelSize, values: own = 'reflectance' } = card as CardSummary;
  return own === values && (pixelSize?.group ?? group) === group;
}

/** Fetches the files of a model. Throws the errors of `ensureFile`. */
export async function modelFiles(
  { models }: Pick<Storage, 'models'>,
  model: ModelVersionRecord,
): Promise<ModelFiles> {
  return {
    topology: await models.ensureFile(model, 'model.json'),
    weights: await models.ensureFile(model, 'weights.bin'),
  };
}

/** Errors of the files of one model. Others, such as those of a store that does not answer, concern all models. */
const UNUSABLE = [modelDamaged, storeLost, storeCorrupt];

/** Returns a function that fetches and verifies the files of models, once for each model. */
export function verifiedModelFiles({ models }: Pick<Storage, 'models'>): NeighbourContext['filesOf'] {
  const known = new Map<string, Promise<ModelFiles | undefined>>();
  const verify = async (model: ModelVersionRecord) => {
    try {
      await models.readFile(model, 'model.json');
      await models.readFile(model, 'weights.bin');
      return await modelFiles({ models }, model);
    } catch (error) {
      if (UNUSABLE.some((one) => one.is(error))) return undefined;
      throw error;
    }
  };
  return (model) => {
    const key = `${model.id} ${model.version}`;
    const files = known.get(key) ?? verify(model);
    known.set(key, files);
    return files;
  };
}

/** Returns the position of the north-western pixel of a tile among the pixels of its grid, if all cells had the same number of pixels. */
function originOf({ grid: name, geocode }: TileRecord, { width, height }: PixelGrid) {
  const grid = gridByName(name);
  const { west, north } = grid.bounds(geocode);
  const cell = grid.cellSize(geocode.length);
  return {
    column: Math.round((west - grid.extent.west) / cell.width) * width,
    row: Math.round((grid.extent.north - north) / cell.height) * height,
  };
}
