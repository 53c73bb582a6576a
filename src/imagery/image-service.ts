/** Maps, previews and time series of stored tiles. */
import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { TaskPool } from '../async/index.js';
import type { OwnerQueries, ScatterQuery } from '../dht/index.js';
import { bandLayoutKey, resolveBands } from '../expressions/index.js';
import { type Bbox, type Grid, gridByName, quadtile } from '../grid/index.js';
import {
  and,
  createSearch,
  type Filter,
  memoizeUntilChange,
  type PartialAnswer,
  type TileFinder,
} from '../query/index.js';
import type { CollectionRecord, SortOrder, Storage, TileRecord, TileSource } from '../storage/index.js';
import { borderPixels, type MapPixelSize } from './algorithms.js';
import { encodeImage, type ImageFormat, isTransparent } from './colours.js';
import { noMapTile, tooManyValues, zoomTooLow } from './errors.js';
import {
  MAX_MEDIAN_TILES,
  mosaic,
  type PixelSelection,
  type RenderContext,
  renderTilePlanes,
  tilesByCloudCover,
} from './mosaic.js';
import { type RenderedImage, RenderQueue, type RenderTask, renderImage } from './render.js';
import {
  type PartialSpectra,
  readPartialSpectra,
  readSpectra,
  SPECTRA_QUERY,
  type Spectra,
  type SpectraQuery,
} from './spectra.js';
import {
  type ColourScale,
  colourScaleOf,
  hasRenderedBands,
  type RenderParams,
  type RenderStyle,
  renderStyleBytes,
  resolveRenderStyle,
} from './style.js';
import { BlockCache, TileReader } from './tile-reader.js';
import {
  type PartialSeries,
  readPartialSeries,
  readSeries,
  SERIES_QUERY,
  type Series,
  type SeriesQuery,
  type TimeSeriesRequest,
} from './time-series.js';
import {
  type CellPart,
  cellPartViewport,
  FULL_CELL,
  MAX_ZOOM,
  type MapTile,
  mapPixelCentres,
  mapPixelSize,
  mapView,
  smallestZoom,
  type Viewport,
} from './viewport.js';
import type { ImageryHandlers } from './worker.js';

interface ImageServiceOptions {
  storage: Storage;
  finder: TileFinder;
  owners: OwnerQueries;
  /** Number of worker threads, and of concurrent renderings. */
  cores?: number;
  /** Memory limit for decoded blocks, bytes. */
  cacheBytes?: number;
}

interface MapRequest {
  /** Ends the work if nobody waits for the picture any more. */
  signal?: AbortSignal;
  collection: CollectionRecord;
  /** Selects among the tiles of the collection in the map tile. */
  filter: Filter;
  /** Source of the reference tile, which determines defaults of the style. */
  source: TileSource;
  renderParams: RenderParams;
  tile: MapTile;
  /** Pixels of a side: 256 or 512. */
  size: number;
  /** Additional pixels on each side of the tile, a multiple of 0.5. Default: the pixels that the algorithm needs and cuts off. */
  buffer?: number | undefined;
  /** Default: `first`. */
  pixelSelection?: PixelSelection | undefined;
  /** Default: PNG if a pixel is transparent, else JPEG. */
  format: ImageFormat | undefined;
}

export interface EncodedImage {
  bytes: Buffer;
  format: ImageFormat;
}

/** The extent of a collection on a map. */
interface MapExtent extends PartialAnswer, ReturnType<typeof mapView> {
  /** Start and end of the data, milliseconds since 1970. */
  start: number | null;
  end: number | null;
  /** The colour scale, if the style shows one measured band. */
  colourScale: ColourScale | undefined;
}

const BLOCK_CACHE_BYTES = 128e6;
const STYLE_CACHE_BYTES = 1e6;
/** Limit of pixels x (bands + expressions) of an image: 128 MB. */
const MAX_VALUES = 16e6;
/** Limit of waiting renderings. A browser sends at most some tens. */
const MAX_QUEUED_RENDERS = 1000;
/** Highest pixel coverage first, then oldest first, so that new dates rarely change the first tile. */
const BY_COVERAGE: SortOrder = [
  { column: 'coverage', descending: true },
  { column: 'start', descending: false },
];
/** Longest side of a preview. */
const PREVIEW_SIDE_PX = 512;

/** Limit of tiles among which the band layouts of a collection are looked for. */
const MAX_LAYOUT_TILES = 1024;

/** Tiles from which the style of a collection can be derived, and whether some nodes did not respond. */
interface ReferenceTiles extends PartialAnswer {
  tiles: TileRecord[];
}

/** Invariant: the threads run until `close`; all cached data comes from file versions, which never change. */
export class ImageService {
  private readonly pool: TaskPool<ImageryHandlers>;
  private readonly renderQueue: RenderQueue;
  private readonly renderContext: RenderContext;
  private readonly finder: TileFinder;
  private readonly owners: OwnerQueries;
  private readonly querySeries: ScatterQuery<SeriesQuery, PartialSeries>;
  private readonly querySpectra: ScatterQuery<SpectraQuery, PartialSpectra>;
  private readonly referenceTiles = new Map<string, () => Promise<ReferenceTiles>>();
  private readonly styles = new BlockCache<RenderStyle>(STYLE_CACHE_BYTES, renderStyleBytes);

  constructor({
    storage,
    finder,
    owners,
    cores = availableParallelism(),
    cacheBytes = BLOCK_CACHE_BYTES,
  }: ImageServiceOptions) {
    this.pool = new TaskPool(new URL('./worker.bundle.js', import.meta.url), cores);
    this.renderQueue = new RenderQueue(cores, MAX_QUEUED_RENDERS);
    this.finder = finder;
    this.owners = owners;
    this.querySeries = owners.register(SERIES_QUERY, (query, share) =>
      readPartialSeries(storage, this.pool, query, share),
    );
    this.querySpectra = owners.register(SPECTRA_QUERY, (query, share) =>
      readPartialSpectra(storage, this.pool, query, share),
    );
    this.renderContext = { storage, reader: new TileReader(this.pool, cacheBytes), pool: this.pool };
  }

  /**
   * Renders a map tile of a collection. Each pixel is taken from the least cloudy tile in which it is clear, or is the median of several;
   * pixels without a clear tile are transparent. Throws TW_IMAGERY_NO_MAP_TILE, _ZOOM, _EXPRESSION, _BAND, _LOOK, _TOO_MANY_VALUES, _BUSY,
   * _TILE_FILE, and TW_QUERY_UNANSWERED.
   */
  mapTile(request: MapRequest): Promise<EncodedImage> {
    return this.renderQueue.run(() => this.renderMapTile(request), request.signal);
  }

  private async renderMapTile({
    collection,
    filter,
    source,
    renderParams: params,
    tile,
    size,
    buffer,
    pixelSelection = 'first',
    format,
    signal,
  }: MapRequest): Promise<EncodedImage> {
    requireMapTile(tile);
    const grid = gridByName(collection.grid);
    requireZoom(collection, tile, sideRatio(size, buffer));
    const reference = await this.findReferenceTile(collection.id, source, params);
    if (!reference) return encodeEmptyTile(size + 2 * (buffer ?? 0), params, format);
    const style = await this.resolveStyle(reference, withReprojection(params, grid));
    requireZoom(collection, tile, sideRatio(size, buffer, style));
    const cut = style.algorithm ? borderPixels(style.algorithm) : 0;
    const pixels = mapPixelCentres(tile, size, grid, buffer ?? cut);
    const layers = pixelSelection === 'median' ? MAX_MEDIAN_TILES : 1;
    requireValues(reference, style, layers * pixels.xs.length, pixels.ys.length);
    const bbox = pixelBbox(pixels, grid);
    const inTile = and([ofCollection(collection.id), { op: 's_intersects', shape: { bbox } }, filter]);
    const groups = tilesByCloudCover(this.finder, inTile, signal);
    const picture = await mosaic(this.renderContext, groups, pixels, style, pixelSelection);
    const side = mapPixelSize(tile, size);
    return this.encode(style, { picture, pixel: { x: side, y: side }, cut }, format);
  }

  /** Renders all pixels of a part of a tile, clear or not. Throws the errors of `mapTile`. */
  preview(
    tile: TileRecord,
    params: RenderParams,
    format: ImageFormat | undefined,
    { part = FULL_CELL, signal }: { part?: CellPart; signal?: AbortSignal } = {},
  ): Promise<EncodedImage> {
    return this.renderQueue.run(() => this.renderPreview(tile, params, format, part), signal);
  }

  private async renderPreview(
    tile: TileRecord,
    params: RenderParams,
    format: ImageFormat | undefined,
    part: CellPart,
  ): Promise<EncodedImage> {
    const style = await this.resolveStyle(tile, params);
    const [group] = tile.groups;
    const width = group.width * (part.east - part.west);
    const height = group.height * (part.south - part.north);
    const share = Math.min(1, PREVIEW_SIDE_PX / Math.max(width, height));
    const view = cellPartViewport(
      Math.max(1, Math.round(width * share)),
      Math.max(1, Math.round(height * share)),
      part,
    );
    requireValues(tile, style, view.columns.length, view.rows.length);
    const planes = await renderTilePlanes(this.renderContext, tile, view, style);
    const picture = { width: view.columns.length, height: view.rows.length, planes };
    // No pixels beyond the cell are read, so none are cut off unless a buffer is requested.
    const cut = style.algorithm?.params['buffer'] ?? 0;
    const pixel = previewPixel(tile, view);
    return this.encode(style, { picture, pixel, cut }, format);
  }

  /** Returns the colour scale of a preview; undefined if the preview shows three bands or codes. Throws the errors of `preview`. */
  async colourScale(tile: TileRecord, params: RenderParams): Promise<ColourScale | undefined> {
    return colourScaleOf(await this.resolveStyle(tile, params));
  }

  /** Returns the extent of maps of a collection; undefined if it has no tiles. Throws the errors of `mapTile`. */
  async mapExtent({
    collection,
    source,
    renderParams: params,
    size,
    buffer,
  }: Pick<MapRequest, 'collection' | 'source' | 'renderParams' | 'size' | 'buffer'>): Promise<
    MapExtent | undefined
  > {
    const [reference, { extents, unanswered }] = await Promise.all([
      this.findReferenceTile(collection.id, source, params),
      this.finder.extents(),
    ]);
    const extent = extents.get(collection.id);
    if (!reference || !extent) return undefined;
    const style = await this.resolveStyle(reference, params);
    const { bbox, start, end } = extent;
    const minZoom = smallestZoom(collection, sideRatio(size, buffer, style));
    const view = mapView(collection, reference, bbox, minZoom);
    const colourScale = colourScaleOf(style);
    return { ...view, start, end, colourScale, ...(unanswered && { unanswered }) };
  }

  /** Statistics of an expression in a zone by date. Throws the errors of `readSeries`. */
  series(request: TimeSeriesRequest, signal?: AbortSignal): Promise<Series> {
    return readSeries(this.querySeries, (filter) => this.finder.boundsOf(filter), request, signal);
  }

  /** Spectra of a zone by date. Throws the errors of `readSpectra`. */
  spectra(request: SpectraQuery, signal?: AbortSignal): Promise<Spectra> {
    return readSpectra(this.querySpectra, (filter) => this.finder.boundsOf(filter), request, signal);
  }

  close(): Promise<void> {
    return this.pool.close();
  }

  private resolveStyle(reference: TileRecord, params: RenderParams): Promise<RenderStyle> {
    // The key is a hash, because parameters can be as long as a URL.
    const text = JSON.stringify([reference.id, reference.version, params]);
    const key = createHash('sha256').update(text).digest('base64url');
    return this.styles.get(key, () => resolveRenderStyle(this.renderContext, reference, params));
  }

  /**
   * The tile from which the default style of a collection is derived, so that neighbouring map tiles match: the oldest among those with the
   * highest coverage that have the bands of the image. Undefined if the collection has no tiles. If nodes do not respond, it is chosen
   * among the tiles of the other nodes. If no tile has the bands, it is the first tile, whose bands the error lists.
   */
  private async findReferenceTile(
    collection: string,
    source: TileSource,
    params: RenderParams,
  ): Promise<TileRecord | undefined> {
    const [first] = (await this.findReferenceTiles(collection, source, 1)).tiles;
    if (!first || hasRenderedBands(first, params)) return first;
    const { tiles } = await this.findReferenceTiles(collection, source, MAX_LAYOUT_TILES);
    return tiles.find((tile) => hasRenderedBands(tile, params)) ?? first;
  }

  /** The first tile of each band layout among `limit` tiles. */
  private findReferenceTiles(collection: string, source: TileSource, limit: number): Promise<ReferenceTiles> {
    const key = `${collection} ${source} ${limit}`;
    const known = this.referenceTiles.get(key);
    if (known) return known();
    const filter = and([ofCollection(collection), { op: '=', property: 'source', value: source }]);
    const search = createSearch(filter, { order: BY_COVERAGE, limit });
    const find = memoizeUntilChange(this.owners, async () => {
      const { tiles, unanswered } = await this.finder.find(search);
      const layouts = new Map(
        tiles.toReversed().map((tile): [string, TileRecord] => [bandLayoutKey(tile.groups), tile]),
      );
      return { tiles: [...layouts.values()].toReversed(), ...(unanswered && { unanswered }) };
    });
    this.referenceTiles.set(key, find);
    return find();
  }

  private async encode(
    { algorithm, ranges, colouring, formula, opacity }: RenderStyle,
    image: Pick<RenderTask, 'picture' | 'pixel' | 'cut'>,
    format: ImageFormat | undefined,
  ): Promise<EncodedImage> {
    const task = { ...image, algorithm, style: { ranges, colouring, formula } };
    const { width, height, pixels } = await this.render(task);
    const chosen = format ?? (isTransparent(pixels) ? 'png' : 'jpeg');
    return { bytes: await encodeImage(pixels, width, height, chosen, opacity), format: chosen };
  }

  /** Algorithms and formulas take tens of milliseconds, so they run in a worker thread. */
  private async render(task: RenderTask): Promise<RenderedImage> {
    if (!task.algorithm && !task.style.formula) return renderImage(task);
    const transfer = task.picture.planes.map(({ buffer }) => buffer as ArrayBuffer);
    return this.pool.run({ kind: 'render', ...task }, { transfer });
  }
}

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

/**
 * The box around the pixel centres of a map tile, clipped at the antimeridian. Cells that only touch the edge of the map tile are outside.
 */
function pixelBbox({ xs, ys }: { xs: Float64Array; ys: Float64Array }, grid: Grid): Bbox {
  const [west, north] = grid.toLonLat(xs[0], ys[0]);
  const [east, south] = grid.toLonLat(xs[xs.length - 1], ys[ys.length - 1]);
  return [Math.max(-180, west), south, Math.min(180, east), north];
}

/** Size of a pixel of a preview, metres of EPSG:3857 in the middle of the cell. */
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
 * The side of the area that is read for a map tile with a requested buffer, as a multiple of the side of the tile. The few additional
 * pixels of an algorithm do not count, so that it can be used at every zoom.
 */
const sideRatio = (size: number, buffer: number | undefined, style?: RenderStyle): number =>
  1 + (2 * (buffer ?? style?.algorithm?.params['buffer'] ?? 0)) / size;
