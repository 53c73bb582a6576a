/** Maps, previews and time series of stored tiles. */
import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { WorkerPool } from '../async/index.js';
import type { OwnerQueries, ScatterQuery } from '../dht/index.js';
import { resolveBands } from '../expressions/index.js';
import { type Bbox, cellBbox, type Grid, gridByName, quadtile } from '../grid/index.js';
import {
  and,
  createSearch,
  type Filter,
  memoizeUntilChange,
  type PartialAnswer,
  type TileFinder,
} from '../query/index.js';
import type { CollectionRecord, SortOrder, Storage, TileRecord, TileSource } from '../storage/index.js';
import { borderPixels, type MapPixelSize } from './algorithms/index.js';
import { encodeImage, type ImageFormat, isTransparent } from './colours/index.js';
import { noMapTile, tooManyValues, zoomTooLow } from './errors.js';
import type { ImageryResult, ImageryTask } from './imagery-tasks.js';
import { BlockCache } from './reading/block-cache.js';
import { TileReader } from './reading/tile-reader.js';
import { mosaic, type RenderContext, renderTilePlanes } from './rendering/mosaic.js';
import { tilesByCloudCover } from './rendering/mosaic-order.js';
import { type RenderedImage, type RenderTask, renderImage } from './rendering/render-image.js';
import {
  type ColourScale,
  colourScaleOf,
  type RenderParams,
  type RenderStyle,
  renderStyleBytes,
  resolveRenderStyle,
} from './rendering/render-params.js';
import { RenderQueue } from './rendering/render-queue.js';
import {
  type CellPart,
  cellPartViewport,
  FULL_CELL,
  MAX_ZOOM,
  type MapTile,
  mapPixelCentres,
  mapPixelSize,
  type Viewport,
} from './rendering/viewport.js';
import { type PartialSeries, readPartialSeries, type SeriesQuery } from './timeseries/partial-series.js';
import { type PartialSpectra, readPartialSpectra, type SpectraQuery } from './timeseries/partial-spectra.js';
import { SERIES_QUERY } from './timeseries/series-query.js';
import { SPECTRA_QUERY } from './timeseries/spectra-query.js';
import { readSpectra, type Spectra, type SpectraSeriesRequest } from './timeseries/spectra-series.js';
import { readSeries, type Series, type TimeSeriesRequest } from './timeseries/time-series.js';

export interface ImageServiceOptions {
  storage: Storage;
  finder: TileFinder;
  owners: OwnerQueries;
  /** Threads that decode. */
  cores?: number;
  /** The most that decoded blocks may take in memory, bytes. */
  cacheBytes?: number;
}

export interface MapRequest {
  collection: CollectionRecord;
  /** Which tiles may show, of those of the collection and in the map tile. */
  filter: Filter;
  /** Of the tiles whose values the look is made to fit. */
  source: TileSource;
  renderParams: RenderParams;
  tile: MapTile;
  /** Pixels of a side: 256, or twice that. */
  size: number;
  /** Pixels beyond each side of the tile, in steps of a half. Undefined: those that the algorithm needs and cuts off. */
  buffer?: number | undefined;
  /** Undefined: PNG if some of the picture is transparent, else JPEG. */
  format: ImageFormat | undefined;
}

/** An encoded picture. */
export interface EncodedImage {
  bytes: Buffer;
  format: ImageFormat;
}

/** Where a collection can be shown on a map. */
export interface MapExtent extends PartialAnswer {
  bounds: Bbox;
  minZoom: number;
  /** Of the finest pixels; larger zooms show them larger. */
  maxZoom: number;
  /** Where and how large to look at first: all that there is, or where that is too much for a map, one tile of it. */
  center: [lon: number, lat: number, zoom: number];
  /** Milliseconds since 1970 of all that it has. */
  start: number | null;
  end: number | null;
  /** What the colours of the look stand for, where it has one measured band. */
  colourScale: ColourScale | undefined;
}

const BLOCK_CACHE_BYTES = 128e6;
/** The most that remembered looks may take in memory. */
const STYLE_CACHE_BYTES = 1e6;
/** Cells that a map tile may show: each takes at least one block of a file. */
const MAX_CELLS = 256;
/** Pixels of a picture, for each band that is read and each expression: 128 MB. */
const MAX_VALUES = 16e6;
/** Pictures that may wait; those of a browser are at most some tens. */
const MAX_QUEUED_RENDERS = 1000;
/** Web maps end here, degrees. */
const MAX_LATITUDE = 85.0511;
/** The most of their pixels first, then the oldest: new dates seldom change which is the first. */
const BY_COVERAGE: SortOrder = [
  { column: 'coverage', descending: true },
  { column: 'start', descending: false },
];
/** Longest side of a preview, pixels. */
const PREVIEW_SIDE_PX = 512;

interface ReferenceTile extends PartialAnswer {
  /** Undefined where a collection has no tiles. */
  tile: TileRecord | undefined;
}

/** Invariant: the threads live until `close`; all that is kept is what was read of file versions, which never change. */
export class ImageService {
  private readonly pool: WorkerPool<ImageryTask, ImageryResult>;
  private readonly renderQueue: RenderQueue;
  private readonly renderContext: RenderContext;
  private readonly finder: TileFinder;
  private readonly owners: OwnerQueries;
  private readonly querySeries: ScatterQuery<SeriesQuery, PartialSeries>;
  private readonly querySpectra: ScatterQuery<SpectraQuery, PartialSpectra>;
  private readonly referenceTiles = new Map<string, () => Promise<ReferenceTile>>();
  private readonly styles = new BlockCache<RenderStyle>(STYLE_CACHE_BYTES, renderStyleBytes);

  constructor({
    storage,
    finder,
    owners,
    cores = availableParallelism(),
    cacheBytes = BLOCK_CACHE_BYTES,
  }: ImageServiceOptions) {
    this.pool = new WorkerPool(new URL('./imagery-worker.js', import.meta.url), cores);
    this.renderQueue = new RenderQueue(cores, MAX_QUEUED_RENDERS);
    this.finder = finder;
    this.owners = owners;
    this.querySeries = owners.register(SERIES_QUERY, (question, share) =>
      readPartialSeries(storage, this.pool, question, share),
    );
    this.querySpectra = owners.register(SPECTRA_QUERY, (question, share) =>
      readPartialSpectra(storage, this.pool, question, share),
    );
    this.renderContext = { storage, reader: new TileReader(this.pool, cacheBytes), pool: this.pool };
  }

  /**
   * A map tile of a collection: for each pixel the first clear one, least cloudy tile first; transparent where there is none.
   * Throws TW_IMAGERY_NO_MAP_TILE, _ZOOM, _EXPRESSION, _BAND, _LOOK, _TOO_MANY_VALUES, _BUSY, _TILE_FILE, and TW_QUERY_UNANSWERED.
   */
  mapTile(request: MapRequest): Promise<EncodedImage> {
    return this.renderQueue.run(() => this.renderMapTile(request));
  }

  private async renderMapTile({
    collection,
    filter,
    source,
    renderParams: params,
    tile,
    size,
    buffer,
    format,
  }: MapRequest): Promise<EncodedImage> {
    requireMapTile(tile);
    const grid = gridByName(collection.grid);
    requireZoom(collection, tile, sideRatio(size, buffer));
    const { tile: reference } = await this.findReferenceTile(collection.id, source);
    if (!reference) return encodeEmptyTile(size + 2 * (buffer ?? 0), params, format);
    const look = await this.resolveStyle(reference, withReprojection(params, grid));
    requireZoom(collection, tile, sideRatio(size, buffer, look));
    const cut = look.algorithm ? borderPixels(look.algorithm) : 0;
    const pixels = mapPixelCentres(tile, size, grid, buffer ?? cut);
    requireValues(reference, look, pixels.xs.length, pixels.ys.length);
    const bbox = pixelBbox(pixels, grid);
    const here = and([ofCollection(collection.id), { op: 's_intersects', shape: { bbox } }, filter]);
    const groups = tilesByCloudCover(this.finder, here);
    const picture = await mosaic(this.renderContext, groups, pixels, look);
    const side = mapPixelSize(tile, size);
    return this.encode({ ...renderTaskOf(look), picture, pixel: { x: side, y: side }, cut }, look, format);
  }

  /** All that a tile holds in a part of its cell, clear or not. Throws as `makeOutputTile`. */
  preview(
    tile: TileRecord,
    params: RenderParams,
    format: ImageFormat | undefined,
    part: CellPart = FULL_CELL,
  ): Promise<EncodedImage> {
    return this.renderQueue.run(() => this.renderPreview(tile, params, format, part));
  }

  private async renderPreview(
    tile: TileRecord,
    params: RenderParams,
    format: ImageFormat | undefined,
    part: CellPart,
  ): Promise<EncodedImage> {
    const look = await this.resolveStyle(tile, params);
    const [group] = tile.groups;
    const [width, height] = [group.width * (part.east - part.west), group.height * (part.south - part.north)];
    const share = Math.min(1, PREVIEW_SIDE_PX / Math.max(width, height));
    const view = cellPartViewport(
      Math.max(1, Math.round(width * share)),
      Math.max(1, Math.round(height * share)),
      part,
    );
    requireValues(tile, look, view.columns.length, view.rows.length);
    const planes = await renderTilePlanes(this.renderContext, tile, view, look);
    const picture = { width: view.columns.length, height: view.rows.length, planes };
    // Nothing beyond the cell is read, so nothing is cut off unless that is asked for.
    const cut = look.algorithm?.params['buffer'] ?? 0;
    const pixel = previewPixel(tile, view);
    return this.encode({ ...renderTaskOf(look), picture, pixel, cut }, look, format);
  }

  /** Returns the colour scale of a preview; undefined if the preview shows three bands or codes. Throws the errors of `preview`. */
  async colourScale(tile: TileRecord, look: RenderParams): Promise<ColourScale | undefined> {
    return colourScaleOf(await this.resolveStyle(tile, look));
  }

  /** Where a look of a collection can be shown; undefined where it has no tiles. Throws what a map tile of it would. */
  async mapExtent({
    collection,
    source,
    renderParams: params,
    size,
    buffer,
  }: Pick<MapRequest, 'collection' | 'source' | 'renderParams' | 'size' | 'buffer'>): Promise<
    MapExtent | undefined
  > {
    const [{ tile: reference }, { extents, unanswered }] = await Promise.all([
      this.findReferenceTile(collection.id, source),
      this.finder.extents(),
    ]);
    const extent = extents.get(collection.id);
    if (!reference || !extent) return undefined;
    const look = await this.resolveStyle(reference, params);
    const colourScale = colourScaleOf(look);
    const { bbox, start, end } = extent;
    // TileJSON forbids bounds that cross the antimeridian; the centre may still be that of what there is.
    const isCrossing = bbox[0] > bbox[2];
    const bounds: Bbox = isCrossing ? [-180, bbox[1], 180, bbox[3]] : bbox;
    const unwrapped: Bbox = isCrossing ? [bbox[0], bbox[1], bbox[2] + 360, bbox[3]] : bbox;
    const minZoom = smallestZoom(collection, sideRatio(size, buffer, look));
    const finest = Math.max(finestZoom(reference), zoomOfFinest(collection, (bounds[1] + bounds[3]) / 2));
    const maxZoom = Math.max(minZoom, finest);
    const fit = zoomOf(unwrapped);
    const shown = fit < minZoom ? cellBbox(gridByName(reference.grid), reference.geocode) : unwrapped;
    const [west, south, east, north] = shown;
    const zoom = Math.min(maxZoom, Math.max(minZoom, zoomOf(shown)));
    const middle = (west + east) / 2;
    const longitude = middle > 180 ? middle - 360 : middle;
    const center: MapExtent['center'] = [longitude, (south + north) / 2, zoom];
    return { bounds, minZoom, maxZoom, center, start, end, colourScale, ...(unanswered && { unanswered }) };
  }

  /** Values of an expression at a place by date. Throws what `readSeries` throws. */
  series(request: TimeSeriesRequest): Promise<Series> {
    return readSeries(this.querySeries, (filter) => this.finder.boundsOf(filter), request);
  }

  /** Spectra of a place by date. Throws what `readSpectra` throws. */
  spectra(request: SpectraSeriesRequest): Promise<Spectra> {
    return readSpectra(this.querySpectra, (filter) => this.finder.boundsOf(filter), request);
  }

  close(): Promise<void> {
    return this.pool.close();
  }

  private resolveStyle(reference: TileRecord, params: RenderParams): Promise<RenderStyle> {
    // A hash: parameters can be as long as an address.
    const asked = JSON.stringify([reference.id, reference.version, params]);
    const key = createHash('sha256').update(asked).digest('base64url');
    return this.styles.get(key, () => resolveRenderStyle(this.renderContext, reference, params));
  }

  /**
   * The tile that all map tiles of a collection take their look from, so that neighbouring map tiles look alike: the oldest of the fullest.
   * Where nobody answers for some, one of the others.
   */
  private findReferenceTile(collection: string, source: TileSource): Promise<ReferenceTile> {
    const key = `${collection} ${source}`;
    const known = this.referenceTiles.get(key);
    if (known) return known();
    const filter = and([ofCollection(collection), { op: '=', property: 'source', value: source }]);
    const search = createSearch(filter, { order: BY_COVERAGE, limit: 1 });
    const find = memoizeUntilChange(this.owners, async () => {
      const { tiles, unanswered } = await this.finder.find(search);
      return { tile: tiles[0], ...(unanswered && { unanswered }) };
    });
    this.referenceTiles.set(key, find);
    return find();
  }

  private async encode(
    order: RenderTask,
    { opacity }: RenderStyle,
    format: ImageFormat | undefined,
  ): Promise<EncodedImage> {
    const { width, height, pixels } = await this.render(order);
    const chosen = format ?? (isTransparent(pixels) ? 'png' : 'jpeg');
    return { bytes: await encodeImage(pixels, width, height, chosen, opacity), format: chosen };
  }

  /** Algorithms and formulas take tens of milliseconds, in which other requests shall be answered. */
  private async render(order: RenderTask): Promise<RenderedImage> {
    if (!order.algorithm && !order.style.formula) return renderImage(order);
    const transfer = order.picture.planes.map(({ buffer }) => buffer as ArrayBuffer);
    const result = await this.pool.run({ kind: 'render', order }, { transfer });
    return (result as Extract<ImageryResult, { kind: 'render' }>).rendered;
  }
}

const renderTaskOf = ({ algorithm, ranges, colouring, formula }: RenderStyle) => ({
  algorithm,
  style: { ranges, colouring, formula },
});

/** Cells in EPSG:3857 are not reprojected for a map. */
const withReprojection = (params: RenderParams, { epsg }: Grid): RenderParams =>
  params.reproject !== undefined && epsg !== 3857 ? { ...params, resampling: params.reproject } : params;

async function encodeEmptyTile(
  size: number,
  { return_mask }: RenderParams,
  format: ImageFormat = 'png',
): Promise<EncodedImage> {
  const pixels = new Uint8Array(4 * size * size);
  return { bytes: await encodeImage(pixels, size, size, format, return_mask !== false), format };
}

const ofCollection = (id: string): Filter => ({ op: '=', property: 'collection', value: id });

function requireMapTile({ z, x, y }: MapTile): void {
  const inside = (value: number, count: number) => Number.isInteger(value) && value >= 0 && value < count;
  if (!inside(z, MAX_ZOOM + 1) || !inside(x, 2 ** z) || !inside(y, 2 ** z))
    throw noMapTile(String(z), String(x), String(y));
}

/** The box around the centres of a map tile's pixels: what only touches its edge does not count. It ends at the antimeridian. */
function pixelBbox({ xs, ys }: { xs: Float64Array; ys: Float64Array }, grid: Grid): Bbox {
  const [west, north] = grid.toLonLat(xs[0], ys[0]);
  const [east, south] = grid.toLonLat(xs[xs.length - 1], ys[ys.length - 1]);
  return [Math.max(-180, west), south, Math.min(180, east), north];
}

/** Size of a pixel of a view of a tile, metres of EPSG:3857 in the middle of its cell. */
function previewPixel({ grid: name, geocode }: TileRecord, { columnStep, rowStep }: Viewport): MapPixelSize {
  const grid = gridByName(name);
  const { west, south, east, north } = grid.bounds(geocode);
  const toMap = (x: number, y: number) => quadtile.fromLonLat(...grid.toLonLat(x, y));
  const [x, y] = [(west + east) / 2, (south + north) / 2];
  const across = (east - west) * columnStep;
  const down = (north - south) * rowStep;
  return {
    x: toMap(x + across / 2, y)[0] - toMap(x - across / 2, y)[0],
    y: toMap(x, y + down / 2)[1] - toMap(x, y - down / 2)[1],
  };
}

function requireZoom(collection: CollectionRecord, { z }: MapTile, share: number): void {
  const smallest = smallestZoom(collection, share);
  if (z < smallest) throw zoomTooLow(collection.id, z, smallest);
}

function requireValues(tile: TileRecord, { expressions }: RenderStyle, width: number, height: number): void {
  const bands = resolveBands(expressions, tile.groups).indices.length;
  if (width * height * (bands + expressions.length) > MAX_VALUES)
    throw tooManyValues(width, height, bands, expressions.length, MAX_VALUES);
}

/**
 * The side of what is read for a map tile, with the pixels beyond the tile that a request asks for, as a multiple of the tile's side.
 * The few that an algorithm reads by itself do not count, so that it can be used at each zoom.
 */
const sideRatio = (size: number, buffer: number | undefined, look?: RenderStyle): number =>
  1 + (2 * (buffer ?? look?.algorithm?.params['buffer'] ?? 0)) / size;

/**
 * The smallest zoom at which a map tile never shows more than 256 cells. Cells are counted where they are the most: at the equator.
 * `share`: the side of what is shown, as a multiple of that of a map tile.
 */
function smallestZoom({ grid: name, precision }: CollectionRecord, share: number): number {
  const grid = gridByName(name);
  const { width, height } = grid.cellSize(precision);
  const across = (grid.extent.east - grid.extent.west) / width;
  // A map tile at the equator is as high as it is wide; latitudes of the whole grid span half of its longitudes.
  const down = grid.epsg === 3857 ? across : (2 * (grid.extent.north - grid.extent.south)) / height;
  for (let zoom = 0; ; zoom++) if (across * down * (share / 2 ** zoom) ** 2 <= MAX_CELLS) return zoom;
}

/** Pixels that a whole extent shall fit into. */
const VIEW_SIDE_PX = 512;

/** The largest zoom at which an extent fits into a view. */
function zoomOf([west, south, east, north]: Bbox): number {
  const [left, bottom] = quadtile.fromLonLat(west, Math.max(south, -MAX_LATITUDE));
  const [right, top] = quadtile.fromLonLat(east, Math.min(north, MAX_LATITUDE));
  const world = quadtile.extent.east - quadtile.extent.west;
  const side = Math.max(right - left, top - bottom);
  return Math.max(0, Math.floor(Math.log2((world / side) * (VIEW_SIDE_PX / 256))));
}

/** The zoom whose pixels are as fine as a tile's finest ones. */
function finestZoom({ grid: name, geocode, groups }: TileRecord): number {
  const grid = gridByName(name);
  const { west, south, east, north } = grid.bounds(geocode);
  const toMap = (x: number, y: number) => quadtile.fromLonLat(...grid.toLonLat(x, y))[0];
  const metres = toMap(east, south) - toMap(west, north);
  return zoomOfPixel(metres / Math.max(...groups.map((group) => group.width)));
}

/** Likewise of the finest pixels that a collection has; 0 where it does not say. */
function zoomOfFinest({ pixelSizes = [] }: CollectionRecord, latitude: number): number {
  const ground = Math.min(...pixelSizes.flat().map(({ x, y }) => Math.max(x, y)));
  return zoomOfPixel(ground / Math.cos((Math.min(Math.abs(latitude), MAX_LATITUDE) * Math.PI) / 180));
}

/** Of a pixel in metres of the map, which are longer than those on the ground. */
function zoomOfPixel(metres: number): number {
  const world = quadtile.extent.east - quadtile.extent.west;
  return Math.min(MAX_ZOOM, Math.max(0, Math.ceil(Math.log2(world / 256 / metres) - 0.1)));
}
