/**
 * Combines the bands of a scene into groups by pixel size, data type, role and nodata value. Bands of imaging spectrometers get the common
 * names of multispectral products, so that expressions for these apply to them.
 */
import { nearestBand, type RasterHeader, type Resampling, type SpectralTags } from '../raster/index.js';
import { badPixelSize, bandsDiffer } from './errors.js';
import type { Resolution, Scene, SourceBand, SourceGroup } from './scene.js';

export interface UngroupedBand extends SourceBand {
  role: 'data' | 'qa';
  nodata: number | null;
  resolution: Resolution;
  /** By default bilinear for data and nearest for qa; nearest if the band holds codes. */
  resampling?: Resampling;
  /** See `SourceGroup`. */
  part?: string;
}

const isSamePixelSize = (a: number, b: number) => Math.abs(a - b) <= 0.001 * Math.max(a, b);

function isSameGeoreferencing(a: RasterHeader, b: RasterHeader): boolean {
  const s = a.transform;
  const t = b.transform;
  const tolerance = 0.01 * Math.hypot(s.xx, s.yx);
  return (
    a.width === b.width &&
    a.height === b.height &&
    a.crs.proj4 === b.crs.proj4 &&
    Math.abs(s.originX - t.originX) < tolerance &&
    Math.abs(s.originY - t.originY) < tolerance
  );
}

/** Throws unless all bands of a scene have one projection: the groups of a cell must show the same ground. */
function requireOneCrs(bands: UngroupedBand[]): void {
  for (const { header } of bands) {
    const [{ header: first }] = bands;
    if (header.crs.proj4 !== first.crs.proj4) throw bandsDiffer(header.path, first.path);
  }
}

/** Limits of a pixel on the ground, metres: from close-range photos to the coarsest climate models. */
const PIXEL_SIZE_LIMITS_METRES = { least: 1e-3, most: 1.1e6 };

function requirePlausibleSizes(bands: UngroupedBand[]): void {
  const isPlausible = (metres: number) =>
    metres >= PIXEL_SIZE_LIMITS_METRES.least && metres <= PIXEL_SIZE_LIMITS_METRES.most;
  for (const { header, resolution } of bands) {
    if (isPlausible(resolution.x) && isPlausible(resolution.y)) continue;
    const { xx, yx, xy, yy } = header.transform;
    throw badPixelSize(header.path, Math.hypot(xx, yx), Math.hypot(xy, yy));
  }
}

/** Groups, finest first, data before qa, named parts last. Throws TW_INGEST_BANDS_DIFFER, TW_INGEST_PIXEL_SIZE. */
export function groupBands(bands: UngroupedBand[]): SourceGroup[] {
  requireOneCrs(bands);
  requirePlausibleSizes(bands);
  const groups: SourceGroup[] = [];
  for (const given of bands) {
    const { role, nodata, resolution, part, ...rest } = given;
    const { resampling = role === 'qa' ? 'nearest' : 'bilinear', ...band } = rest;
    const found = groups.find(
      (g) =>
        g.role === role &&
        g.part === part &&
        g.resampling === resampling &&
        typeOf(g) === band.header.dataType &&
        Object.is(g.nodata, nodata) &&
        isSamePixelSize(g.resolution.x, resolution.x) &&
        isSamePixelSize(g.resolution.y, resolution.y),
    );
    if (found && !isSameGeoreferencing(found.bands[0].header, band.header)) {
      throw bandsDiffer(band.header.path, found.bands[0].header.path);
    }
    if (found) found.bands.push(band);
    else
      groups.push({ name: '', role, resampling, resolution, nodata, bands: [band], ...(part && { part }) });
  }
  groups.sort((a, b) => sizeOf(a) - sizeOf(b) || rankOf(a) - rankOf(b));
  return nameGroups(groups).map((group) => ({ ...group, ...coloursOf(group) }));
}

const rankOf = ({ role, part }: SourceGroup) => (role === 'data' ? 0 : part === undefined ? 1 : 2);
const typeOf = ({ bands }: SourceGroup) => bands[0].header.dataType;
const sizeOf = ({ resolution }: SourceGroup) => Math.max(resolution.x, resolution.y);

/**
 * Names are `<size>m`, `<size>m-qa` and `<size>m-<part>`. `-<type>` is added if two groups differ in it, and codes are marked
 * if the types are equal. A file has one nodata value, so bands that differ in it form two groups, and the name of the later
 * one includes it.
 */
export function nameGroups(groups: SourceGroup[]): SourceGroup[] {
  const base = (g: SourceGroup) =>
    `${formatPixelSize(sizeOf(g))}m${g.part ? `-${g.part}` : g.role === 'qa' ? '-qa' : ''}`;
  const names = new Set<string>();
  return groups.map((group) => {
    const type = typeOf(group);
    const alike = groups.filter((other) => base(other) === base(group));
    const sameType = alike.filter((other) => typeOf(other) === type);
    const codes =
      group.resampling === 'nearest' && sameType.some((other) => other.resampling !== group.resampling);
    const suffix = codes ? `${type}-codes` : type;
    const differ = alike.some((other) => typeOf(other) !== type || other.resampling !== group.resampling);
    const name = differ ? `${base(group)}-${suffix}` : base(group);
    const named = names.has(name) ? `${name}-nodata${group.nodata ?? '-none'}` : name;
    // Different pixel sizes can round to the same name.
    let unique = named;
    for (let count = 2; names.has(unique); count++) unique = `${named}-${count}`;
    names.add(unique);
    return { ...group, name: unique };
  });
}

/** The scene with its groups replaced by `groups`, in the same order. Its quality bands refer to the new names. */
export function replaceGroups(scene: Scene, groups: SourceGroup[]): Scene {
  const quality = scene.quality.map((band) => ({
    ...band,
    group: groups[scene.groups.findIndex(({ name }) => name === band.group)]!.name,
  }));
  return { ...scene, groups, quality };
}

/** A file has one colour table, so a group of several bands has none. */
function coloursOf({ bands, resampling }: SourceGroup): Pick<SourceGroup, 'colours'> {
  const [{ header }] = bands;
  if (bands.length > 1 || header.bands > 1 || resampling !== 'nearest' || !header.colours) return {};
  return { colours: Array.from(header.colours) };
}

/** 10 -> "10", 0.6 -> "0.6", 3011.58 -> "3012". */
export function formatPixelSize(metres: number): string {
  return metres >= 10 ? String(Math.round(metres)) : String(Number(metres.toPrecision(2)));
}

/** Centres of the bands of Sentinel-2A, nm (ESA, Sentinel-2 Spectral Response Functions 3.0), by STAC common names. */
const CENTRE_WAVELENGTHS_NM: Record<string, number> = {
  coastal: 442.7,
  blue: 492.4,
  green: 559.8,
  red: 664.6,
  rededge071: 704.1,
  rededge075: 740.5,
  rededge078: 782.8,
  nir: 832.8,
  nir08: 864.7,
  nir09: 945.1,
  swir16: 1613.7,
  swir22: 2202.4,
};
/** Tolerance. Bands further away measure another quantity. */
const TOLERANCE_NM = 15;

/** Common names by band index. */
export function commonBandNames(bands: readonly SpectralTags[]): Map<number, string> {
  const names = new Map<number, string>();
  for (const [name, centre] of Object.entries(CENTRE_WAVELENGTHS_NM)) {
    const band = nearestBand(bands, centre, TOLERANCE_NM);
    if (band >= 0 && !names.has(band)) names.set(band, name);
  }
  return names;
}

/** All bands of a cube of spectra, which are never averaged, in its order. */
export function spectralCubeBands(
  header: RasterHeader,
  resolution: Resolution,
  nodata: number,
  bands: (SpectralTags & Pick<UngroupedBand, 'scale' | 'offset'>)[],
): UngroupedBand[] {
  const names = commonBandNames(bands);
  return bands.map((band, index) => ({
    name: `b${index + 1}`,
    ...(names.has(index) && { commonName: names.get(index)! }),
    header,
    index,
    resolution,
    role: 'data',
    resampling: 'nearest',
    nodata,
    ...band,
  }));
}

export function withCommonNames(bands: UngroupedBand[]): UngroupedBand[] {
  const names = commonBandNames(bands);
  return bands.map((band, i) => ({ ...band, ...(names.has(i) && { commonName: names.get(i)! }) }));
}
