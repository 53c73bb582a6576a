/**
 * The form of tile records on disk. Most of a record would be the same in every tile of a product: names, types and scales of its groups
 * and bands. This part is the tile's schema. It is stored once, under a digest of its JSON; a tile's record has this digest and the values
 * that differ from tile to tile. Also the wavelengths that a tile covers.
 */

import { createHash } from 'node:crypto';
import { isHyperspectral, type SpectralTags } from '../raster/index.js';
import { storageCorrupt } from './errors.js';
import type { BandRecord, GroupRecord, TileRecord } from './records.js';

/** The wavelengths that a tile covers, as in the STAC extension hsi 1.0.0. */
interface WavelengthRange {
  /** The shortest and the longest centre of the good bands, micrometres. */
  min: number;
  max: number;
}

/** The range of all spectra among the groups of a tile; undefined if it has none, or all their bands are bad. */
export function wavelengthRange(
  groups: readonly { bands: readonly SpectralTags[] }[],
): WavelengthRange | undefined {
  let min = Infinity;
  let max = -Infinity;
  for (const { bands } of groups) {
    if (!isHyperspectral(bands)) continue;
    for (const { wavelength, good } of bands) {
      if (good === false) continue;
      min = Math.min(min, wavelength!);
      max = Math.max(max, wavelength!);
    }
  }
  return min <= max ? { min: micrometres(min), max: micrometres(max) } : undefined;
}

/** Converts nanometres without the rounding errors of a division by 1,000. */
export function micrometres(nanometres: number): number {
  return Number((nanometres / 1000).toPrecision(6));
}

/** The name of a range in the column index; null if there is none. */
export function rangeName(range: WavelengthRange | undefined): string | null {
  return range ? `${range.min} ${range.max}` : null;
}

/** The inverse of `rangeName`. */
export function rangeNamed(name: string): WavelengthRange {
  const [min, max] = name.split(' ').map(Number) as [number, number];
  return { min, max };
}

/** The part of a group that tiles share. */
type SchemaGroup = Omit<GroupRecord, 'width' | 'height' | 'bytes' | 'crc32' | 'bands'> & {
  bands: Omit<BandRecord, 'validPercent'>[];
};
export type TileSchema = readonly SchemaGroup[];

/** The part of a group that differs from tile to tile. `valid` is one number if the percentages of all bands are equal. */
export type TileGroupPart = [
  width: number,
  height: number,
  bytes: number,
  crc32: number,
  valid: number | number[],
];

/** A tile's record on disk; its id is its key. */
interface StoredTile {
  tile: Omit<TileRecord, 'id' | 'groups'>;
  /** Digest of the schema. */
  layout: string;
  groups: TileGroupPart[];
}

/** The parts that groups were made from. Nobody changes groups in place. */
const sourceParts = new WeakMap<GroupRecord[], { schema: TileSchema; parts: TileGroupPart[] }>();

/** The schema that a tile's record was decoded with: the same object for all tiles that share it. Undefined for other records. */
export function schemaOf({ groups }: TileRecord): TileSchema | undefined {
  return sourceParts.get(groups)?.schema;
}

/** Makes the groups of a tile from its schema and its parts. `schemaOf` later returns this schema for the tile. */
export function joinGroups(schema: TileSchema, parts: TileGroupPart[]): GroupRecord[] {
  const groups = parts.map((part, g) => joinGroup(schema[g], part));
  sourceParts.set(groups, { schema, parts });
  return groups;
}

export const schemaPart = (groups: GroupRecord[]): TileSchema => groups.map(groupSchemaPart);
export const tilePart = (groups: GroupRecord[]): TileGroupPart[] =>
  sourceParts.get(groups)?.parts ?? groups.map(groupTilePart);

/**
 * The schemas of one catalogue. A product has a few schemas. If the scale of its bands depends on the sun (Landsat level 1), it has one
 * for each scene. All are kept in memory until the catalogue is closed, because records that were read before name them.
 *
 * Invariant: if an encoded record names a schema, the schema is on disk or in `unwritten`. Every batch contains the schemas of
 * `unwritten`, until one of these batches is on disk. So no record is on disk without its schema.
 */
export class TileSchemas {
  /** Digests of schemas that a record names and the catalogue lacks. */
  readonly missing = new Set<string>();
  private readonly known = new Map<string, TileSchema>();
  private readonly unwritten = new Map<string, TileSchema>();
  /** Digests of known schemas that were removed from the catalogue. */
  private readonly dropped = new Set<string>();
  /** Digests that encoded or decoded records have named since `noteUse`. */
  private used: Set<string> | undefined;
  /** Digests of the schemas of decoded records, from this catalogue or from other nodes. */
  private readonly digests = new WeakMap<TileSchema, string>();

  /** Adds a schema that was read from the catalogue. */
  add(digest: string, schema: TileSchema): void {
    this.known.set(digest, schema);
  }

  encode(record: TileRecord): StoredTile {
    const { id: _, groups, ...tile } = record;
    const schema = schemaOf(record);
    let digest = schema && this.digests.get(schema);
    if (digest === undefined) {
      digest = this.digestOf(schemaPart(groups));
      if (schema) this.digests.set(schema, digest);
    }
    this.used?.add(digest);
    if (this.dropped.delete(digest)) this.unwritten.set(digest, this.known.get(digest)!);
    return { tile, layout: digest, groups: tilePart(groups) };
  }

  /**
   * Returns the record of this id. It reuses the objects of `stored` and does not copy them. Throws TW_STORAGE_CORRUPT if the schema is
   * missing.
   */
  decode(id: string, stored: StoredTile): TileRecord {
    const { tile, layout: digest, groups: parts } = stored;
    this.used?.add(digest);
    const schema = this.known.get(digest);
    if (!schema) {
      this.missing.add(digest);
      throw storageCorrupt(`schema ${digest} of record ${JSON.stringify(id)}`, 'the catalogue');
    }
    return Object.assign(tile, { id, groups: joinGroups(schema, parts) });
  }

  /** Number of schemas in the catalogue. */
  get size(): number {
    return this.known.size - this.dropped.size;
  }

  /** Notes from now on which schemas are named. */
  noteUse(): void {
    this.used = new Set(this.unwritten.keys());
  }

  get notesUse(): boolean {
    return this.used !== undefined;
  }

  /** Returns the digests that no record has named since `noteUse`. The next batch must remove them from the catalogue. */
  dropUnused(): string[] {
    const unused = [...this.known.keys()].filter(
      (digest) => !this.used!.has(digest) && !this.dropped.has(digest),
    );
    this.used = undefined;
    for (const digest of unused) this.dropped.add(digest);
    return unused;
  }

  /** The schemas that the next batch must contain. */
  takeUnwritten(): [digest: string, schema: TileSchema][] {
    return [...this.unwritten];
  }

  /** Declares that schemas from `takeUnwritten` are on disk. */
  markWritten(taken: [digest: string, schema: TileSchema][]): void {
    for (const [digest] of taken) this.unwritten.delete(digest);
  }

  private digestOf(schema: TileSchema): string {
    const json = JSON.stringify(schema);
    const digest = createHash('sha256').update(json).digest('hex').slice(0, 16);
    if (!this.known.has(digest)) {
      // The same value as after a restart: JSON has no NaN and no infinities.
      const stored: TileSchema = JSON.parse(json);
      this.known.set(digest, stored);
      this.unwritten.set(digest, stored);
      this.missing.delete(digest);
    }
    return digest;
  }
}

function groupSchemaPart({
  width: _w,
  height: _h,
  bytes: _b,
  crc32: _c,
  bands,
  ...group
}: GroupRecord): SchemaGroup {
  return { ...group, bands: bands.map(({ validPercent: _, ...band }) => band) };
}

function groupTilePart({ width, height, bytes, crc32, bands }: GroupRecord): TileGroupPart {
  const valid = bands.map((band) => band.validPercent);
  const isOne = valid.length > 0 && valid.every((percent) => percent === valid[0]);
  return [width, height, bytes, crc32, isOne ? valid[0] : valid];
}

/** Copies each member: a search joins thousands of groups, and spread syntax takes a hundred times as long. */
function joinGroup(group: SchemaGroup, [width, height, bytes, crc32, valid]: TileGroupPart): GroupRecord {
  const { name, file, role, dataType, nodata, codes } = group;
  const bands = group.bands.map((band, b): BandRecord => {
    const { name, commonName, scale, offset, wavelength, fwhm, good, classes } = band;
    const validPercent = Array.isArray(valid) ? valid[b] : valid;
    if (wavelength === undefined && classes === undefined)
      return commonName === undefined
        ? { name, scale, offset, validPercent }
        : { name, commonName, scale, offset, validPercent };
    const record: BandRecord = { name, scale, offset, validPercent };
    if (wavelength !== undefined) record.wavelength = wavelength;
    if (classes !== undefined) record.classes = classes;
    if (commonName !== undefined) record.commonName = commonName;
    if (fwhm !== undefined) record.fwhm = fwhm;
    if (good !== undefined) record.good = good;
    return record;
  });
  const record: GroupRecord = { name, file, role, dataType, width, height, nodata, bands, bytes, crc32 };
  if (codes) record.codes = codes;
  return record;
}
