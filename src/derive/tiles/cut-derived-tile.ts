/** Cuts a cell out of one or more tiles of a scene. */
import type { PixelGrid } from '../../grid/index.js';
import { type CellFile, encodeMaskFile, encodeTile } from '../../ingest/index.js';
import { allocatePixels, fillValueFor, Mask, openRaster, type PixelArray } from '../../raster/index.js';
import type { CutTileTask, MadeTile, TileFiles } from '../derive-tasks.js';
import { noMask } from '../errors.js';
import { type ValidityStatistics, validityStatistics } from './derived-valid-percent.js';
import { resizeNearest } from './fill-tile-gaps.js';
import { cellGroup, nodataValue, type TileGroupFile } from './read-derive-tile.js';
import { geoBoxOfCell, reprojectBands } from './reproject-derived-tile.js';

/** Returns null if the cell holds no data. */
export async function cutTile({ tile, sources, sizes }: CutTileTask): Promise<MadeTile | null> {
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
    const valid = resizeNearest(codes, mask.cell, cell);
    const figures: ValidityStatistics = validityStatistics(bands, nodataValue(group), valid, group.bands);
    if (group.role === 'data') {
      coverages.push(figures.coverage);
      holdsData ||= figures.validPercent.some((percent) => percent > 0);
    }
    files.push(encodeTile(cell, { bands, ...figures, valid, mask: null }).file);
  }
  if (!holdsData) return null;
  const { file, cloudCover, footprint } = encodeMaskFile(mask.cell, codes);
  files.push(file);
  const used = Array.from(sources.keys());
  return { files, coverage: Math.min(...coverages), cloudCover, footprint, used };
}

/** Makes a group of the new tile from the groups of the same name in all sources. */
async function cutGroup(
  tile: CutTileTask['tile'],
  sources: TileFiles[],
  group: TileGroupFile,
  size: PixelGrid,
) {
  const cell = cellGroup(tile, { group, header: await openRaster(group.path) }, size);
  const to = geoBoxOfCell(tile.grid, tile.geocode, size);
  const pixels = size.width * size.height;
  const nodata = group.role === 'mask' ? Mask.nodata : group.nodata;
  const empty = fillValueFor(group.dataType, nodata ?? undefined);
  let bands: PixelArray[] | undefined;
  for (const source of sources) {
    const own = source.groups.find(({ name }) => name === group.name);
    if (!own || own.bands.length !== group.bands.length) continue;
    const from = geoBoxOfCell(source.grid, source.geocode, own);
    const taken = await reprojectBands(own, [...own.bands.keys()], from, to, cell.resampling);
    if (sources.length === 1) bands = taken.bands;
    bands ??= group.bands.map(() => allocatePixels(group.dataType, pixels).fill(empty));
    if (sources.length > 1)
      for (const [b, band] of bands.entries()) copyValidPixels(band, taken.bands[b], taken.valid[b]);
  }
  bands ??= group.bands.map(() => allocatePixels(group.dataType, pixels).fill(empty));
  return { group, cell, bands };
}

function copyValidPixels(out: PixelArray, pixels: PixelArray, valid: Uint8Array): void {
  for (let i = 0; i < out.length; i++) if (valid[i] === 1) out[i] = pixels[i];
}
