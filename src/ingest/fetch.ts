/**
 * Fetches the files of a STAC Item, or a single file, into a folder that ingest reads like one on the disk: first their headers, then the
 * blocks that the cells of a scene need.
 */
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { mapConcurrent, runAllOrAbort } from '../async/index.js';
import { blocksOfWindow, isTiff, type RasterHeader, withOnlyBlocks } from '../raster/index.js';
import {
  type ByteRange,
  type HttpClient,
  linksOf,
  mergeRanges,
  type RemoteFile,
  type RemoteItem,
  readDocument,
  withoutSecrets,
} from '../remote/index.js';
import { sourceWindowForCell } from './cells.js';
import { catalogAsFile } from './errors.js';
import { type AssetChoice, chooseAssets } from './items.js';
import type { ScenePlan } from './plan.js';
import { type CopyContext, openRemoteCopy, type WholeFiles, writeFully } from './remote-copy.js';
import type { Scene } from './scene.js';

/** Files whose parts are still to be read, by the path of their copies. */
type RemoteFiles = Map<string, RemoteFile>;

const CONCURRENT_FILES = 8;

export interface FetchedFiles {
  /** The input of ingest: a folder with an Item, or a file. */
  input: string;
  files: RemoteFiles;
  /** Addresses of all files by the path of their copies. */
  urls: Map<string, string>;
  /** Bytes of the files that were downloaded as a whole. */
  downloaded: number[];
}

/** Throws TW_REMOTE_..., TW_RASTER_... and TW_INGEST_MISSING_ASSET. */
export async function fetchItem(
  context: CopyContext,
  item: RemoteItem,
  folder: string,
  choice: AssetChoice,
  licence: Licence,
): Promise<FetchedFiles> {
  const chosen = chooseAssets(item, choice);
  const urls = new Map(chosen.map(({ url, extension }, i) => [join(folder, localName(i, extension)), url]));
  const fetched = await fetchAll(context, urls);
  const local = chosen.map(({ key, asset, extension }, i) => [
    key,
    { ...asset, href: `./${localName(i, extension)}` },
  ]);
  const { properties } = item.document;
  const { license, links } = licence;
  const document = {
    ...{ type: 'Feature', stac_version: '1.0.0', ...item.document },
    ...(license !== undefined && { properties: { license, ...(properties as object | undefined) } }),
    links,
    assets: Object.fromEntries(local),
  };
  await writeFile(join(folder, 'item.json'), JSON.stringify(document));
  return { input: folder, urls, ...fetched };
}

/**
 * Fetches a file that no Item describes. Its name stays, because formats are recognised by it. Throws TW_INGEST_CATALOG for a JSON
 * document, and as `fetchItem` does.
 */
export async function fetchFile(context: CopyContext, url: string, folder: string): Promise<FetchedFiles> {
  const input = join(folder, fileName(url));
  const urls = new Map([[input, url]]);
  const fetched = await fetchAll(context, urls);
  if (await isJson(input)) throw catalogAsFile(withoutSecrets(url));
  return { input, urls, ...fetched };
}

/** True if a file begins like a JSON object. No raster does. */
async function isJson(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(64), 0, 64, 0);
    return /^\s*\{\s*("|$)/.test(buffer.toString('latin1', 0, bytesRead));
  } finally {
    await file.close();
  }
}

async function fetchAll(
  context: CopyContext,
  urls: Map<string, string>,
): Promise<Pick<FetchedFiles, 'files' | 'downloaded'>> {
  const files: RemoteFiles = new Map();
  const downloaded: number[] = [];
  await mapConcurrent([...urls], CONCURRENT_FILES, async ([path, url]) => {
    const file = await openRemoteCopy(context, url, path);
    if (typeof file === 'number') downloaded.push(file);
    else files.set(path, file);
  });
  return { files, downloaded };
}

/** Products are recognised by the names of their files, which must not happen to the assets of an Item. */
const localName = (index: number, extension: string) => `asset-${index}.${extension}`;

const MAX_NAME_CHARS = 120;

/** The name at the end of an address, without characters that file systems treat specially. */
function fileName(url: string): string {
  const [name = ''] = new URL(url).pathname.split('/').slice(-1);
  const safe = name.replace(/[^A-Za-z0-9._-]/g, '_').replace(/^\.+/, '');
  return safe.slice(-MAX_NAME_CHARS) || 'scene.tif';
}

/** The blocks that are needed of each raster. An image and the mask in the same file are two rasters. */
type NeededBlocks = Map<RasterHeader['blocks'], { header: RasterHeader; blocks: Set<number> }>;

/** The requests for a scene. */
interface FetchPlan {
  needed: NeededBlocks;
  /** By the path of the copy. */
  ranges: Map<string, ByteRange[]>;
  /** Paths of the files that are read as a whole. */
  whole: Set<string>;
  requests: number;
  bytes: number;
}

/** Plans which parts of the files are read for some cells: blocks of a GeoTIFF, and all of a file in another format. */
export function planFetch({ scene, grid }: ScenePlan, cells: string[], files: RemoteFiles): FetchPlan {
  const needed: NeededBlocks = new Map();
  const whole = new Set<string>();
  const add = (header: RasterHeader, bands: number[], window: Parameters<typeof blocksOfWindow>[2]) => {
    if (!isTiff(header)) {
      whole.add(header.path);
      return;
    }
    const known = needed.get(header.blocks) ?? { header, blocks: new Set() };
    needed.set(header.blocks, known);
    for (const block of blocksOfWindow(header, bands, window)) known.blocks.add(block);
  };
  for (const group of scene.groups)
    for (const cell of cells) {
      const window = sourceWindowForCell(group, grid, cell);
      if (window.width === 0 || window.height === 0) continue;
      for (const { header, index } of group.bands) {
        const bands = header.alpha === undefined ? [index] : [index, header.alpha];
        add(header, bands, window);
        if (header.mask) add(header.mask, [...Array(header.mask.bands).keys()], window);
      }
    }
  const ranges = new Map<string, ByteRange[]>();
  for (const path of whole) {
    const file = files.get(path);
    if (file && !file.isComplete) ranges.set(path, file.wholeRanges());
  }
  for (const { header, blocks } of needed.values()) {
    // Files without parts to be read are complete.
    if (!isTiff(header) || !files.has(header.path)) continue;
    const { offsets, byteCounts } = header.blocks;
    const own = [...blocks].map((i) => ({ offset: offsets[i]!, bytes: byteCounts[i]! }));
    ranges.set(header.path, [...(ranges.get(header.path) ?? []), ...own]);
  }
  for (const [path, parts] of ranges) ranges.set(path, mergeRanges(parts));
  const all = [...ranges.values()].flat();
  const bytes = all.reduce((sum, one) => sum + one.bytes, 0);
  return { needed, ranges, whole, requests: all.length, bytes };
}

/** Returns the bytes of the needed blocks of a plan, by file and offset. */
export function bytesOfBlocks({ needed }: Pick<FetchPlan, 'needed'>): Map<string, number> {
  const bytes = new Map<string, number>();
  for (const { header, blocks } of needed.values()) {
    if (!isTiff(header)) continue;
    const { offsets, byteCounts } = header.blocks;
    for (const i of blocks) bytes.set(`${header.path}\n${offsets[i]}`, byteCounts[i]!);
  }
  return bytes;
}

/** Reads the parts of a plan into the copies, and keeps whole files. `onBytes` gets the bytes of each piece. Throws TW_REMOTE_... */
export async function fetchRanges(
  { ranges, whole }: Pick<FetchPlan, 'ranges' | 'whole'>,
  files: RemoteFiles,
  kept: WholeFiles,
  onBytes: (bytes: number) => void,
  signal?: AbortSignal,
): Promise<void> {
  await runAllOrAbort(
    [...ranges].map(([path, parts]) => async (own) => {
      const file = files.get(path)!;
      const copy = await open(path, 'r+');
      try {
        const write = async (bytes: Buffer, position: number) => {
          await writeFully(copy, bytes, position);
          onBytes(bytes.length);
        };
        await file.readRanges(parts, write, own);
      } finally {
        await copy.close();
      }
      if (!whole.has(path)) return;
      await kept.keep(file, path);
      file.isComplete = true;
    }),
    signal,
  );
}

/** Returns a scene whose rasters have only the fetched blocks; the others are read as nodata. */
export function withFetchedBlocks(scene: Scene, { needed }: Pick<FetchPlan, 'needed'>): Scene {
  const known = new Map<RasterHeader, RasterHeader>();
  const only = (header: RasterHeader): RasterHeader => {
    const found = known.get(header);
    if (found || !isTiff(header)) return found ?? header;
    const blocks = needed.get(header.blocks)?.blocks ?? new Set<number>();
    const limited = { ...withOnlyBlocks(header, blocks), ...(header.mask && { mask: only(header.mask) }) };
    known.set(header, limited);
    return limited;
  };
  const groups = scene.groups.map((group) => ({
    ...group,
    bands: group.bands.map((band) => ({ ...band, header: only(band.header) })),
  }));
  return { ...scene, groups };
}

interface Licence {
  license?: string;
  /** Links with the relation `license`. */
  links: { rel: string; href: string }[];
}

/** Finds the licence of an Item in its collection, where most archives say it. Invariant: a collection is requested once. */
export class CollectionLicences {
  private readonly known = new Map<string, Promise<Licence>>();

  constructor(
    private readonly client: HttpClient,
    private readonly signal?: AbortSignal,
  ) {}

  /** The licence of the Item, or else that of its collection; empty if neither has one. Throws TW_REMOTE_... and TW_STAC_... */
  async of({ document, url }: RemoteItem): Promise<Licence> {
    const links = linksOf(document, url);
    const own = licenceOf(document, url, document.properties);
    if (own.license !== undefined || own.links.length > 0) return own;
    const href = links.find(({ rel }) => rel === 'collection')?.href;
    if (href === undefined || !/^https?:/.test(href)) return own;
    const known = this.known.get(href) ?? this.read(href);
    this.known.set(href, known);
    return known;
  }

  private async read(href: string): Promise<Licence> {
    const document = (await readDocument(this.client, href, { signal: this.signal })) ?? {};
    return licenceOf(document, href, document);
  }
}

function licenceOf(document: Record<string, unknown>, url: string, holder: unknown): Licence {
  const { license } = (holder ?? {}) as { license?: unknown };
  return {
    ...(typeof license === 'string' && { license }),
    links: linksOf(document, url)
      .filter(({ rel }) => rel === 'license')
      .map(({ rel, href }) => ({ rel, href })),
  };
}
