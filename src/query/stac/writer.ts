/** Tiles as STAC 1.0.0 Items. */
import {
  cellBbox,
  DividedCell,
  type Grid,
  type GridBounds,
  gridByName,
  parseParts,
} from '../../grid/index.js';
import {
  type BandRecord,
  type CollectionRecord,
  type GroupRecord,
  geocodeOfModel,
  schemaOf,
  type TileRecord,
  type TileSchema,
  WORLD_CELL,
} from '../../storage/index.js';
import { bboxPolygon } from '../geometry.js';
import {
  attributionFor,
  bandAssetsOf,
  collectionLinks,
  groupAsset,
  isoTime,
  PREVIEW_ASSET,
  rasterBand,
  type StacItem,
  type StacUrls,
  schemaExtensions,
  stacUrls,
} from './items.js';

/**
 * A buffer to which JSON is appended as text, or as bytes that were encoded before.
 * Invariant: the first `length` bytes of `buffer` are the appended ones, in order.
 */
export class JsonBuffer {
  private buffer: Buffer;
  private length = 0;

  /** `capacity` is the initial capacity in bytes. */
  constructor(capacity = 2 ** 16) {
    this.buffer = Buffer.allocUnsafe(capacity);
  }

  appendText(text: string): void {
    // A UTF-16 unit has at most three bytes in UTF-8.
    this.reserve(3 * text.length);
    this.length += this.buffer.write(text, this.length);
  }

  appendBytes(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.buffer.set(bytes, this.length);
    this.length += bytes.length;
  }

  /** The content. Nothing may be appended afterwards. */
  take(): Buffer {
    return this.buffer.subarray(0, this.length);
  }

  private reserve(more: number): void {
    if (this.length + more <= this.buffer.length) return;
    const larger = Buffer.allocUnsafe(2 * (this.length + more));
    this.buffer.copy(larger, 0, 0, this.length);
    this.buffer = larger;
  }
}

export interface ItemOptions {
  /** Adds an asset for each band of a group with several bands, for programs that read one band per file. */
  bandAssets?: boolean;
}

/** A tile as a STAC Item. See `createItemWriter`. */
export function toStacItem(
  tile: TileRecord,
  collection: CollectionRecord,
  baseUrl: string,
  { bandAssets = false }: ItemOptions = {},
): StacItem {
  const out = new JsonBuffer(4096);
  createItemWriter(baseUrl, out)(tile, collection);
  const item: StacItem = JSON.parse(out.take().toString());
  if (bandAssets) {
    const { thumbnail, ...groups } = item.assets;
    const bounds = gridByName(tile.grid).bounds(tile.geocode);
    const bands = Object.fromEntries(bandAssetsOf(tile, bounds, stacUrls(baseUrl)));
    item.assets = { ...groups, ...bands, ...groups, thumbnail: thumbnail! };
  }
  return item;
}

/**
 * Returns a function that writes tiles as STAC Items to `out`, with the extensions eo, raster and projection 1.1.0 and grid. The geometry
 * is the area of the parts of the cell in which the tile holds data, in degrees; searches compare the same area. `proj:geometry` is the
 * convex hull of the valid pixels, or the cell if no hull is known.
 * `baseUrl` is the URL of the API, with or without a slash at the end.
 *
 * Texts are five times as fast as objects and `JSON.stringify`, because the common parts of tiles are written only once.
 */
export function createItemWriter(
  baseUrl: string,
  out: JsonBuffer,
): (tile: TileRecord, collection: CollectionRecord) => void {
  // Only the base may need JSON escapes: the other parts of a URL are percent-encoded.
  const url = stacUrls(escapeJsonText(baseUrl));
  const shared = new Map<CollectionRecord, CollectionText>();
  return (tile, collection) => {
    let texts = shared.get(collection);
    if (!texts) {
      texts = collectionText(collection, baseUrl);
      shared.set(collection, texts);
    }
    writeItem(out, tile, url, texts);
  };
}

/** Parts that all Items of a collection share. */
interface CollectionText {
  collection: CollectionRecord;
  /** The first members. */
  head: string;
  license: string;
  links: string;
  /** Properties that follow from the times of a tile, by these times: the tiles of a scene mostly share them. */
  times: Map<string, string>;
}

function collectionText(collection: CollectionRecord, baseUrl: string): CollectionText {
  return {
    collection,
    head: `"type":"Feature","stac_version":"1.0.0","collection":"${escapeJsonText(collection.id)}"`,
    license: escapeJsonText(collection.license),
    links: contentOf(collectionLinks(collection, stacUrls(baseUrl))),
    times: new Map(),
  };
}

function writeItem(out: JsonBuffer, tile: TileRecord, url: StacUrls, texts: CollectionText): void {
  const schema = schemaTextOf(tile);
  const grid = gridByName(tile.grid);
  const bounds = grid.bounds(tile.geocode);
  out.appendText(
    `{${texts.head},"stac_extensions":${schema.extensions},"id":"${escapeJsonText(tile.id)}"` +
      `,${tile.dataParts === undefined ? cellText(grid, tile.geocode) : areaText(grid, tile.geocode, tile.dataParts)}` +
      `,"properties":{${propertiesText(tile, bounds, texts)}${schema.properties},"proj:epsg":${grid.epsg}}` +
      `,"links":[{"rel":"self","href":"${url.item(tile.collection, tile.id)}",${GEOJSON}},${texts.links}` +
      `${tile.derivedFrom.map((id) => derivedFromText(url.item(tile.collection, id))).join('')}` +
      `${tile.model ? derivedFromText(url.modelItem(tile.model)) : ''}` +
      `${tile.via === undefined ? '' : `,{"rel":"via","href":"${escapeJsonText(tile.via)}"}`}]` +
      ',"assets":{',
  );
  writeAssets(out, tile, schema.groups, bounds, url);
  out.appendText('}}');
}

/** The members `bbox` and `geometry` of a tile that holds data in all parts of its cell. */
function cellText(grid: Grid, geocode: string): string {
  const [w, s, e, n] = cellBbox(grid, geocode).map(numberText);
  return (
    `"bbox":[${w},${s},${e},${n}],"geometry":{"type":"Polygon"` +
    `,"coordinates":[[[${w},${s}],[${e},${s}],[${e},${n}],[${w},${n}],[${w},${s}]]]}`
  );
}

/** The same members of another tile. */
function areaText(grid: Grid, geocode: string, dataParts: string): string {
  const polygons = new DividedCell(grid, geocode).outline(parseParts(dataParts));
  const [lons, lats] = [0, 1].map((axis) => polygons.flat(2).map((position) => position[axis]!));
  const bbox = [Math.min(...lons!), Math.min(...lats!), Math.max(...lons!), Math.max(...lats!)];
  const geometry =
    polygons.length === 1
      ? { type: 'Polygon', coordinates: polygons[0] }
      : { type: 'MultiPolygon', coordinates: polygons };
  return `"bbox":${JSON.stringify(bbox)},"geometry":${JSON.stringify(geometry)}`;
}

const GEOJSON = '"type":"application/geo+json"';

function derivedFromText(href: string): string {
  return `,{"rel":"derived_from","href":"${href}",${GEOJSON}}`;
}

function timesText({ start, end, createdAt }: TileRecord, { collection, times }: CollectionText): string {
  const key = `${start}/${end}/${createdAt}`;
  let text = times.get(key);
  if (text !== undefined) return text;
  text = `"datetime":"${isoTime(start)}","created":"${isoTime(createdAt)}"`;
  if (start !== end) text += `,"start_datetime":"${isoTime(start)}","end_datetime":"${isoTime(end)}"`;
  const attribution = attributionFor(collection, start, end);
  if (attribution !== undefined) text += `,"attribution":"${escapeJsonText(attribution)}"`;
  times.set(key, text);
  return text;
}

/** Returns where the model of a tile was trained: at the place of the tile, in a region that contains it, or at another place. */
function modelPlace(model: string, geocode: string): 'own' | 'region' | 'other' {
  const trained = geocodeOfModel(model);
  if (trained === geocode) return 'own';
  return trained === WORLD_CELL || geocode.startsWith(trained) ? 'region' : 'other';
}

function propertiesText(tile: TileRecord, bounds: GridBounds, texts: CollectionText): string {
  const { west, south, east, north } = bounds;
  const { platform, cloudCover, footprint } = tile;
  const geocode = escapeJsonText(tile.geocode);
  let text = timesText(tile, texts);
  if (platform !== null) text += `,"platform":"${escapeJsonText(platform)}"`;
  text += `,"license":"${texts.license}"`;
  text +=
    `,"geocode":"${geocode}","grid:code":"${tile.grid.toUpperCase()}-${geocode}","scene":"${escapeJsonText(tile.scene)}"` +
    `,"version":"${escapeJsonText(tile.version)}","source":"${tile.source}"`;
  if (tile.model)
    text +=
      `,"model":"${escapeJsonText(tile.model.id)}","model_version":"${escapeJsonText(tile.model.version)}"` +
      `,"model_place":"${modelPlace(tile.model.id, tile.geocode)}"`;
  if (tile.warnings) text += `,"warnings":${JSON.stringify(tile.warnings)}`;
  if (tile.model?.halo) text += `,"model_halo":"${tile.model.halo}"`;
  text += `,"pixel_coverage":${numberText(tile.coverage)}`;
  if (cloudCover !== null) text += `,"eo:cloud_cover":${numberText(cloudCover)}`;
  if (tile.estimated !== undefined) text += `,"pixels_estimated":${numberText(tile.estimated)}`;
  if (tile.otherDates !== undefined) text += `,"pixels_of_other_dates":${numberText(tile.otherDates)}`;
  text += `,"proj:bbox":[${numberText(west)},${numberText(south)},${numberText(east)},${numberText(north)}]`;
  // In every Item: stac-geoparquet cannot read a list of Items if some lack it.
  const [outline] = footprint.length > 0 ? [footprint] : bboxPolygon([west, south, east, north]).coordinates;
  const ring = outline!.map(([x, y]) => `[${numberText(x)},${numberText(y)}]`).join(',');
  return `${text},"proj:geometry":{"type":"Polygon","coordinates":[[${ring}]]}`;
}

function writeAssets(
  out: JsonBuffer,
  tile: TileRecord,
  texts: GroupText[],
  { west, south, east, north }: GridBounds,
  url: StacUrls,
): void {
  const files = url.tile(tile.id);
  const w = numberText(west);
  const n = numberText(north);
  for (let g = 0; g < texts.length; g++) {
    const { width, height, bands } = tile.groups[g];
    const { name, file, shared, betweenPercents } = texts[g];
    out.appendText(`"${name}":{"href":"${files}${file}",`);
    out.appendBytes(shared);
    out.appendText(
      `,"proj:shape":[${height},${width}],"proj:transform":[` +
        `${numberText((east - west) / width)},0,${w},0,${numberText((south - north) / height)},${n}]`,
    );
    out.appendText(betweenPercents ? `,"raster:bands":[${bandsText(bands, betweenPercents)}]},` : '},');
  }
  out.appendText(`"thumbnail":{"href":"${url.preview(tile.id)}",${PREVIEW}}`);
}

const PREVIEW = contentOf(PREVIEW_ASSET);

/** Parts of an asset that all tiles of a schema share. */
interface GroupText {
  name: string;
  /** The end of its URL. */
  file: string;
  /** Members of the asset. */
  shared: Buffer;
  /** The text of all bands, split at their percentages. Undefined if the asset has no `raster:bands`. */
  betweenPercents: string[] | undefined;
}

/** Parts that the Items of all tiles of a schema share. */
interface SchemaText {
  /** A list of URLs. */
  extensions: string;
  /** Members, each preceded by a comma. */
  properties: string;
  groups: GroupText[];
}

const textsBySchema = new WeakMap<TileSchema, SchemaText>();

function schemaTextOf(tile: TileRecord): SchemaText {
  const schema = schemaOf(tile);
  const known = schema && textsBySchema.get(schema);
  if (known) return known;
  const { stac_extensions, properties } = schemaExtensions(tile.groups);
  const text = {
    extensions: JSON.stringify(stac_extensions),
    properties: Object.entries(properties)
      .map(([name, value]) => `,"${name}":${numberText(value)}`)
      .join(''),
    groups: tile.groups.map(groupText),
  };
  if (schema) textsBySchema.set(schema, text);
  return text;
}

const PLACEHOLDER_BOUNDS: GridBounds = { west: 0, south: 0, east: 0, north: 0 };

function groupText(group: GroupRecord): GroupText {
  const {
    href: _h,
    'proj:shape': _s,
    'proj:transform': _t,
    'raster:bands': encodings,
    ...shared
  } = groupAsset(group, PLACEHOLDER_BOUNDS, '');
  return {
    name: escapeJsonText(group.name),
    file: `/${encodeURIComponent(group.name)}.tif`,
    shared: Buffer.from(contentOf(shared)),
    betweenPercents:
      encodings &&
      group.bands
        .map((band) => bandText(band, group))
        .join(',')
        .split(PERCENT_PLACEHOLDER),
  };
}

/** JSON never contains this character unescaped. */
const PERCENT_PLACEHOLDER = '\0';

function bandText(band: BandRecord, group: GroupRecord): string {
  const { valid_percent: _v, statistics: _s, ...shared } = rasterBand(band, group);
  return `{${contentOf(shared)},"valid_percent":${PERCENT_PLACEHOLDER},"statistics":{"valid_percent":${PERCENT_PLACEHOLDER}}}`;
}

function bandsText(bands: BandRecord[], betweenPercents: string[]): string {
  const percent = bands[0]?.validPercent ?? 0;
  const isOne = bands.every((band) => band.validPercent === percent);
  if (isOne) return betweenPercents.join(numberText(percent));
  // Each band has its percentage twice.
  const percents = bands.flatMap(({ validPercent }) => [numberText(validPercent), numberText(validPercent)]);
  return betweenPercents.map((text, i) => text + (percents[i] ?? '')).join('');
}

/** A number as `JSON.stringify` writes it. Engines cache the digits of numbers that they convert in templates. */
function numberText(value: number): string {
  return Number.isFinite(value) ? `${value}` : 'null';
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON escapes them
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/;

/** The JSON of a string without its quotes. Most strings need no escapes, and the test is faster than `JSON.stringify`. */
function escapeJsonText(text: string): string {
  return ESCAPED.test(text) ? JSON.stringify(text).slice(1, -1) : text;
}

/** The JSON of an object or a list without its brackets. */
function contentOf(value: object): string {
  return JSON.stringify(value).slice(1, -1);
}
