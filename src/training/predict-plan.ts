/** Plans the prediction of one tile by one model: the tiles around it, the other dates that it reads, and the models that are blended. */

import { findNeighbourTiles, type PlannedDerivation } from '../derive/index.js';
import { gridByName, type PixelGrid } from '../grid/index.js';
import { and, createSearch, parseFilter, searchTiles, type TileFinder } from '../query/index.js';
import {
  type ModelVersionRecord,
  modelDamaged,
  modelId,
  type Storage,
  storeCorrupt,
  storeLost,
  type TileRecord,
  type TileSource,
} from '../storage/index.js';
import type { AcquisitionFiles } from './acquisitions.js';
import {
  acquisitionFiles,
  areAlike,
  type BandValueKind,
  bandValueKinds,
  coarsestGroup,
  type TilePixels,
} from './cells.js';
import { datedOf } from './dates.js';
import type { CellDates, ModelFiles, TileHalo, TileNeighbour } from './halo.js';
import { type HistoryUse, historyDates } from './history.js';
import type { CardSummary } from './model-card.js';
import type { ChosenModel } from './model-choice.js';
import { getModelSpec } from './models/builtin.js';
import { type BandName, type ModelSpec, receptiveField, requiredBands } from './models/spec.js';
import type { PredictTask } from './predict-tile.js';
import { priorDates } from './prior.js';

export interface BelowBaselineModel {
  id: string;
  version: string;
  geocode: string;
  /** Mean squared errors on the validation patches. */
  mse: number;
  mean: number;
}

/**
 * Yields the derivation of the predicted tile, or the reason why the tile is skipped. `neighbours`: finds what surrounds the tile; without
 * it, the tile is mapped alone.
 */
export async function* planPrediction(
  storage: Storage,
  { model, use, leftOut = [] }: ChosenModel,
  tile: TileRecord,
  neighbours: NeighbourContext | undefined,
  dilation: number,
): AsyncGenerator<PlannedDerivation<PredictTask>> {
  const spec = getModelSpec(model.model);
  const { collection, scene, grid, geocode, start, end, platform } = tile;
  const isCloudRemoval = spec.target.kind === 'clear';
  const source: TileSource = isCloudRemoval ? 'cloud-free' : 'predicted';
  const cell = { collection, scene, grid, geocode };
  const derivation = {
    facts: { ...cell, source, start, end, platform, model: { id: model.id, version: model.version } },
    inputs: [tile],
    // The tile of a model of the place replaces the one that another model had made.
    parameters: { model: use === 'own' ? model.id : modelId(model.model, collection, grid, geocode) },
  };
  // If the base was applied by its id before the place was mapped by it anyway, its tile has another id.
  if (use === 'base') yield { obsolete: { ...derivation, parameters: { model: model.id } } };
  if (isCloudRemoval && !tile.cloudCover && coarsestGroup(spec.inputs, tile)) {
    // Older versions made a tile of every date.
    yield { obsolete: derivation };
    return yield { skipped: tile.cloudCover === 0 ? 'they have no cloud' : 'their cloud was not assessed' };
  }
  // Other models replace no pixels.
  const dilate = isCloudRemoval ? dilation : 0;
  const reading = await planReading(storage, model, tile, { bands: spec.inputs, neighbours, dilate });
  if ('skipped' in reading) return yield reading;
  const { planned, historyUse, history, others } = reading;
  const { facts } = derivation;
  // The recipe distinguishes tiles of older versions, which also changed clear pixels, or had steps between the centres of patches.
  const recipe = [
    ...(spec.target.kind === 'mean' ? ['linear between the centres of patches'] : []),
    ...(planned
      ? [`with ${planned.isPartial ? 'a partial' : 'a'} halo, blended with\n${planned.models}`]
      : isCloudRemoval
        ? ['fills cloud and shadow']
        : []),
    ...(dilate > 0 ? [`clouds are wider by ${dilate} m`] : []),
  ];
  yield {
    ...derivation,
    facts: planned?.isPartial ? { ...facts, model: { ...facts.model, halo: 'partial' } } : facts,
    ...(historyUse && { history: history.map((other) => other.tile) }),
    // A new or changed date of the prior, or neighbour, replaces the tile.
    around: [...others.map((other) => other.tile), ...(planned?.tiles ?? [])],
    warnings: planned
      ? [...planned.warnings, ...planned.blended.filter(({ id }) => id !== model.id).flatMap(baselineWarning)]
      : [],
    jobWarnings: [...leftOut, ...baselineWarning(model)],
    ...(recipe.length > 0 && { recipe: recipe.join('\n') }),
    task: async (made) => ({
      ...(await reading.task()),
      tile: { ...made, metadata: { ...made.metadata, MODEL: `${model.id} ${model.version}` } },
      groups: {
        ...(reading.size && { [`${reading.size.width}x${reading.size.height}`]: reading.group }),
        ...Object.fromEntries(
          tile.groups
            .filter(({ role }) => role === 'data')
            .map(({ width, height, name }) => [`${width}x${height}`, name]),
        ),
      },
    }),
  };
}

/** How a model reads a tile, and what it reads beside it. */
interface PlannedReading {
  /** Group whose pixel size it reads, and the size of the tile at it, if its card names one. */
  group: string;
  size: PixelGrid | undefined;
  planned: PlannedHalo | undefined;
  historyUse: HistoryUse | undefined;
  /** The dates of the history. */
  history: PriorTile[];
  others: PriorTile[];
  /** Throws the errors of `ensureFile`. */
  task(): Promise<Omit<PredictTask, 'tile' | 'groups'>>;
}

/** `bands`: those to be read, at least the inputs of the model. Returns the reason if the model cannot read the tile. */
export async function planReading(
  storage: Storage,
  model: ModelVersionRecord,
  tile: TileRecord,
  {
    bands,
    neighbours,
    dilate,
  }: { bands: readonly BandName[]; neighbours: NeighbourContext | undefined; dilate: number },
): Promise<PlannedReading | { skipped: string }> {
  const spec = getModelSpec(model.model);
  const date = acquisitionFiles(storage, bands, tile, dilate);
  if (!date) return { skipped: `they lack ${bands.join(', ')}` };
  const { pixelSize, values = 'reflectance', choice } = model.card as CardSummary;
  const kinds = bandValueKinds(bands, [tile]);
  if (kinds.some((kind) => kind !== values))
    return { skipped: `their values are ${kinds.join(' and ')}, but the model was trained on ${values}` };
  // Models of older versions have no pixel size, and read a tile at the size of its bands.
  const coarsest = coarsestGroup(bands, tile)!;
  const size = pixelSize && modelPixels(pixelSize, tile, coarsest, tile.geocode === model.geocode);
  if (size && 'skipped' in size) return size;
  const read = { width: coarsest.width, height: coarsest.height, ...size };
  const group = pixelSize?.group ?? coarsest.name;
  const readsPrior = hasPrior(model);
  const historyUse = choice?.history?.use;
  const history = historyUse ? await historyTiles(storage, spec, tile, historyUse) : [];
  const readsHistory = historyUse !== undefined;
  const as = { spec, group, size: read, values, readsPrior, readsHistory, dilate };
  const planned = neighbours && (await planHalo(neighbours, tile, as));
  const others = readsPrior && !planned ? await priorTiles(storage, spec, tile, dilate) : [];
  return {
    ...{ group, size, planned, historyUse, history, others },
    task: async () => ({
      model: { name: model.model, ...(await modelFiles(storage, model)) },
      date,
      others: others.map((other) => other.date),
      ...(planned && { halo: planned.halo }),
      ...(historyUse && { history: { dates: history.map((other) => other.date), use: historyUse } }),
      size,
      areCounts: values === 'scaled counts',
    }),
  };
}

interface PriorTile {
  tile: TileRecord;
  date: AcquisitionFiles;
}

/** Returns other dates of the cell of a tile for the prior of cloud removal, the nearest in time first. */
async function priorTiles(
  storage: Storage,
  spec: ModelSpec,
  tile: TileRecord,
  dilate: number,
): Promise<PriorTile[]> {
  const { collection, geocode, source } = tile;
  const filter = parseFilter({ collections: [collection], geocode, source });
  const ofCell = await storage.getTiles((await searchTiles(storage.index, filter)).ids);
  return nearestDates(tile, otherDates(storage, spec, tile, ofCell, dilate));
}

/** Returns the measured dates of the cell of a tile that are its history. */
export async function historyTiles(
  storage: Storage,
  spec: ModelSpec,
  tile: TileRecord,
  use: HistoryUse,
): Promise<PriorTile[]> {
  const { collection, geocode } = tile;
  const filter = parseFilter({ collections: [collection], geocode, source: 'raw' });
  const ofCell = await storage.getTiles((await searchTiles(storage.index, filter)).ids);
  const bands = requiredBands(spec);
  const dates = historyDates(
    ofCell.map((other) => ({ ...datedOf(other), other })),
    datedOf(tile),
    use,
  );
  return dates.flatMap(({ other }) => {
    const isOfCell = other.grid === tile.grid && areAlike(spec.inputs, tile, other);
    const date = isOfCell ? acquisitionFiles(storage, bands, other) : null;
    return date ? [{ tile: other, date }] : [];
  });
}

interface HaloDates {
  /** Dates of each cell, in the order of the cells. */
  cells: CellDates[];
  /** The tiles of these dates. */
  tiles: TileRecord[];
  /** True if tiles may be missing, because no node answered for them. */
  isPartial: boolean;
}

/** Finds the dates of the priors of several cells, each with one tile of the scene, on any node. */
async function planHaloDates(
  { storage, finder }: { storage: Storage; finder: TileFinder },
  { spec, dilate }: Pick<ReadAs, 'spec' | 'dilate'>,
  scene: TileRecord[],
): Promise<HaloDates> {
  const { found, isPartial } = await tilesOfCells(finder, scene);
  const others = scene.map((tile) => otherDates(storage, spec, tile, found, dilate));
  const priors = scene.map((tile, i) => nearestDates(tile, others[i]));
  const wanted = new Set(priors.flat().map(({ tile }) => tile.scene));
  const read = others.map((dates) => dates.filter(({ tile }) => wanted.has(tile.scene)));
  return {
    cells: priors.map((prior, i) => ({
      prior: prior.map(({ tile }) => tile.scene),
      files: Object.fromEntries(read[i].map(({ tile, date }) => [tile.scene, date])),
    })),
    tiles: read.flat().map(({ tile }) => tile),
    isPartial,
  };
}

const PAGE_SIZE = 1000;

/** Returns all tiles of these cells, of the collection and source of the given ones. */
async function tilesOfCells(finder: TileFinder, cells: TileRecord[]) {
  const [{ collection, source }] = cells;
  const values = cells.map(({ geocode }) => geocode);
  const filter = and([
    { op: '=', property: 'collection', value: collection },
    { op: '=', property: 'source', value: source },
    { op: 'in', property: 'geocode', values },
  ]);
  const found: TileRecord[] = [];
  let isPartial = false;
  let token: string | undefined;
  do {
    const page = await finder.find(createSearch(filter, { limit: PAGE_SIZE, token }));
    found.push(...page.tiles);
    if (page.unanswered) isPartial = true;
    token = page.next;
  } while (token !== undefined);
  return { found, isPartial };
}

/** Returns the dates in the cell of a tile that can be read like it, one of each scene, ordered by id. */
function otherDates(
  storage: Storage,
  { inputs }: ModelSpec,
  tile: TileRecord,
  found: TileRecord[],
  dilate: number | undefined,
): PriorTile[] {
  const scenes = new Map<string, PriorTile>();
  for (const other of found.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    // A geocode of digits may belong to either grid.
    const isOfCell = other.grid === tile.grid && other.geocode === tile.geocode && other.id !== tile.id;
    // The cloud mask of a scene is also that of pixels in the cells whose prior has this scene.
    if (!isOfCell || other.cloudCover === null || !areAlike(inputs, tile, other)) continue;
    const date = acquisitionFiles(storage, inputs, other, dilate);
    if (date && !scenes.has(other.scene)) scenes.set(other.scene, { tile: other, date });
  }
  return [...scenes.values()];
}

function nearestDates(tile: TileRecord, others: PriorTile[]): PriorTile[] {
  return priorDates([tile, ...others.map((other) => other.tile)], 0).map((at) => others[at - 1]);
}

interface NeighbourContext {
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
  /** True if it is a model of cloud removal that reads other dates, and if it is another model that does. */
  readsPrior?: boolean;
  readsHistory?: boolean;
  /** Metres by which clouds are widened; 0 by default. */
  dilate?: number;
}

interface PlannedHalo {
  halo: TileHalo;
  tiles: TileRecord[];
  /** Identifies the blended models. */
  models: string;
  /** True if tiles may be missing, because no node answered for them, or if a model of a neighbour is damaged. */
  isPartial: boolean;
  blended: ModelVersionRecord[];
  /** Warnings about missing tiles and models. */
  warnings: string[];
}

/** Finds the neighbours of a tile in its scene. Tiles that cannot be read in the same way are left out. */
export async function planHalo(
  context: NeighbourContext,
  tile: TileRecord,
  as: ReadAs,
): Promise<PlannedHalo> {
  const { storage, finder } = context;
  const { width, height } = as.size;
  const reach = Math.min(receptiveField(as.spec), width, height);
  const found = await findNeighbourTiles(finder, tile, as.size, reach);
  const neighbours: TileNeighbour[] = [];
  const tiles: TileRecord[] = [];
  const models: string[] = [];
  const blended: ModelVersionRecord[] = [];
  const warnings: string[] = [];
  let isPartial = found.unanswered > 0;
  if (isPartial) warnings.push('some tiles around it could not be found, because nodes did not answer');
  const leaveOut = (what: string, reason: string) =>
    warnings.push(`${what} beside it is left out: ${reason}`);
  let { readsPrior = false } = as;
  for (const { tile: other, east, south } of found.tiles) {
    // If the halo is as wide as the tile, rounding errors can add cells beyond those around it.
    if (Math.abs(east) > 1 || Math.abs(south) > 1) continue;
    const { inputs } = as.spec;
    const size = other.groups.find(({ role, name }) => role === 'data' && name === as.group);
    const date = acquisitionFiles(storage, inputs, other, as.dilate);
    const coarsest = coarsestGroup(inputs, other);
    if (!size || !date || !coarsest || coarsest.width < size.width || coarsest.height < size.height) {
      leaveOut(other.id, 'it lacks bands, or its pixels are larger');
      continue;
    }
    if (bandValueKinds(inputs, [other]).some((kind) => kind !== as.values)) {
      leaveOut(other.id, `its values are not ${as.values}`);
      continue;
    }
    const chosen = await context.modelOf(other);
    const model = chosen && isReadAs(chosen, as) ? chosen : undefined;
    if (chosen && !model) leaveOut(`the model ${chosen.id}`, 'it reads other pixels, or another history');
    const files = model && (await context.filesOf(model));
    if (model && files) {
      models.push(`${model.id} ${model.version}`);
      blended.push(model);
      readsPrior ||= hasPrior(model);
    } else if (model) {
      leaveOut(`the model ${model.id}, version ${model.version},`, 'its files are damaged or lost');
      isPartial = true;
    }
    tiles.push(other);
    neighbours.push({
      ...{ east, south, date, size: { width: size.width, height: size.height } },
      ...(files && { model: files }),
    });
  }
  const dates = readsPrior ? await planHaloDates(context, as, [tile, ...tiles]) : undefined;
  if (dates?.isPartial) warnings.push('some other dates could not be found, because nodes did not answer');
  return {
    halo: {
      origin: originOf(tile, as.size),
      neighbours: neighbours.map((one, i) => ({ ...one, ...(dates && { dates: dates.cells[i + 1] }) })),
      ...(dates && { dates: dates.cells[0] }),
    },
    tiles: [...tiles, ...(dates?.tiles ?? [])],
    models: models.join('\n'),
    isPartial: isPartial || (dates?.isPartial ?? false),
    blended,
    warnings,
  };
}

/** Compares the scores on the validation patches. */
export function belowMeanBaseline({ id, version, geocode, card }: ModelVersionRecord): BelowBaselineModel[] {
  const { metrics, baseline } = card as CardSummary;
  const [mse, mean] = [metrics.validation.mse, baseline.mean.mse];
  return mse > mean ? [{ id, version, geocode, mse, mean }] : [];
}

export function baselineWarning(model: ModelVersionRecord): string[] {
  return belowMeanBaseline(model).map(
    ({ id, version, mse, mean }) =>
      `${id}, version ${version}, is worse than the mean of its training values: MSE ${mse.toExponential(2)}, mean ${mean.toExponential(2)}; use another version, train it again or delete it`,
  );
}

/** True for models of cloud removal that read other dates: those of older versions, whose cards have no held-out ground, do not. */
function hasPrior({ model, card }: ModelVersionRecord): boolean {
  const { holdOut, distributed } = card as CardSummary;
  const isCloudRemoval = getModelSpec(model).target.kind === 'clear';
  return isCloudRemoval && (holdOut ?? distributed?.places[0]?.holdOut) !== undefined;
}

/** True if a model reads pixels of the same size and kind. Models of older versions have no pixel size. */
function isReadAs({ card }: ModelVersionRecord, { group, values, readsHistory }: ReadAs): boolean {
  const { pixelSize, values: own = 'reflectance', choice } = card as CardSummary;
  return (
    own === values &&
    (pixelSize?.group ?? group) === group &&
    (choice?.history !== undefined) === (readsHistory ?? false)
  );
}

/** Fetches the files of a model. Throws the errors of `ensureFile`. */
async function modelFiles(
  { models }: Pick<Storage, 'models'>,
  model: ModelVersionRecord,
): Promise<ModelFiles> {
  return {
    topology: await models.ensureFile(model, 'model.json'),
    weights: await models.ensureFile(model, 'weights.bin'),
  };
}

/** Errors of the files of one model. Others, such as those of a store that does not answer, concern all models. */
const MODEL_FILE_ERRORS = [modelDamaged, storeLost, storeCorrupt];

/** Returns a function that fetches and verifies the files of models, once for each model. */
export function verifiedModelFiles({ models }: Pick<Storage, 'models'>): NeighbourContext['filesOf'] {
  const known = new Map<string, Promise<ModelFiles | undefined>>();
  const verify = async (model: ModelVersionRecord) => {
    try {
      await models.readFile(model, 'model.json');
      await models.readFile(model, 'weights.bin');
      return await modelFiles({ models }, model);
    } catch (error) {
      if (MODEL_FILE_ERRORS.some((one) => one.is(error))) return undefined;
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

/**
 * Returns the size of a tile at the pixel size of the training of a model: the size of the group of that name, or at the cell of the
 * model the size in training. Returns the reason if the tile has no such size, or if its bands are coarser; `own` is the size of the
 * coarsest band.
 */
export function modelPixels(
  { group, width, height }: TilePixels,
  tile: Pick<TileRecord, 'groups'>,
  own: PixelGrid,
  isOwnCell: boolean,
): PixelGrid | { skipped: string } {
  const named = tile.groups.find(({ role, name }) => role === 'data' && name === group);
  const known = isOwnCell && width !== undefined && height !== undefined ? { width, height } : undefined;
  const size = named ?? known;
  if (!size) return { skipped: `they have no bands of ${group}, the pixel size of the model's training` };
  if (size.width > own.width || size.height > own.height)
    return { skipped: `their pixels are larger than those of the model's training, ${group}` };
  return { width: size.width, height: size.height };
}
