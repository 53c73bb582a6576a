/** Export as a job: one Cloud Optimized GeoTIFF with the tiles of a region. */

import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Bbox, cellBbox, gridByName, type PixelGrid } from '../grid/index.js';
import { isClear, isCodeGroup } from '../imagery/index.js';
import { addFetched, type JobContext, type Process, type TileCounts } from '../jobs/index.js';
import {
  and,
  checkFilter,
  defaultToRawSource,
  type Filter,
  type FilterParams,
  filterSchema,
  parseFilter,
  requireCollections,
  type TileFinder,
} from '../query/index.js';
import {
  allocatePixels,
  bytesPerSample,
  type DataType,
  Mask,
  maskHistogram,
  type PixelArray,
} from '../raster/index.js';
import { asStorageError, type GroupRecord, type TileRecord, withPinnedTiles } from '../storage/index.js';
import { fillValueOf, isBand, parseBandRequests, resolveBandRequest } from './bands.js';
import { bandNotFound, exportCollections, exportGrids, exportTooLarge, nothingToExport } from './errors.js';
import { type TileProcessContext, tileFiles } from './job.js';
import { searchTilePages, sourceFilter } from './selection.js';
import { percent, shareWarnings } from './shares.js';
import type { TensorBand, TensorBandsTask } from './tasks.js';

/** The pixel grid of an image, in the coordinates of the grid of its cells. */
interface MosaicGrid extends PixelGrid {
  west: number;
  north: number;
  pixelWidth: number;
  pixelHeight: number;
}

/** A cell with its size in pixels. */
type SizedCell = Pick<TileRecord, 'grid' | 'geocode'> & { size: PixelGrid };

/** Returns the smallest image that contains all cells, which are of one grid, with the pixels of the finest. */
export function mosaicGrid(cells: readonly SizedCell[]): MosaicGrid {
  const extent = { west: Infinity, south: Infinity, east: -Infinity, north: -Infinity };
  let [pixelWidth, pixelHeight] = [Infinity, Infinity];
  for (const { grid, geocode, size } of cells) {
    const { west, south, east, north } = gridByName(grid).bounds(geocode);
    extent.west = Math.min(extent.west, west);
    extent.south = Math.min(extent.south, south);
    extent.east = Math.max(extent.east, east);
    extent.north = Math.max(extent.north, north);
    pixelWidth = Math.min(pixelWidth, (east - west) / size.width);
    pixelHeight = Math.min(pixelHeight, (north - south) / size.height);
  }
  const width = Math.round((extent.east - extent.west) / pixelWidth);
  const height = Math.round((extent.north - extent.south) / pixelHeight);
  return {
    ...{ west: extent.west, north: extent.north, width, height },
    // The outer edges are exact, even if the cells of another row have another number of pixels.
    pixelWidth: (extent.east - extent.west) / width,
    pixelHeight: (extent.north - extent.south) / height,
  };
}

/**
 * How good a pixel of an image is, the worst first. A better pixel replaces a worse one. Pixels of one rank that have a value in every
 * plane are better than those with gaps: their rank is larger by `COMPLETE`.
 */
const Rank = { empty: 0, notClear: 2, notAssessed: 4, clear: 6 } as const;
const COMPLETE = 1;

const rankOf = (code: number) =>
  code === Mask.notAssessed ? Rank.notAssessed : isClear(code) ? Rank.clear : Rank.notClear;

/**
 * An image that tiles fill one after another: a pixel keeps the values of the first tile in which it is clear, otherwise of the first one
 * that was not assessed for cloud, otherwise of the first one. `ranks`: of each pixel.
 */
export class MosaicImage {
  readonly ranks: Uint8Array;

  constructor(
    readonly grid: MosaicGrid,
    readonly planes: PixelArray[],
    private readonly empty: number,
  ) {
    this.ranks = new Uint8Array(grid.width * grid.height);
  }

  /**
   * Copies the pixels of a cell that have a value in some plane, each to the pixels of the image whose centre it contains. Cells of the
   * same pixel size are copied without resampling. `codes`: mask codes; null if all pixels are clear. Returns the number of copied pixels.
   */
  add(cell: SizedCell, planes: readonly PixelArray[], codes: ArrayLike<number> | null): number {
    let copied = 0;
    this.eachPixel(cell, (to, from) => {
      const clarity = codes ? rankOf(codes[from]!) : Rank.clear;
      if (this.ranks[to]! >= clarity + COMPLETE) return;
      const gaps = planes.filter((plane) => this.isEmpty(plane[from]!)).length;
      const rank = gaps === 0 ? clarity + COMPLETE : clarity;
      if (this.ranks[to]! >= rank || gaps === planes.length) return;
      for (const [p, plane] of planes.entries()) this.planes[p]![to] = plane[from]!;
      this.ranks[to] = rank;
      copied++;
    });
    return copied;
  }

  /** True if all pixels of a cell have this rank or a better one. */
  isComplete(cell: SizedCell, rank: number): boolean {
    let isComplete = true;
    this.eachPixel(cell, (to) => {
      if (this.ranks[to]! < rank) isComplete = false;
    });
    return isComplete;
  }

  private isEmpty(value: number): boolean {
    return value === this.empty || Number.isNaN(value);
  }

  private eachPixel({ grid, geocode, size }: SizedCell, visit: (to: number, from: number) => void): void {
    const image = this.grid;
    const { west, south, east, north } = gridByName(grid).bounds(geocode);
    const columns = sourcePixels(
      west - image.west,
      (east - west) / size.width,
      size.width,
      image.pixelWidth,
      image.width,
    );
    const rows = sourcePixels(
      image.north - north,
      (north - south) / size.height,
      size.height,
      image.pixelHeight,
      image.height,
    );
    for (const [row, from] of rows)
      for (const [column, source] of columns) visit(row * image.width + column, from * size.width + source);
  }
}

/** Pairs of a pixel of the image and the pixel of the cell that contains its centre, along one axis that starts at the image's edge. */
function sourcePixels(
  from: number,
  cellPixel: number,
  count: number,
  imagePixel: number,
  length: number,
): [image: number, cell: number][] {
  const pairs: [number, number][] = [];
  const first = Math.max(0, Math.floor(from / imagePixel) - 1);
  for (let at = first; at < length; at++) {
    const source = Math.floor(((at + 0.5) * imagePixel - from) / cellPixel);
    if (source >= count) break;
    if (source >= 0) pairs.push([at, source]);
  }
  return pairs;
}

/** The tiles and bands that the models of one kind make. */
interface ExportLayer {
  /** The kind of model. */
  name: string;
  bands: string[];
  /** The tiles of the layer. A raw tile without cloud has no cloud-free tile. */
  tiles: Filter;
  /** The source of the tiles that the models have made. */
  made: TileRecord['source'];
}

const indexMap = (name: string): ExportLayer => ({
  name,
  bands: [name],
  tiles: sourceFilter('predicted'),
  made: 'predicted',
});

const WITHOUT_CLOUD = and([sourceFilter('raw'), { op: '=', property: 'eo:cloud_cover', value: 0 }]);

const EXPORT_LAYERS: ExportLayer[] = [
  indexMap('ndvi'),
  indexMap('ndmi'),
  {
    name: 'cloud-removal',
    bands: ['red', 'green', 'blue'],
    tiles: { op: 'or', args: [sourceFilter('cloud-free'), WITHOUT_CLOUD] },
    made: 'cloud-free',
  },
];

const LAYER_NAMES = EXPORT_LAYERS.map(({ name }) => name);

const exportLayer = (name: string | undefined): ExportLayer | undefined =>
  EXPORT_LAYERS.find((layer) => layer.name === name);

type Condition = keyof FilterParams;

/** Conditions of a filter that the tiles of a layer may fail, the most specific first. Collections always count. */
const TIME_CONDITIONS: Condition[] = ['datetime'];
const REGION_CONDITIONS: Condition[] = ['bbox', 'intersects', 'geocode', 'recurse'];

/**
 * Returns the error of a selection without tiles that the models of the layer have made: it says which condition excludes them, or that
 * the models have made no tiles.
 */
async function noTileOfLayer(
  finder: TileFinder,
  { name, tiles, made }: ExportLayer,
  params: FilterParams,
  hasBands: (tile: TileRecord) => boolean,
): Promise<Error> {
  const exist = async (filter: FilterParams) => {
    for await (const page of searchTilePages(finder, and([parseFilter(filter), tiles, sourceFilter(made)])))
      if (page.some(hasBands)) return true;
    return false;
  };
  if (!(await exist(params.collections === undefined ? {} : { collections: params.collections })))
    return nothingToExport(
      `the layer ${name} has no tiles yet: run "tilewright train ${name}" and "tilewright predict ${name}", or over HTTP the processes train and predict`,
    );
  for (const [conditions, where] of [
    [TIME_CONDITIONS, 'at this time (datetime)'],
    [REGION_CONDITIONS, 'in this region'],
    [[...TIME_CONDITIONS, ...REGION_CONDITIONS], 'at this time (datetime) in this region'],
  ] as const)
    if (conditions.some((one) => params[one] !== undefined) && (await exist(without(params, conditions))))
      return nothingToExport(`the layer ${name} has tiles, but none ${where}`);
  return nothingToExport(`the layer ${name} has tiles, but none that match the filter`);
}

const without = (params: FilterParams, conditions: readonly Condition[]): FilterParams =>
  Object.fromEntries(Object.entries(params).filter(([name]) => !conditions.includes(name as Condition)));

interface ExportInputs {
  filter?: FilterParams;
  /** A kind of model: the tiles that its models have made. */
  layer?: string;
  /** Names or common names of bands, or expressions over them. Default: those of the layer. */
  bands?: string[];
}

export interface ExportResults extends Pick<TileCounts, 'bytesFetched'> {
  /** Name of the file in the results of the job. */
  file: string;
  bytes: number;
  width: number;
  height: number;
  bands: string[];
  dataType: DataType;
  crs: string;
  /** Degrees. */
  bbox: Bbox;
  /** Tiles that gave pixels. */
  tiles: number;
  /** Days of these tiles, in UTC, ascending. */
  dates: string[];
  /** Percent of the pixels with data that are cloud, cloud shadow or snow on every date. */
  notClear: number;
  /** Percent of the pixels with data that no date shows clear, and that were not assessed for cloud. */
  notAssessed: number;
  /** For the layer of cloud removal: tiles whose clouds a model has filled, and raw tiles without cloud. */
  filled?: number;
  withoutCloud?: number;
}

/** The image is made in memory. */
const MAX_IMAGE_BYTES = 512e6;
const FILE_NAME = 'image.tif';

export function exportProcess(context: TileProcessContext): Process {
  return {
    id: 'export',
    title: 'Export an image',
    description:
      'Writes the tiles of a region as one Cloud Optimized GeoTIFF. Tiles are complete, and not clipped to the region. Of several dates, the least cloudy one that is clear at a pixel counts.',
    inputs: {
      type: 'object',
      anyOf: [{ required: ['layer'] }, { required: ['bands'] }],
      additionalProperties: false,
      properties: {
        filter: filterSchema,
        layer: {
          enum: LAYER_NAMES,
          description:
            'A kind of model: only the tiles that its models have made; for cloud-removal, also the raw tiles without cloud',
        },
        bands: {
          type: 'array',
          items: { type: 'string', minLength: 1 },
          minItems: 1,
          maxItems: 100,
          description: 'Names of bands, or expressions over them. Default: the bands of the layer',
        },
      },
    },
    resumable: true,
    check: checkFilter,
    run: (inputs, job) => exportImage(context, inputs as ExportInputs, job),
  };
}

/** A tile with the planes to export. */
interface ExportedTile {
  tile: TileRecord;
  planes: TensorBand[];
  size: PixelGrid;
  groups: GroupRecord[];
  /** Null if the tile has no mask, or only codes are exported, which describe pixels themselves. */
  mask: TensorBand | null;
}

async function exportImage(
  { storage, finder, workers }: TileProcessContext,
  inputs: ExportInputs,
  job: JobContext,
): Promise<ExportResults> {
  const { filter: params = {} } = inputs;
  const layer = exportLayer(inputs.layer);
  const bands = inputs.bands ?? layer?.bands ?? [];
  await requireCollections(storage, params);
  const tiles = await exportedTiles(finder, params, bands, layer, job);
  const collections = [...new Set(tiles.map(({ tile }) => tile.collection))].sort();
  if (collections.length > 1 && !params.collections) throw exportCollections(collections);
  const grids = [...new Set(tiles.map(({ tile }) => tile.grid))];
  if (grids.length > 1) throw exportGrids(grids);
  tiles.sort(byClarity);
  const grid = mosaicGrid(tiles.map(({ tile, size }) => ({ ...tile, size })));
  const coding = commonCoding(tiles);
  const dataType = coding?.dataType ?? 'float32';
  const empty = coding?.empty ?? NaN;
  const pixels = grid.width * grid.height;
  const bytes = pixels * bands.length * bytesPerSample(dataType);
  if (bytes > MAX_IMAGE_BYTES) throw exportTooLarge(grid.width, grid.height, bands.length);
  const planes = bands.map(() => allocatePixels(dataType, pixels).fill(empty));
  const image = new MosaicImage(grid, planes, empty);
  const used: ExportedTile[] = [];
  const fetchedBytes: Pick<TileCounts, 'bytesFetched'> = {};
  for (const [done, one] of tiles.entries()) {
    job.signal.throwIfAborted();
    const cell = { ...one.tile, size: one.size };
    // After a tile that was not assessed, only such tiles follow.
    const best = one.tile.cloudCover === null ? Rank.notAssessed : Rank.clear;
    if (!image.isComplete(cell, best + COMPLETE)) {
      const [values, codes] = await withPinnedTiles(
        storage,
        [{ tile: one.tile, groups: one.groups }],
        (fetched) => {
          addFetched(fetchedBytes, fetched);
          const task = { kind: 'planes' as const, tile: tileFiles(storage, one.tile), size: one.size };
          const read = (planes: TensorBand[], stored: TensorBandsTask['stored']) =>
            workers.run({ ...task, planes, stored }, { signal: job.signal });
          return Promise.all([read(one.planes, coding), one.mask ? read([one.mask], MASK_CODING) : []]);
        },
      );
      if (image.add(cell, values, codes[0] ?? null) > 0) used.push(one);
    }
    job.progress({ total: tiles.length, done: done + 1, failed: 0, skipped: 0 });
  }
  if (used.length === 0) throw nothingToExport(`no selected tile has a value of ${bands.join(', ')}`);
  const shares = rankShares(image.ranks);
  const dates = [...new Set(used.map(({ tile }) => new Date(tile.start).toISOString().slice(0, 10)))].sort();
  for (const warning of exportWarnings(dates, shares)) job.log('warning', warning);
  const file = await encodeImage(
    workers,
    { grid, tiles: used, collections, layer, bands, planes, coding, dataType, empty },
    job,
  );
  const folder = await storage.results.makeFolder(job.id);
  const path = join(folder, FILE_NAME);
  try {
    await storage.reserve.require(file.length);
    await writeFile(path, file);
    await job.file(FILE_NAME);
  } catch (error) {
    await rm(path, { force: true });
    throw asStorageError(error, path);
  }
  const { epsg } = gridByName(grids[0]);
  return {
    ...{ file: FILE_NAME, bytes: file.length, width: grid.width, height: grid.height, bands, dataType },
    crs: `EPSG:${epsg}`,
    bbox: bboxOf(tiles),
    tiles: used.length,
    dates,
    ...shares,
    ...(layer?.made === 'cloud-free' && countFilled(used)),
    ...fetchedBytes,
  };
}

/** How mask codes are read. */
const MASK_CODING = { dataType: 'uint8', empty: Mask.nodata } as const;

/** The order of the maps: the least cloudy tile first, unknown cloud cover last; ties are ordered newest first, then by id. */
function byClarity({ tile: a }: ExportedTile, { tile: b }: ExportedTile): number {
  const cloud = ({ cloudCover }: TileRecord) => cloudCover ?? 101;
  return cloud(a) - cloud(b) || b.start - a.start || (a.id < b.id ? -1 : 1);
}

function rankShares(ranks: Uint8Array): Pick<ExportResults, 'notClear' | 'notAssessed'> {
  const counts = maskHistogram(ranks);
  const all = ranks.length - counts[Rank.empty]!;
  const share = (rank: number) => (100 * (counts[rank]! + counts[rank + COMPLETE]!)) / all;
  return { notClear: share(Rank.notClear), notAssessed: share(Rank.notAssessed) };
}

function exportWarnings(
  dates: string[],
  { notClear, notAssessed }: Pick<ExportResults, 'notClear' | 'notAssessed'>,
): string[] {
  const warnings: string[] = [];
  if (dates.length > 1)
    warnings.push(
      `the image mixes ${dates.length} dates, ${dates[0]} to ${dates.at(-1)}: each pixel is of the least cloudy tile in which it is clear; name one date with datetime`,
    );
  if (notClear > 0)
    warnings.push(
      `${percent(notClear)} of the pixels are cloud, cloud shadow or snow on every selected date`,
    );
  return [...warnings, ...shareWarnings({ notAssessed })];
}

/** Throws TW_WRANGLE_EXPORT_NOTHING if no tile is selected, or none that a model of the layer has made, and TW_WRANGLE_NO_BAND. */
async function exportedTiles(
  finder: TileProcessContext['finder'],
  params: FilterParams,
  bands: string[],
  layer: ExportLayer | undefined,
  job: JobContext,
): Promise<ExportedTile[]> {
  const selected = parseFilter(params);
  const filter = layer ? and([selected, layer.tiles]) : defaultToRawSource(selected);
  const tiles: ExportedTile[] = [];
  let found = 0;
  let isMade = false;
  // Page by page, because many bands of many tiles would block the node.
  for await (const page of searchTilePages(finder, filter)) {
    job.signal.throwIfAborted();
    found += page.length;
    // Another kind of model may have made tiles of the same source.
    const ofLayer = layer ? page.filter((tile) => exportedTile(tile, layer.bands)) : page;
    isMade ||= ofLayer.some(({ source }) => source === layer?.made);
    tiles.push(...ofLayer.flatMap((tile) => exportedTile(tile, bands) ?? []));
  }
  if (layer && !isMade)
    throw await noTileOfLayer(finder, layer, params, (tile) => !!exportedTile(tile, layer.bands));
  if (found === 0) throw nothingToExport('no tile matches the filter');
  if (tiles.length === 0) throw bandNotFound(bands);
  return tiles;
}

function countFilled(tiles: ExportedTile[]): Pick<ExportResults, 'filled' | 'withoutCloud'> {
  const filled = tiles.filter(({ tile }) => tile.source === 'cloud-free').length;
  return { filled, withoutCloud: tiles.length - filled };
}

/** Returns undefined if the tile lacks a band. */
function exportedTile(tile: TileRecord, bands: string[]): ExportedTile | undefined {
  const planes = bands.map((band) => resolveBandRequest(tile, parseBandRequests(band, [tile]))?.plane);
  if (!planes.every((plane) => plane !== undefined)) return undefined;
  const read = new Set(planes.flatMap(({ places }) => places.map(({ group }) => group)));
  const sizes = [...read].map((group) => tile.groups[group]);
  const { width, height } = sizes.reduce((a, b) => (b.width * b.height > a.width * a.height ? b : a));
  const groups = tile.groups.filter(({ role }, i) => role === 'mask' || read.has(i));
  const areCodes = [...read].every((group) => isCodeGroup(tile.groups[group]!));
  const mask = areCodes ? null : resolveBandRequest(tile, { text: 'mask', collection: undefined });
  return { tile, planes, size: { width, height }, groups, mask: mask?.plane ?? null };
}

/** The mean of codes is another code. */
const readsCodes = ({ tile, planes }: ExportedTile) =>
  planes.some(({ places }) => places.some(({ group }) => isCodeGroup(tile.groups[group]!)));

interface Coding {
  dataType: DataType;
  empty: number;
  scale: number;
  offset: number;
}

/** Returns how all bands of all tiles are stored; null if they differ, so that physical values are written. */
function commonCoding(tiles: ExportedTile[]): Coding | null {
  const codings = tiles.flatMap(({ tile, planes }) =>
    planes.map((plane) => {
      if (!isBand(plane)) return null;
      const [{ group, band }] = plane.places;
      const { dataType, nodata, bands } = tile.groups[group];
      if (nodata === null) return null;
      const { scale, offset } = bands[band];
      return { dataType, empty: fillValueOf({ dataType, nodata }), scale, offset };
    }),
  );
  const [first] = codings;
  return first && codings.every((one) => JSON.stringify(one) === JSON.stringify(first)) ? first : null;
}

interface EncodedImage {
  grid: MosaicGrid;
  tiles: ExportedTile[];
  collections: string[];
  layer?: ExportLayer;
  bands: string[];
  planes: ReturnType<typeof allocatePixels>[];
  coding: Coding | null;
  dataType: DataType;
  empty: number;
}

function encodeImage(
  workers: TileProcessContext['workers'],
  { grid, tiles, collections, layer, bands, planes, coding, dataType, empty }: EncodedImage,
  job: JobContext,
): Promise<Uint8Array> {
  const { width, height, west: originX, north: originY, pixelWidth, pixelHeight } = grid;
  const starts = tiles.map(({ tile }) => tile.start);
  const [first, last] = [Math.min(...starts), Math.max(...starts)];
  const image = {
    ...{ width, height, dataType, bands: planes },
    transform: { originX, originY, pixelWidth, pixelHeight },
    epsg: gridByName(tiles[0].tile.grid).epsg,
    nodata: empty,
    bandTags: bands.map((description) => ({
      description,
      ...(coding && { scale: coding.scale, offset: coding.offset }),
    })),
    metadata: {
      COLLECTION: collections.join(','),
      START_DATETIME: new Date(first).toISOString(),
      END_DATETIME: new Date(last).toISOString(),
      ...(layer && { LAYER: layer.name }),
      ...modelTag(tiles),
    },
    overviews: tiles.some(readsCodes) ? ('nearest' as const) : ('mean' as const),
  };
  const transfer = planes.map(({ buffer }) => buffer as ArrayBuffer);
  return workers.run({ kind: 'stack', image }, { signal: job.signal, transfer });
}

/** Maximum number of models in the tag of an image. */
const MAX_NAMED_MODELS = 100;

/** Returns the ids and versions of the models that have made the tiles, as in the tag of each tile. */
function modelTag(tiles: ExportedTile[]): { MODEL?: string } {
  const models = new Set(
    tiles.flatMap(({ tile: { model } }) => (model ? `${model.id} ${model.version}` : [])),
  );
  if (models.size === 0) return {};
  const named = [...models].sort().slice(0, MAX_NAMED_MODELS);
  const others = models.size > named.length ? [`and ${models.size - named.length} others`] : [];
  return { MODEL: [...named, ...others].join(', ') };
}

function bboxOf(tiles: ExportedTile[]): Bbox {
  const boxes = tiles.map(({ tile }) => cellBbox(gridByName(tile.grid), tile.geocode));
  const along = (side: number, choose: (...values: number[]) => number) =>
    boxes.map((box) => box[side]).reduce((a, b) => choose(a, b));
  return [along(0, Math.min), along(1, Math.min), along(2, Math.max), along(3, Math.max)];
}
