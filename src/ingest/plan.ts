/**
 * Plans the tiles of a scene, and the passes in which it is cut. The collection fixes the cells and the pixel sizes of its tiles, and the
 * first scene fixes them for the collection.
 */
import {
  cellSizeMetres,
  defaultPrecision,
  type Grid,
  gridByName,
  matchPixelSizes,
  type PixelGrid,
  type PixelSize,
  type PixelSizes,
  pixelGridsFor,
} from '../grid/index.js';
import { isHyperspectral, type SpectralTags } from '../raster/index.js';
import type { CollectionRecord, LogLevel, Storage } from '../storage/index.js';
import { formatPixelSize, nameGroups, replaceGroups } from './bands.js';
import { centreLonLat } from './georeferencing.js';
import { type IngestOptions, referenceGroup, requireGroup, type Scene, type SourceGroup } from './scene.js';

export interface ScenePlan {
  /** With the pixel sizes and the group names of its collection. */
  scene: Scene;
  collection: CollectionRecord;
  grid: Grid;
  /** Notes for the user before the scene is cut; they are the same for all scenes to which they apply. */
  notes: { level: LogLevel; text: string }[];
}

/**
 * Plans a scene in its collection, which either exists or will be created by this scene. New facts of the scene (pixel sizes,
 * notices of its product) are recorded in the collection here, so that scenes of other jobs see them; a dry run records them
 * only in `dry`, for its later scenes. Throws TW_STORAGE_COLLECTION_FIXED if the options require other cells than the
 * collection has.
 */
export async function planSceneTiles(
  storage: Storage,
  given: Scene,
  options: IngestOptions,
  dry = new Map<string, CollectionRecord>(),
): Promise<ScenePlan> {
  const id = options.collection ?? given.collection.id;
  const existing = dry.get(id) ?? (await storage.catalogue.collections.get(id));
  const grid = gridByName(options.grid ?? existing?.grid ?? 'geohash');
  const amend = (record: CollectionRecord) => mergeCollectionFacts(record, given);
  if (existing) {
    const fixed = existing.grid === grid.name ? existing.precision : undefined;
    const precision = options.precision ?? fixed ?? scenePrecision(given, grid);
    await storage.collectionFor({ ...given.collection, id, grid: grid.name, precision });
    const collection = options.dryRun ? amend(existing) : await storage.collections.update(id, amend);
    if (options.dryRun) dry.set(id, collection);
    const scene = matchScenePixelSizes(given, collection);
    return { scene, collection, grid, notes: planNotes(scene, collection, grid) };
  }
  const pixelSizes = sizesWith(given.collection.pixelSizes ?? [], given);
  const scene = matchScenePixelSizes(given, { pixelSizes });
  const precision = options.precision ?? scenePrecision(scene, grid);
  const facts = { ...scene.collection, id, grid: grid.name, precision, pixelSizes };
  const collection = await storage.collectionFor(facts);
  if (options.dryRun) dry.set(id, collection);
  const first = { level: 'info' as const, text: newCollectionNote(scene, collection, grid) };
  return { scene, collection, grid, notes: [first, ...planNotes(scene, collection, grid)] };
}

/** Plans a scene in a collection that has its pixel sizes already. */
export function planInCollection(given: Scene, collection: CollectionRecord): ScenePlan {
  const scene = matchScenePixelSizes(given, collection);
  return { scene, collection, grid: gridByName(collection.grid), notes: [] };
}

/** Pixel grids of each group of a planned scene in a cell. */
export function groupPixelGrids({ scene, collection, grid }: ScenePlan, geocode: string): PixelGrid[] {
  return pixelGridsFor(collection.pixelSizes ?? [], grid, geocode, resolutionsOf(scene));
}

/** The finest precision whose cell at the scene's centre is at least 128 px of the finest data group wide. */
export function scenePrecision(scene: Scene, grid: Grid): number {
  const group = referenceGroup(scene);
  const { lon, lat } = centreLonLat(group.bands[0].header);
  return defaultPrecision(grid, lon, lat, Math.max(group.resolution.x, group.resolution.y));
}

// --- pixel sizes ------------------------------------------------------------------------------------------------

const resolutionsOf = ({ groups }: Scene): PixelSize[] => groups.map(({ resolution }) => resolution);

const sizesWith = (known: PixelSizes, scene: Scene): PixelSizes =>
  matchPixelSizes(known, resolutionsOf(scene)).known;

/** A collection record with the properties that a scene adds. A collection of another product keeps its own notices. */
function mergeCollectionFacts(record: CollectionRecord, scene: Scene): CollectionRecord {
  const { attribution, licenseUrl, providers, pixelSizes } = scene.collection;
  // Older versions recorded no pixel sizes: their tiles have the measured sizes of each scene.
  const known = record.pixelSizes ?? pixelSizes ?? [distinct(resolutionsOf(scene))];
  const notices = scene.collection.id === record.id ? { attribution, licenseUrl, providers } : {};
  const missing = Object.entries(notices).filter(
    ([name, value]) => value !== undefined && record[name as keyof typeof notices] === undefined,
  );
  return { ...record, ...Object.fromEntries(missing), pixelSizes: sizesWith(known, scene) };
}

const distinct = (sizes: PixelSize[]) => [
  ...new Map(sizes.map((size) => [`${size.x} ${size.y}`, size])).values(),
];

/** A scene whose groups have the pixel sizes of its collection, and names that follow from them. */
function matchScenePixelSizes(
  scene: Scene,
  { pixelSizes = [] }: Pick<CollectionRecord, 'pixelSizes'>,
): Scene {
  const { fitted } = matchPixelSizes(pixelSizes, resolutionsOf(scene));
  return replaceGroups(
    scene,
    nameGroups(scene.groups.map((group, g) => ({ ...group, resolution: fitted[g] }))),
  );
}

// --- notes ------------------------------------------------------------------------------------------------------

/** A cell at the centre of the scene; the nearest cell of the grid if the centre lies beyond it. */
function middleCell(scene: Scene, grid: Grid, precision: number): string {
  const { lon, lat } = centreLonLat(referenceGroup(scene).bands[0].header);
  const { west, south, east, north } = grid.extent;
  const [x, y] = grid.fromLonLat(lon, lat);
  return grid.encode(Math.min(Math.max(x, west), east), Math.min(Math.max(y, south), north), precision);
}

function newCollectionNote(scene: Scene, { id, precision }: CollectionRecord, grid: Grid): string {
  const { width, height } = cellSizeMetres(grid, middleCell(scene, grid, precision));
  const length = (metres: number) =>
    metres < 1000 ? `${Math.round(metres)} m` : `${Number((metres / 1000).toPrecision(2))} km`;
  return `collection ${id} is new: this scene fixes its cells, ${grid.name} of precision ${precision} (about ${length(width)} x ${length(height)})`;
}

/**
 * Minimum width of a tile. The first scene of a collection fixes its cells, and much coarser scenes then have tiles of a few
 * pixels.
 */
const MIN_TILE_WIDTH_PIXELS = 32;

function planNotes(scene: Scene, collection: CollectionRecord, grid: Grid): ScenePlan['notes'] {
  const { id, precision } = collection;
  const group = referenceGroup(scene);
  const plan = { scene, collection, grid, notes: [] };
  const { width } = groupPixelGrids(plan, middleCell(scene, grid, precision))[scene.groups.indexOf(group)];
  if (width >= MIN_TILE_WIDTH_PIXELS) return [];
  const metres = formatPixelSize(Math.max(group.resolution.x, group.resolution.y));
  const text = `pixels of ${metres} m are coarse for the cells of collection ${id} (${grid.name}, precision ${precision}): tiles are less than ${MIN_TILE_WIDTH_PIXELS} px wide; put such scenes into a collection of their own, with a lower --precision`;
  return [{ level: 'warning', text }];
}

/**
 * Cuts one file of each tile: the groups of one pixel size. Their sources are in memory together, with those of the quality bands of the
 * mask. The file of the finest data group also has the mask.
 */
export interface CutPass {
  /** Indexes of the groups within the scene, in the order of their images in the file. */
  groups: number[];
  /** True if one of them is a cube, which is cut separately, see `cut/cube.ts`: its rows would not fit into memory. */
  hasCube: boolean;
  /** The groups of the file, then others with quality bands. */
  sources: SourceGroup[];
  /** Null if this pass makes no mask. */
  mask: {
    /** Index of the finest data group within `groups`. */
    reference: number;
    quality: MaskSource[];
  } | null;
}

/** A band with quality codes among the sources of a pass. */
export interface MaskSource {
  source: number;
  band: number;
  codes: Uint8Array;
}

export const isCubeGroup = ({ role, bands }: { role: string; bands: readonly SpectralTags[] }) =>
  role === 'data' && isHyperspectral(bands);

/**
 * One pass for each pixel size, so that only the rows of a few groups are in memory at a time. The last one makes the mask, which marks the
 * pixels with data of all groups. Without `quality`, the mask marks nothing else.
 */
export function planCutPasses(scene: Scene, quality: boolean): CutPass[] {
  const reference = scene.groups.indexOf(referenceGroup(scene));
  const passes = new Map<string, number[]>();
  for (const [g, { resolution }] of scene.groups.entries()) {
    const size = `${resolution.x} ${resolution.y}`;
    passes.set(size, [...(passes.get(size) ?? []), g]);
  }
  const all = [...passes.values()].map((groups): CutPass => {
    // Cubes are written first, because they are larger than memory.
    groups.sort((a, b) => Number(isCubeGroup(scene.groups[b]!)) - Number(isCubeGroup(scene.groups[a]!)));
    const sources = groups.map((g) => scene.groups[g]!);
    return { groups, hasCube: sources.some(isCubeGroup), sources, mask: null };
  });
  const last = all.find(({ groups }) => groups.includes(reference))!;
  const codes = (quality ? scene.quality : []).map(({ group, band, codes }): MaskSource => {
    const source = requireGroup(scene, group);
    if (!last.sources.includes(source)) last.sources.push(source);
    return { source: last.sources.indexOf(source), band, codes };
  });
  last.mask = { reference: last.groups.indexOf(reference), quality: codes };
  return [...all.filter((pass) => pass !== last), last];
}
