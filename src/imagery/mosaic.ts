/**
 * Mosaics of tiles: each pixel is taken from the least cloudy tile in which it is clear, or is the median of several clear tiles. Tiles are
 * found from the least cloudy on in batches, because usually the first tiles suffice.
 */

import type { TaskPool } from '../async/index.js';
import { type Expression, hasBands, type Program, resolveBands } from '../expressions/index.js';
import { type GridBounds, gridByName } from '../grid/index.js';
import { createSearch, type Filter, slotsUnanswered, type TileFinder } from '../query/index.js';
import { Mask } from '../raster/index.js';
import type { SortOrder, Storage, TileRecord } from '../storage/index.js';
import { medianOfSorted } from '../utils/sorted.js';
import type { Planes } from './algorithms.js';
import { bandFiles, groupsOf, isClear, maskFile } from './band-files.js';
import { RENDER_HANDLERS, type RenderHandlers } from './render.js';
import {
  MAX_MAIN_THREAD_STEPS,
  type ResampleContext,
  type ResampleHandlers,
  type ResamplingMethod,
  resampleBand,
} from './resample.js';
import { type MapPixelCentres, type Viewport, viewportOfCell } from './viewport.js';

/**
 * How a pixel is chosen, by the names of titiler's `pixel_selection`. `first`: the least cloudy clear tile. `median`: the median of each
 * plane over several clear tiles, which hides borders between dates.
 */
export const PIXEL_SELECTIONS = ['first', 'median'] as const;

export type PixelSelection = (typeof PIXEL_SELECTIONS)[number];

/** Maximum number of tiles of a cell in a median, the least cloudy first. */
export const MAX_MEDIAN_TILES = 9;

/** The median of each pixel over the layers that have a value there; NaN if none has. An even number of values has the mean of two. */
function medianOfLayers(layers: readonly Float64Array[], length: number): Float64Array {
  const medians = new Float64Array(length).fill(NaN);
  const values = new Float64Array(layers.length);
  for (let i = 0; i < length; i++) {
    let count = 0;
    for (const layer of layers) if (!Number.isNaN(layer[i])) values[count++] = layer[i]!;
    if (count === 0) continue;
    medians[i] = medianOfSorted(values.subarray(0, count).sort());
  }
  return medians;
}

/** The bands of an image. */
export interface RenderedBands {
  /** One expression for each plane of the image. */
  expressions: Expression[];
  resampling: ResamplingMethod;
  /** Replaces the nodata values of the files. */
  nodata?: number | undefined;
}

/** The tile store, and the threads that render. */
export interface RenderContext extends ResampleContext {
  storage: Storage;
  pool: TaskPool<ResampleHandlers & RenderHandlers>;
}

/**
 * How a pixel of a tile can be used. A pixel that was not assessed for cloud is used if no date is clear there. `filler`: a pixel without
 * data in the file, which another nodata value shows; it is used if no date has data there.
 */
const Use = { none: 0, filler: 1, notAssessed: 2, clear: 3 } as const;

/** Returns how the pixels of `open` that are not 0 can be used; undefined if none can. Codes of a mask are never interpolated. */
async function usablePixels(
  source: RenderContext,
  tile: TileRecord,
  view: Viewport,
  { expressions, nodata }: RenderedBands,
  open: Uint8Array,
): Promise<Uint8Array | undefined> {
  const { storage } = source;
  const mask = maskFile(storage, tile, resolveBands(expressions, tile.groups).indices);
  if (!mask) return open.map((isOpen) => (isOpen ? Use.clear : Use.none));
  await storage.ensureFiles(tile, groupsOf(tile, [], true));
  const codes = await resampleBand(source, mask, view, 'nearest');
  const useOf = (code: number) => {
    if (code === Mask.nodata) return nodata === undefined ? Use.none : Use.filler;
    return code === Mask.notAssessed ? Use.notAssessed : isClear(code) ? Use.clear : Use.none;
  };
  const uses = open.map((isOpen, i) => (isOpen ? useOf(codes[i]) : Use.none));
  return uses.some((use) => use !== Use.none) ? uses : undefined;
}

/** The planes of a view of one tile, and how their pixels can be used. */
async function renderUses(
  source: RenderContext,
  tile: TileRecord,
  view: Viewport,
  subject: RenderedBands,
  usable: Uint8Array,
): Promise<{ planes: Float64Array[]; uses: Uint8Array }> {
  const planes = await renderTilePlanes(source, tile, view, subject);
  if (subject.nodata === undefined) return { planes, uses: usable };
  const storedPlanes = await renderTilePlanes(source, tile, view, { ...subject, nodata: undefined });
  const uses = usable.map((use, i) =>
    storedPlanes.some((plane) => Number.isNaN(plane[i])) ? Math.min(use, Use.filler) : use,
  );
  return { planes, uses };
}

/** The planes of a view of one tile. Throws TW_IMAGERY_BAND, TW_IMAGERY_TILE_FILE. */
export async function renderTilePlanes(
  source: RenderContext,
  tile: TileRecord,
  view: Viewport,
  { expressions, resampling, nodata }: RenderedBands,
): Promise<Float64Array[]> {
  const { storage } = source;
  const { programs, indices } = resolveBands(expressions, tile.groups);
  await storage.ensureFiles(tile, groupsOf(tile, indices));
  const bands = bandFiles(storage, tile, indices, nodata);
  const values = await Promise.all(bands.map((band) => resampleBand(source, band, view, resampling)));
  const length = view.columns.length * view.rows.length;
  return evaluateAll(source, programs, values, length);
}

async function evaluateAll(
  { pool }: RenderContext,
  programs: Program[],
  bands: Float64Array[],
  length: number,
): Promise<Float64Array[]> {
  const steps = programs.reduce((sum, program) => sum + program.steps.length, 0);
  if (steps * length <= MAX_MAIN_THREAD_STEPS) return RENDER_HANDLERS.evaluate({ programs, bands, length });
  const transfer = bands.map(({ buffer }) => buffer as ArrayBuffer);
  return pool.run({ kind: 'evaluate', programs, bands, length }, { transfer });
}

/** The pixels of an image that one cell covers. */
interface CellMosaic {
  view: Viewport;
  /** `Unfilled` of each pixel; of a median, `empty` for all pixels. */
  unfilled: Uint8Array;
  /** Number of pixels that are not `done`. */
  unfilledCount: number;
  /** Planes of the tiles of a median, NaN for pixels that are not clear, and NaN for those that were assessed. */
  layers: Float64Array[][];
  notAssessed: Float64Array[][];
  fillers: Float64Array[][];
}

/** `provisional`: the value was not assessed for cloud, and a clear one replaces it. `filler`: see `Use`. */
const Unfilled = { done: 0, empty: 1, filler: 2, provisional: 3 } as const;

/** Limit of tiles that are read for one image. */
const MAX_TILES = 1024;

/**
 * The mosaic of a map tile. `groups` yields tiles, least cloudy first; it is read until all pixels are filled, all cells have the tiles of
 * their median, or 1,024 tiles were read. Tiles without the bands of `subject` are skipped, such as predictions of another kind of model.
 */
export async function mosaic(
  source: RenderContext,
  groups: AsyncIterable<TileRecord[]>,
  pixels: MapPixelCentres,
  subject: RenderedBands,
  selection: PixelSelection = 'first',
): Promise<Planes> {
  const add = selection === 'median' ? addLayer : composite;
  const [width, height] = [pixels.xs.length, pixels.ys.length];
  const planes = subject.expressions.map(() => new Float64Array(width * height).fill(NaN));
  const picture: Planes = { width, height, planes };
  const parts = new Map<string, CellMosaic | undefined>();
  let open = width * height;
  let seen = 0;
  for await (const tiles of groups) {
    // Cells share no pixel, so they are rendered in parallel; the tiles of one cell are rendered in order.
    const dates = new Map<CellMosaic, TileRecord[]>();
    for (const tile of tiles.slice(0, MAX_TILES - seen)) {
      if (!parts.has(tile.geocode))
        parts.set(tile.geocode, newCellMosaic(pixels, gridByName(tile.grid).bounds(tile.geocode)));
      const part = parts.get(tile.geocode);
      if (part) dates.set(part, [...(dates.get(part) ?? []), tile]);
    }
    await Promise.all(
      [...dates].map(async ([part, ofCell]) => {
        const before = part.unfilledCount;
        for (const tile of ofCell)
          if (part.unfilledCount > 0 && hasBands(subject.expressions, tile.groups))
            await add(source, tile, part, subject, picture);
        open -= before - part.unfilledCount;
      }),
    );
    seen += tiles.length;
    if (open === 0 || seen >= MAX_TILES) break;
  }
  for (const part of parts.values()) if (part && part.layers.length > 0) fillByMedian(part, picture);
  return picture;
}

function newCellMosaic(pixels: MapPixelCentres, bounds: GridBounds): CellMosaic | undefined {
  const view = viewportOfCell(pixels, bounds);
  if (!view) return undefined;
  const unfilledCount = view.columns.length * view.rows.length;
  const unfilled = new Uint8Array(unfilledCount).fill(Unfilled.empty);
  return { view, unfilled, unfilledCount, layers: [], notAssessed: [], fillers: [] };
}

/** Fills unfilled pixels of a part with the usable pixels of a tile. */
async function composite(
  source: RenderContext,
  tile: TileRecord,
  part: CellMosaic,
  subject: RenderedBands,
  picture: Planes,
): Promise<void> {
  const { view, unfilled } = part;
  // After a tile that was not assessed, only such tiles follow.
  const isLastResort = tile.cloudCover === null;
  const usable = await usablePixels(source, tile, view, subject, unfilled);
  const improves = (use: number, i: number) =>
    use === Use.clear ||
    (use > 0 && unfilled[i] === Unfilled.empty) ||
    (use > Use.filler && unfilled[i] === Unfilled.filler);
  if (isLastResort) closeProvisional(part);
  if (!usable?.some(improves)) return;
  const { planes, uses } = await renderUses(source, tile, view, subject, usable);
  for (let i = 0; i < uses.length; i++) {
    if (unfilled[i] === Unfilled.done || !improves(uses[i], i)) continue;
    if (planes.some((plane) => Number.isNaN(plane[i]))) continue;
    const to = pixelOf(view, i, picture.width);
    for (let p = 0; p < planes.length; p++) picture.planes[p][to] = planes[p][i];
    const isBest = uses[i] === Use.clear || isLastResort;
    unfilled[i] = uses[i] === Use.filler ? Unfilled.filler : isBest ? Unfilled.done : Unfilled.provisional;
    if (unfilled[i] === Unfilled.done) part.unfilledCount--;
  }
}

/** Keeps values that were not assessed, because no better ones can follow. */
function closeProvisional(part: CellMosaic): void {
  for (let i = 0; i < part.unfilled.length; i++) {
    if (part.unfilled[i] !== Unfilled.provisional) continue;
    part.unfilled[i] = Unfilled.done;
    part.unfilledCount--;
  }
}

/** Index in a picture of pixel `i` of a view. */
function pixelOf({ top, left, columns }: Viewport, i: number, width: number): number {
  const across = columns.length;
  return (top + Math.floor(i / across)) * width + left + (i % across);
}

/** Adds the usable pixels of a tile to the layers of a median. The part is complete with the last of them. */
async function addLayer(
  source: RenderContext,
  tile: TileRecord,
  part: CellMosaic,
  subject: RenderedBands,
): Promise<void> {
  const usable = await usablePixels(source, tile, part.view, subject, part.unfilled);
  if (!usable) return;
  const { planes, uses } = await renderUses(source, tile, part.view, subject, usable);
  const only = (use: number) =>
    planes.map((plane) => plane.map((value, i) => (uses[i] === use ? value : NaN)));
  part.layers.push(only(Use.clear));
  if (uses.includes(Use.notAssessed)) part.notAssessed.push(only(Use.notAssessed));
  if (uses.includes(Use.filler)) part.fillers.push(only(Use.filler));
  if (part.layers.length === MAX_MEDIAN_TILES) part.unfilledCount = 0;
}

function fillByMedian(part: CellMosaic, picture: Planes): void {
  const { view, unfilled, layers, notAssessed, fillers } = part;
  for (const [p, plane] of picture.planes.entries()) {
    const [best, ...others] = [layers, notAssessed, fillers].map((list) =>
      medianOfLayers(
        list.map((planes) => planes[p]!),
        unfilled.length,
      ),
    );
    for (const [i, value] of best.entries())
      plane[pixelOf(view, i, picture.width)] =
        [value, ...others.map((other) => other[i]!)].find((one) => !Number.isNaN(one)) ?? NaN;
  }
}

/** Unknown cloud cover is last. Ties are ordered newest first, then by collection and id. */
const BY_CLOUD_COVER: SortOrder = [{ column: 'cloud', descending: false }];
/** Tiles of the first batch. Each batch has twice as many as the one before, so that batches are few. */
const FIRST_BATCH_SIZE = 64;

/**
 * Yields batches of tiles in that order; the caller stops when it has enough. Throws TW_QUERY_UNANSWERED if nodes with other tiles do not
 * respond.
 */
export async function* tilesByCloudCover(
  finder: TileFinder,
  filter: Filter,
  signal?: AbortSignal,
): AsyncGenerator<TileRecord[]> {
  let token: string | undefined;
  for (let limit = FIRST_BATCH_SIZE; ; limit *= 2) {
    const search = createSearch(filter, {
      order: BY_CLOUD_COVER,
      limit,
      ...(token !== undefined && { token }),
    });
    const page = await finder.find(search, signal);
    if (page.unanswered) throw slotsUnanswered(page.unanswered.length);
    yield page.tiles;
    token = page.next;
    if (token === undefined) return;
  }
}
