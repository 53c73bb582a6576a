/** Cuts a cell out of one or more tiles of a scene: finer cells of one, or a coarser one of several. */
import { type CellFile, encodeCell, encodeMask } from '../../ingest/index.js';
import { emptyPixel, Mask, newPixels, openRaster, type PixelArray } from '../../raster/index.js';
import type { CutTask, MadeTile, TileFiles } from '../derive-tasks.js';
import { noMask } from '../errors.js';
import { coarsen } from './gap-filling.js';
import { cellGroup, holeOf, type StoredGroup } from './read-tile.js';
import { placeOf, resample } from './reproject.js';
import { type Figures, validOf } from './valid-percent.js';

/** Null where the cell holds no data. */
export async function cutTile({ tile, sources, sizes }: CutTask): Promise<MadeTile | null> {
  const [first] = sources;
  const made = await Promise.all(first.groups.map((group, g) => cutGroup(tile, sources, group, sizes[g])));
  const mask = made.find(({ group }) => group.role === 'mask');
  if (!mask) throw noMask(first.geocode);
  const codes = mask.bands[0] as Uint8Array;
  const files: CellFile[] = [];
  const coverages: number[] = [];
  let holdsData = false;
  for (const { group, cell, bands } of made) {
    if (group.role === 'mask') continue;
    const valid = coarsen(codes, mask.cell, cell);
    const figures: Figures = validOf(bands, holeOf(group), valid, group.bands);
    if (group.role === 'data') {
      coverages.push(figures.coverage);
      holdsData ||= figures.validPercent.some((percent) => percent > 0);
    }
    files.push(encodeCell(cell, { bands, ...figures, valid, mask: null }).file);
  }
  if (!holdsData) return null;
  const { file, cloudCover, footprint } = encodeMask(mask.cell, codes);
  files.push(file);
  const used = Array.from(sources.keys());
  return { files, coverage: Math.min(...coverages), cloudCover, footprint, used };
}

/** A group of the new tile, from those of its name in all sources. */
async function cutGroup(
  tile: CutTask['tile'],
  sources: TileFiles[],
  group: StoredGroup,
  size: { width: number; height: number },
) {
  const cell = cellGroup(tile, { group, header: await openRaster(group.path) }, size);
  const to = placeOf(tile.grid, tile.geocode, size);
  const pixels = size.width * size.height;
  const nodata = group.role === 'mask' ? Mask.nodata : group.nodata;
  const empty = emptyPixel(group.dataType, nodata ?? undefined);
  let bands: PixelArray[] | undefined;
  for (const source of sources) {
    const own = source.groups.find(({ name }) => name === group.name);
    if (!own || own.bands.length !== group.bands.length) continue;
    const from = placeOf(source.grid, source.geocode, own);
    const taken = await resample(own, [...own.bands.keys()], from, to, cell.resampling);
    if (sources.length === 1) bands = taken.bands;
    bands ??= group.bands.map(() => newPixels(group.dataType, pixels).fill(empty));
    if (sources.length > 1)
      for (const [b, band] of bands.entries()) lay(band, taken.bands[b], taken.valid[b]);
  }
  bands ??= group.bands.map(() => newPixels(group.dataType, pixels).fill(empty));
  return { group, cell, bands };
}

function lay(out: PixelArray, pixels: PixelArray, valid: Uint8Array): void {
  for (let i = 0; i < out.length; i++) if (valid[i] === 1) out[i] = pixels[i];
}
