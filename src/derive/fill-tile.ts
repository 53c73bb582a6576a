/** Makes one filled tile: reads masks first, then only the pixels that are taken. */

import { gridByName, type PixelGrid, shareOfCell } from '../grid/index.js';
import {
  type CellFile,
  type CellGroup,
  encodeMaskFile,
  encodeTile,
  type WarpedGroup,
} from '../ingest/index.js';
import {
  allocatePixels,
  cloudCoverPercent,
  coveragePercent,
  type DataType,
  openRaster,
  type PixelArray,
  readWindowInto,
  widenClouds,
} from '../raster/index.js';
import type { BandRecord, GroupRecord } from '../storage/index.js';
import {
  type Composite,
  conversion,
  copyPixels,
  fillFrom,
  MAX_INPUTS,
  NO_SOURCE,
  positionsOf,
  resizeNearest,
  restoreRims,
  startComposite,
  windowOf,
} from './gaps.js';
import type { FillTargets, FillTileTask, MadeTile, TileFiles } from './tasks.js';
import { cellGroup, imageGroups, nodataValue, readGroup, readMask, validityStatistics } from './tile.js';

/** A group of another tile of the collection, whose sensor may number its bands differently. */
interface GroupMatch<G> {
  group: G;
  /** By band of the wanted group: index within `group`. */
  bands: number[];
}

/** For each group of `base` except its mask: the group of `other` that has the same size and all of its bands. Null if one is missing. */
export function matchGroups<G extends GroupRecord>(
  base: { groups: GroupRecord[] },
  other: { groups: G[] },
): GroupMatch<G>[] | null {
  const found: GroupMatch<G>[] = [];
  for (const wanted of base.groups) {
    if (wanted.role === 'mask') continue;
    const match = other.groups.map((group) => matchGroup(wanted, group)).find((one) => one !== null);
    if (!match) return null;
    found.push(match);
  }
  return found;
}

function matchGroup<G extends GroupRecord>(wanted: GroupRecord, group: G): GroupMatch<G> | null {
  const { role, width, height } = wanted;
  if (group.role !== role || group.width !== width || group.height !== height) return null;
  // Codes are bits and classes, which cannot be converted.
  const isCodes = role === 'qa' || wanted.codes === true;
  if (isCodes && (group.dataType !== wanted.dataType || group.codes !== wanted.codes)) return null;
  const bands = wanted.bands.map((band) => findBand(band, wanted.bands, group.bands));
  return bands.includes(-1) ? null : { group, bands };
}

/** The band of the same name and common name, or else the only band of that common name. */
function findBand(wanted: BandRecord, own: BandRecord[], others: BandRecord[]): number {
  const same = others.findIndex(
    ({ name, commonName }) => name === wanted.name && commonName === wanted.commonName,
  );
  if (same >= 0 || wanted.commonName === undefined) return same;
  const ofColour = (bands: BandRecord[]) =>
    bands.filter(({ commonName }) => commonName === wanted.commonName);
  if (ofColour(own).length > 1 || ofColour(others).length > 1) return -1;
  return others.findIndex(({ commonName }) => commonName === wanted.commonName);
}

/** Group of a filled tile with the input of each pixel. */
const PROVENANCE_GROUP = 'provenance';

/** Returns null if no donor has a usable pixel. */
export async function fillTile({
  tile,
  donors,
  targets,
  dilate,
  ...task
}: FillTileTask): Promise<MadeTile | null> {
  // The base may be a filled tile; its provenance is replaced.
  const base = { ...task.base, groups: task.base.groups.filter(({ name }) => name !== PROVENANCE_GROUP) };
  const mask = await readMask(base);
  const share = shareOfCell(gridByName(base.grid), base.geocode, dilate);
  const { width, height } = mask.group;
  const composite = startComposite(widenClouds(mask.codes, width, height, share));
  const readCodes = (donor: number) => readDonorMask(mask.group, base, donors[donor]);
  const widenCodes = async (donor: number) => {
    const codes = await readCodes(donor);
    return codes && widenClouds(codes, width, height, share);
  };
  const order = [...donors.keys()];
  const first = await takeFromDonors(composite, order, [], targets, widenCodes);
  const rims = restoreRims(composite, mask.codes);
  // The rims of clouds on other dates are better than cloud.
  const used = await takeFromDonors(composite, order, first, targets, readCodes);
  if (used.length === 0) return null;
  const files: CellFile[] = [];
  let coverage = 100;
  for (const group of imageGroups(base)) {
    const image = await readGroup(group);
    const positions = positionsOf(resizeNearest(composite.provenance, mask.group, group));
    const buffers: ReadBuffers = new Map();
    for (const [i, donor] of used.entries())
      await fillPixels(image, positions[i + 1], donors[donor], buffers);
    const valid = resizeNearest(composite.mask, mask.group, group);
    const figures = validityStatistics(image.bands, nodataValue(group), valid, group.bands);
    const pixels: WarpedGroup = { bands: image.bands, ...figures, valid, mask: null };
    files.push(encodeTile(cellGroup(tile, image), pixels).file);
    if (group.role === 'data') coverage = Math.min(coverage, figures.coverage);
  }
  const codes = cellGroup(tile, mask);
  files.push(provenanceFile(codes, composite));
  const { file, cloudCover, footprint } = encodeMaskFile(codes, composite.mask);
  files.push(file);
  return { files, coverage, cloudCover, footprint, used: [0, ...used.map((donor) => donor + 1)], rims };
}

/** Mask codes of a donor; undefined if it does not match the base. */
async function readDonorMask(
  { width, height }: PixelGrid,
  base: TileFiles,
  donor: TileFiles,
): Promise<Uint8Array | undefined> {
  if (!matchGroups(base, donor)) return undefined;
  const { codes, header } = await readMask(donor);
  return header.width === width && header.height === height ? codes : undefined;
}

/**
 * Takes pixels from donors in their order until the targets are met. Returns the donors that gave pixels: those of `used`, and new ones.
 * The number of an input is its position among them, from 1.
 */
async function takeFromDonors(
  composite: Composite,
  donors: number[],
  used: number[],
  targets: FillTargets,
  maskOf: (donor: number) => Promise<Uint8Array | undefined>,
): Promise<number[]> {
  const all = [...used];
  for (const donor of donors) {
    if (meets(composite, targets)) break;
    const number = all.indexOf(donor) + 1;
    if (number === 0 && all.length + 1 === MAX_INPUTS) continue;
    const mask = await maskOf(donor);
    if (mask && fillFrom(composite, mask, number || all.length + 1) > 0 && number === 0) all.push(donor);
  }
  return all;
}

function meets({ codes }: Composite, targets: FillTargets): boolean {
  return (cloudCoverPercent(codes) ?? 0) <= targets.cloud && coveragePercent(codes) >= targets.coverage;
}

/** Memory for pixels of donors: one array per band for each data type. */
type ReadBuffers = Map<DataType, PixelArray[]>;

/** Copies the pixels of a donor at these positions into the bands of a group, in the encoding of the base. */
async function fillPixels(
  { group, bands }: Awaited<ReturnType<typeof readGroup>>,
  positions: Uint32Array,
  donor: TileFiles,
  buffers: ReadBuffers,
): Promise<void> {
  const match = matchGroups({ groups: [group] }, donor)?.[0];
  if (positions.length === 0 || !match) return;
  const window = windowOf(positions, group.width);
  const header = await openRaster(match.group.path);
  const { dataType } = header;
  const pixels = buffers.get(dataType) ?? bands.map((band) => allocatePixels(dataType, band.length));
  buffers.set(dataType, pixels);
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
