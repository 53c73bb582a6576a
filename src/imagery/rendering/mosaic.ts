/** Pictures put together from the tiles of a place: for each pixel the first tile, least cloudy first, that shows the ground. */

import { type Expression, evaluate, type Program, resolveBands } from '../../expressions/index.js';
import { type Bounds, gridByName } from '../../grid/index.js';
import type { Storage, TileRecord } from '../../storage/index.js';
import type { Result } from '../imagery-tasks.js';
import { bandFiles, groupsOf, maskFile } from '../reading/band-files.js';
import { isClear } from '../reading/clear-pixels.js';
import { MAX_STEPS_HERE, type Resampling, type SampleSource, sampleBand } from '../resampling/index.js';
import { type CellView, type MapPixels, viewOfCell } from './viewport.js';

/** What a picture shows. */
export interface Subject {
  /** One for each plane of the picture. */
  expressions: Expression[];
  resampling: Resampling;
  /** Takes the place of the nodata values of the files. */
  nodata?: number | undefined;
}

/** Planes of physical values, row by row; NaN in all planes where there is nothing to show. */
export interface Picture {
  width: number;
  height: number;
  planes: Float64Array[];
}

/** A picture of these many planes without anything in it. */
function emptyPicture(width: number, height: number, planes: number): Picture {
  const blank = () => new Float64Array(width * height).fill(NaN);
  return { width, height, planes: Array.from({ length: planes }, blank) };
}

/** The source of pictures, and the threads that draw them. */
export interface Source extends SampleSource {
  storage: Storage;
}

/**
 * Which pixels of a view of a tile show clear ground, of those that are still `open`; undefined where none does. The codes of
 * a mask are never mixed.
 */
async function clearPixels(
  source: Source,
  tile: TileRecord,
  view: CellView,
  { expressions }: Subject,
  open: Uint8Array,
): Promise<Uint8Array | undefined> {
  const { storage } = source;
  const mask = maskFile(storage, tile, resolveBands(expressions, tile.groups).places);
  if (!mask) return open;
  await storage.bringFiles(tile, groupsOf(tile, [], true));
  const codes = await sampleBand(source, mask, view, 'nearest');
  const clear = open.map((wanted, i) => (wanted && isClear(codes[i]) ? 1 : 0));
  return clear.includes(1) ? clear : undefined;
}

/** The planes of a view of one tile. Throws TW_IMAGERY_BAND, TW_IMAGERY_TILE_FILE. */
export async function planesOf(
  source: Source,
  tile: TileRecord,
  view: CellView,
  { expressions, resampling, nodata }: Subject,
): Promise<Float64Array[]> {
  const { storage } = source;
  const { programs, places } = resolveBands(expressions, tile.groups);
  await storage.bringFiles(tile, groupsOf(tile, places));
  const bands = bandFiles(storage, tile, places, nodata);
  const values = await Promise.all(bands.map((band) => sampleBand(source, band, view, resampling)));
  const length = view.columns.length * view.rows.length;
  return evaluateAll(source, programs, values, length);
}

async function evaluateAll(
  { pool }: Source,
  programs: Program[],
  bands: Float64Array[],
  length: number,
): Promise<Float64Array[]> {
  const steps = programs.reduce((sum, program) => sum + program.steps.length, 0);
  if (steps * length <= MAX_STEPS_HERE) return programs.map((program) => evaluate(program, bands, length));
  const transfer = bands.map(({ buffer }) => buffer as ArrayBuffer);
  const result = await pool.run({ kind: 'evaluate', programs, bands, length }, { transfer });
  return (result as Extract<Result, { kind: 'planes' }>).planes;
}

/** The pixels of a picture that one cell fills. */
interface CellPart {
  view: CellView;
  /** 1 for those that nothing has been found for yet. */
  open: Uint8Array;
  /** How many these are. */
  left: number;
}

/** More tiles than this are not looked at for one picture. */
const MAX_TILES = 1024;

/**
 * The mosaic of a map tile. `groups` are tiles, least cloudy first; they are asked for as long as pixels are open, and no
 * more than 1,024 tiles are looked at.
 */
export async function mosaic(
  source: Source,
  groups: AsyncIterable<TileRecord[]>,
  pixels: MapPixels,
  subject: Subject,
): Promise<Picture> {
  const picture = emptyPicture(pixels.xs.length, pixels.ys.length, subject.expressions.length);
  const parts = new Map<string, CellPart | undefined>();
  let open = picture.width * picture.height;
  let seen = 0;
  for await (const tiles of groups) {
    // Cells share no pixel, so they are drawn side by side; the tiles of one come one after another.
    const dates = new Map<CellPart, TileRecord[]>();
    for (const tile of tiles.slice(0, MAX_TILES - seen)) {
      if (!parts.has(tile.geocode))
        parts.set(tile.geocode, newPart(pixels, gridByName(tile.grid).bounds(tile.geocode)));
      const part = parts.get(tile.geocode);
      if (part) dates.set(part, [...(dates.get(part) ?? []), tile]);
    }
    await Promise.all(
      [...dates].map(async ([part, ofCell]) => {
        const before = part.left;
        for (const tile of ofCell) if (part.left > 0) await draw(source, tile, part, subject, picture);
        open -= before - part.left;
      }),
    );
    seen += tiles.length;
    if (open === 0 || seen >= MAX_TILES) break;
  }
  return picture;
}

function newPart(pixels: MapPixels, bounds: Bounds): CellPart | undefined {
  const view = viewOfCell(pixels, bounds);
  if (!view) return undefined;
  const left = view.columns.length * view.rows.length;
  return { view, open: new Uint8Array(left).fill(1), left };
}

/** Fills the open pixels of a part for which a tile shows clear ground. */
async function draw(
  source: Source,
  tile: TileRecord,
  part: CellPart,
  subject: Subject,
  picture: Picture,
): Promise<void> {
  const { view, open } = part;
  const clear = await clearPixels(source, tile, view, subject, open);
  if (!clear) return;
  const planes = await planesOf(source, tile, view, subject);
  const across = view.columns.length;
  for (let i = 0; i < clear.length; i++) {
    if (clear[i] === 0 || planes.some((plane) => Number.isNaN(plane[i]))) continue;
    const to = (view.top + Math.floor(i / across)) * picture.width + view.left + (i % across);
    for (let p = 0; p < planes.length; p++) picture.planes[p][to] = planes[p][i];
    open[i] = 0;
    part.left--;
  }
}
