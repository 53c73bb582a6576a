/** Makes one filled tile: reads masks first, then only the pixels that are taken. */

import { gridByName, type PixelGrid, shareOfCell } from '../grid/index.js';
import {
  type CellGroup,
  type CellImage,
  encodeGroup,
  encodeMask,
  joinTile,
  pixelValidity,
  tileValidity,
} from '../ingest/index.js';
import {
  allocatePixels,
  bandValidity,
  cloudCoverPercent,
  coveragePercent,
  type DataType,
  fillValueFor,
  Mask,
  openImage,
  type PixelArray,
  readValidity,
  readWindowInto,
  widenClouds,
} from '../raster/index.js';
import type { BandRecord, GroupRecord } from '../storage/index.js';
import {
  type Composite,
  codesOfData,
  conversion,
  copyPixels,
  fillFrom,
  finishedMask,
  gapsOf,
  MAX_INPUTS,
  NO_SOURCE,
  otherDatesShare,
  PROVENANCE_GROUP,
  positionsOf,
  resizeNearest,
  restoreRims,
  startComposite,
  type TargetBand,
  windowOf,
} from './gaps.js';
import { targetWarnings } from './shares.js';
import type { FillTargets, FillTileTask, MadeTile, TileFiles } from './tasks.js';
import { cellGroup, type GroupImage, imageGroups, nodataValue, readGroup, readMask } from './tile.js';

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
  const former = task.base.groups.find(({ name }) => name === PROVENANCE_GROUP);
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
  const used = dilate === 0 ? first : await takeFromDonors(composite, order, first, targets, readCodes);
  const images: ReturnType<typeof encodeGroup>[] = [];
  const gapSources: GapSource[] = [];
  for (const group of imageGroups(base)) {
    const image = targetGroup(await readGroup(group));
    const positions = positionsOf(resizeNearest(composite.provenance, mask.group, group));
    const buffers: ReadBuffers = new Map();
    for (const [i, donor] of used.entries()) {
      const at = positions[i + 1]!;
      await fillPixels(
        image,
        image.bands.map(() => at),
        donors[donor]!,
        buffers,
      );
    }
    if (group.role === 'data')
      gapSources.push(
        ...(await closeGaps(
          image,
          { base: mask.group, composite, donors, used, maskOf: widenCodes },
          targets,
        )),
      );
    const bands = image.bands.map(({ pixels }) => pixels);
    const valid = image.bands.map((band) => band.valid);
    images.push(encodeGroup(cellGroup(tile, image), { bands, valid }));
  }
  if (used.length === 0) return null;
  const codes = cellGroup(tile, mask);
  const data = images.filter(({ image }) => image.record.role === 'data').map(({ validity }) => validity);
  const { some, coverage } = tileValidity(data, codes);
  const finished = codesOfData(finishedMask(composite), some, codes);
  const { image: maskImage, ...figures } = encodeMask(codes, finished);
  const provenance = provenanceBands(codes, composite, gapSources);
  const earlier = former ? (await readGroup(former)).bands : [];
  const unreplaced = earlier.map((band) =>
    composite.provenance.map((number, i) => (number === 0 ? band[i]! : NO_SOURCE)),
  );
  return {
    ...joinTile([...images.map(({ image }) => image), provenanceImage(codes, provenance), maskImage]),
    ...{ coverage, ...figures, rims },
    ...otherDatesShare(finished, [...provenance.map(({ pixels }) => pixels), ...unreplaced]),
    warnings: targetWarnings({ coverage, ...figures }, targets),
    used: [0, ...used.map((donor) => donor + 1)],
  };
}

/** A group of a new tile. */
interface TargetGroup extends Pick<GroupImage, 'group' | 'header'> {
  bands: TargetBand[];
}

function targetGroup({ group, header, bands, valid }: GroupImage): TargetGroup {
  const fillValue = fillValueFor(group.dataType, nodataValue(group));
  return { group, header, bands: bands.map((pixels, b) => ({ pixels, valid: valid[b]!, fillValue })) };
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

/** Cloud cover that is unknown meets no limit. */
function meets({ codes }: Composite, targets: FillTargets): boolean {
  return (cloudCoverPercent(codes) ?? 100) <= targets.cloud && coveragePercent(codes) >= targets.coverage;
}

/** The inputs that gave the values of single bands, at the size of the band; 0 where the pixel is of one input. */
interface GapSource extends PixelGrid {
  band: string;
  sources: Uint8Array;
}

interface GapDonors {
  /** Size of the masks. */
  base: PixelGrid;
  composite: Composite;
  donors: TileFiles[];
  used: number[];
  maskOf(donor: number): Promise<Uint8Array | undefined>;
}

/**
 * Fills gaps of single bands at pixels that are kept: first from dates that are clear there, then from dates that were not assessed, in the
 * order of the donors, until the group has the wanted coverage. Adds the donors that gave values to `used`.
 */
async function closeGaps(
  image: TargetGroup,
  { base, composite, donors, used, maskOf }: GapDonors,
  targets: FillTargets,
): Promise<GapSource[]> {
  const { group, bands } = image;
  const { width, height } = group;
  const codes = resizeNearest(composite.mask, base, group);
  const sources = bands.map(() => new Uint8Array(0));
  const buffers: ReadBuffers = new Map();
  for (const fits of [isClearCode, (code: number) => code === Mask.notAssessed])
    for (const [number, donor] of donors.entries()) {
      const gaps = bands.map(({ valid }) => gapsOf(valid, codes));
      if (gaps.every(({ length }) => length === 0) || used.length + 1 === MAX_INPUTS) break;
      const pixels = pixelValidity(
        bands.map(({ valid }) => valid),
        group.bands,
      );
      const { coverage } = tileValidity([], group, pixels);
      if (coverage >= targets.coverage) break;
      const mask = await maskOf(number);
      if (!mask) continue;
      const theirs = resizeNearest(mask, base, group);
      const positions = gaps.map((at) => at.filter((i) => fits(theirs[i]!)));
      await fillPixels(image, positions, donor, buffers);
      for (const [b, { valid }] of bands.entries()) {
        const closed = positions[b]!.filter((i) => valid?.[i] === 1);
        if (closed.length === 0) continue;
        if (!used.includes(number)) used.push(number);
        if (sources[b]!.length === 0) sources[b] = new Uint8Array(width * height);
        for (const i of closed) sources[b]![i] = used.indexOf(number) + 1;
      }
    }
  return group.bands.flatMap(({ name }, b) =>
    sources[b]!.length > 0 ? [{ band: name, sources: sources[b]!, width, height }] : [],
  );
}

const isClearCode = (code: number) => code === Mask.clear || code === Mask.snow;

/** Memory for pixels of donors: one array per band for each data type. */
type ReadBuffers = Map<DataType, PixelArray[]>;

/** Copies the pixels of a donor into the bands of a group, in the encoding of the base. `positions`: of each band, ascending. */
async function fillPixels(
  { group, bands }: TargetGroup,
  positions: Uint32Array[],
  donor: TileFiles,
  buffers: ReadBuffers,
): Promise<void> {
  const match = matchGroups({ groups: [group] }, donor)?.[0];
  const filledBands = [...bands.keys()].filter((b) => positions[b]!.length > 0);
  if (filledBands.length === 0 || !match) return;
  // Replaced pixels are the same in all bands, and gaps differ.
  const lists = [...new Set(filledBands.map((b) => positions[b]!))];
  const all = lists.length === 1 ? lists[0]! : Uint32Array.from(lists.flatMap((at) => [...at])).sort();
  const window = windowOf(all, group.width);
  const header = await openImage(match.group);
  const { dataType } = header;
  const memory = buffers.get(dataType) ?? bands.map(({ pixels }) => allocatePixels(dataType, pixels.length));
  buffers.set(dataType, memory);
  const numbers = filledBands.map((b) => match.bands[b]!);
  const pixels = filledBands.map((_, i) => memory[i]!.subarray(0, window.width * window.height));
  await readWindowInto(header, numbers, window, pixels);
  const valid = await readValidity(header, numbers, window, pixels);
  const encoding = (of: typeof group, band: number) => ({
    dataType: of.dataType,
    scale: of.bands[band]!.scale,
    offset: of.bands[band]!.offset,
    nodata: nodataValue(of),
  });
  for (const [i, b] of filledBands.entries()) {
    const convert = conversion(encoding(match.group, match.bands[b]!), encoding(group, b));
    const to = { positions: positions[b]!, width: group.width };
    copyPixels(bands[b]!, to, { pixels: pixels[i]!, window, valid: valid[i]! }, convert);
  }
}

/** The band `source_index`, and one for each band some of whose values are of other inputs than the pixel. */
function provenanceBands(size: CellGroup, { provenance }: Composite, gaps: GapSource[]) {
  const planes = gaps.map(({ band, sources, ...grid }) => {
    const ofBand = resizeNearest(sources, grid, size);
    return { name: `source_index_${band}`, pixels: provenance.map((pixel, i) => ofBand[i] || pixel) };
  });
  return [{ name: 'source_index', pixels: provenance }, ...planes];
}

function provenanceImage(size: CellGroup, bands: { name: string; pixels: Uint8Array }[]): CellImage {
  const cell: CellGroup = {
    ...size,
    name: PROVENANCE_GROUP,
    role: 'qa',
    resampling: 'nearest',
    dataType: 'uint8',
    nodata: NO_SOURCE,
    colours: undefined,
    bands: bands.map(({ name }) => ({ name, scale: 1, offset: 0 })),
  };
  const pixels = bands.map((band) => band.pixels);
  const valid = pixels.map((plane) => bandValidity(plane, NO_SOURCE));
  return encodeGroup(cell, { bands: pixels, valid }).image;
}
