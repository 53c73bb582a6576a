/** Pictures put together from the tiles of a place: for each pixel the first tile, least cloudy first, that shows the ground. */

import { type Expression, evaluateProgram, type Program, resolveBands } from '../../expressions/index.js';
import { type GridBounds, gridByName } from '../../grid/index.js';
import type { Storage, TileRecord } from '../../storage/index.js';
import type { ImageryResult } from '../imagery-tasks.js';
import { bandFiles, groupsOf, maskFile } from '../reading/band-files.js';
import { isClear } from '../reading/clear-pixels.js';
import {
  MAX_MAIN_THREAD_STEPS,
  type ResampleContext,
  type ResamplingMethod,
  resampleBand,
} from '../resampling/index.js';
import { type MapPixelCentres, type Viewport, viewportOfCell } from './viewport.js';

/** What a picture shows. */
export interface RenderedBands {
  /** One for each plane of the picture. */
  expressions: Expression[];
  resampling: ResamplingMethod;
  /** Takes the place of the nodata values of the files. */
  nodata?: number | undefined;
}

/** Planes of physical values, row by row; NaN in all planes where there is nothing to show. */
export interface RasterImage {
  width: number;
  height: number;
  planes: Float64Array[];
}

/** A picture of these many planes without anything in it. */
function emptyImage(width: number, height: number, planes: number): RasterImage {
  const blank = () => new Float64Array(width * height).fill(NaN);
  return { width, height, planes: Array.from({ length: planes }, blank) };
}

/** The source of pictures, and the threads that draw them. */
export interface RenderContext extends ResampleContext {
  storage: Storage;
}

/**
 * Which pixels of a view of a tile show clear ground, of those that are still `open`; undefined where none does. The codes of
 * a mask are never mixed.
 */
async function clearPixels(
  source: RenderContext,
  tile: TileRecord,
  view: Viewport,
  { expressions }: RenderedBands,
  open: Uint8Array,
): Promise<Uint8Array | undefined> {
  const { storage } = source;
  const mask = maskFile(storage, tile, resolveBands(expressions, tile.groups).indices);
  if (!mask) return open;
  await storage.ensureFiles(tile, groupsOf(tile, [], true));
  const codes = await resampleBand(source, mask, view, 'nearest');
  const clear = open.map((wanted, i) => (wanted && isClear(codes[i]) ? 1 : 0));
  return clear.includes(1) ? clear : undefined;
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
  if (steps * length <= MAX_MAIN_THREAD_STEPS)
    return programs.map((program) => evaluateProgram(program, bands, length));
  const transfer = bands.map(({ buffer }) => buffer as ArrayBuffer);
  const result = await pool.run({ kind: 'evaluate', programs, bands, length }, { transfer });
  return (result as Extract<ImageryResult, { kind: 'planes' }>).planes;
}

/** The pixels of a picture that one cell fills. */
interface CellMosaic {
  view: Viewport;
  /** 1 for those that nothing has been found for yet. */
  unfilled: Uint8Array;
  /** How many these are. */
  unfilledCount: number;
}

/** More tiles than this are not looked at for one picture. */
const MAX_TILES = 1024;

/**
 * The mosaic of a map tile. `groups` are tiles, least cloudy first; they are asked for as long as pixels are open, and no
 * more than 1,024 tiles are looked at.
 */
export async function mosaic(
  source: RenderContext,
  groups: AsyncIterable<TileRecord[]>,
  pixels: MapPixelCentres,
  subject: RenderedBands,
): Promise<RasterImage> {
  const picture = emptyImage(pixels.xs.length, pixels.ys.length, subject.expressions.length);
  const parts = new Map<string, CellMosaic | undefined>();
  let open = picture.width * picture.height;
  let seen = 0;
  for await (const tiles of groups) {
    // Cells share no pixel, so they are drawn side by side; the tiles of one come one after another.
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
          if (part.unfilledCount > 0) await composite(source, tile, part, subject, picture);
        open -= before - part.unfilledCount;
      }),
    );
    seen += tiles.length;
    if (open === 0 || seen >= MAX_TILES) break;
  }
  return picture;
}

function newCellMosaic(pixels: MapPixelCentres, bounds: GridBounds): CellMosaic | undefined {
  const view = viewportOfCell(pixels, bounds);
  if (!view) return undefined;
  const unfilledCount = view.columns.length * view.rows.length;
  return { view, unfilled: new Uint8Array(unfilledCount).fill(1), unfilledCount };
}

/** Fills the open pixels of a part for which a tile shows clear ground. */
async function composite(
  source: RenderContext,
  tile: TileRecord,
  part: CellMosaic,
  subject: RenderedBands,
  picture: RasterImage,
): Promise<void> {
  const { view, unfilled } = part;
  const clear = await clearPixels(source, tile, view, subject, unfilled);
  if (!clear) return;
  const planes = await renderTilePlanes(source, tile, view, subject);
  const across = view.columns.length;
  for (let i = 0; i < clear.length; i++) {
    if (clear[i] === 0 || planes.some((plane) => Number.isNaN(plane[i]))) continue;
    const to = (view.top + Math.floor(i / across)) * picture.width + view.left + (i % across);
    for (let p = 0; p < planes.length; p++) picture.planes[p][to] = planes[p][i];
    unfilled[i] = 0;
    part.unfilledCount--;
  }
}
