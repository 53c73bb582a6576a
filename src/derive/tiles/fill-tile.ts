/** Makes one filled tile: masks first, then only the pixels that are taken. */
import {
  type CellFile,
  type CellGroup,
  encodeMaskFile,
  encodeTile,
  type WarpedGroup,
} from '../../ingest/index.js';
import {
  allocatePixels,
  cloudCoverPercent,
  coveragePercent,
  type DataType,
  openRaster,
  type PixelArray,
  readWindowInto,
} from '../../raster/index.js';
import type { FillTargets, FillTileTask, MadeTile, TileFiles } from '../derive-tasks.js';
import {
  type Composite,
  conversion,
  copyPixels,
  fillFrom,
  MAX_INPUTS,
  NO_SOURCE,
  positionsOf,
  resizeNearest,
  startComposite,
  windowOf,
} from './gap-filling.js';
import { matchGroups } from './match-bands.js';
import { cellGroup, imageGroups, nodataValue, readGroup, readMask } from './read-tile.js';
import { validityStatistics } from './valid-percent.js';

/** Group of a filled tile that says which input each pixel comes from. */
export const PROVENANCE_GROUP = 'provenance';

/** Null where no donor has a pixel to give. */
export async function fillTile({ tile, donors, targets, ...task }: FillTileTask): Promise<MadeTile | null> {
  // A tile that was filled before is filled anew, and so is what it says of its inputs.
  const base = { ...task.base, groups: task.base.groups.filter(({ name }) => name !== PROVENANCE_GROUP) };
  const mask = await readMask(base);
  const splice = startComposite(mask.codes);
  const used = await chooseDonors(splice, mask.group, base, donors, targets);
  if (used.length === 0) return null;
  const files: CellFile[] = [];
  let coverage = 100;
  for (const group of imageGroups(base)) {
    const image = await readGroup(group);
    const positions = positionsOf(resizeNearest(splice.provenance, mask.group, group));
    const rooms: ReadBuffers = new Map();
    for (const [i, donor] of used.entries()) await fillPixels(image, positions[i + 1], donors[donor], rooms);
    const valid = resizeNearest(splice.mask, mask.group, group);
    const figures = validityStatistics(image.bands, nodataValue(group), valid, group.bands);
    const pixels: WarpedGroup = { bands: image.bands, ...figures, valid, mask: null };
    files.push(encodeTile(cellGroup(tile, image), pixels).file);
    if (group.role === 'data') coverage = Math.min(coverage, figures.coverage);
  }
  const codes = cellGroup(tile, mask);
  files.push(provenanceFile(codes, splice));
  const { file, cloudCover, footprint } = encodeMaskFile(codes, splice.mask);
  files.push(file);
  return { files, coverage, cloudCover, footprint, used: [0, ...used.map((donor) => donor + 1)] };
}

/** Takes from donors in their order until the targets hold; the numbers of those that gave something. */
async function chooseDonors(
  splice: Composite,
  size: { width: number; height: number },
  base: TileFiles,
  donors: TileFiles[],
  targets: FillTargets,
): Promise<number[]> {
  const used: number[] = [];
  for (const [number, donor] of donors.entries()) {
    if (used.length + 1 === MAX_INPUTS || meets(splice, targets)) break;
    if (!matchGroups(base, donor)) continue;
    const { codes, header } = await readMask(donor);
    if (header.width !== size.width || header.height !== size.height) continue;
    if (fillFrom(splice, codes, used.length + 1) > 0) used.push(number);
  }
  return used;
}

function meets({ codes }: Composite, targets: FillTargets): boolean {
  return (cloudCoverPercent(codes) ?? 0) <= targets.cloud && coveragePercent(codes) >= targets.coverage;
}

/** Where pixels of donors are read to: a band each, for all of a type the same. */
type ReadBuffers = Map<DataType, PixelArray[]>;

/** Puts what a donor gives at these positions into the bands of a group, as the base stores its values. */
async function fillPixels(
  { group, bands }: Awaited<ReturnType<typeof readGroup>>,
  positions: Uint32Array,
  donor: TileFiles,
  rooms: ReadBuffers,
): Promise<void> {
  const match = matchGroups({ groups: [group] }, donor)?.[0];
  if (positions.length === 0 || !match) return;
  const window = windowOf(positions, group.width);
  const header = await openRaster(match.group.path);
  const { dataType } = header;
  const pixels = rooms.get(dataType) ?? bands.map((band) => allocatePixels(dataType, band.length));
  rooms.set(dataType, pixels);
  await readWindowInto(header, match.bands, window, pixels);
  const encoding = (of: typeof group, band: number) => ({
    dataType: of.dataType,
    scale: of.bands[band].scale,
    offset: of.bands[band].offset,
    nodata: nodataValue(of),
  });
  for (const [b, band] of match.bands.entries()) {
    const from = encoding(match.group, band);
    const convert = conversion(from, encoding(group, b));
    const to = { positions, width: group.width };
    copyPixels(bands[b], to, { pixels: pixels[b], window, hole: from.nodata }, convert);
  }
}

function provenanceFile(size: CellGroup, { provenance, mask }: Composite): CellFile {
  const figures = validityStatistics([provenance], NO_SOURCE, provenance);
  const cell: CellGroup = {
    ...size,
    name: PROVENANCE_GROUP,
    role: 'qa',
    resampling: 'nearest',
    dataType: 'uint8',
    nodata: NO_SOURCE,
    colours: undefined,
    bands: [{ name: 'source_index', scale: 1, offset: 0 }],
  };
  return encodeTile(cell, { bands: [provenance], ...figures, valid: mask, mask: null }).file;
}
