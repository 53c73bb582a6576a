/** Finds the inputs below a path, the files of an input, and the files beside a raster that ingest reads together with it. */

import { lstat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type FileType, maskPath, otherEnviFile, pamPath } from '../raster/index.js';
import { nameMismatch, notRecognised } from './errors.js';
import { type NamePattern, parseNamePattern, readName, sceneKey } from './formats/name-pattern.js';
import { probeInput } from './formats/probe.js';
import { identifyFormat } from './formats/registry.js';
import { readItemBesideFile } from './formats/stac-sidecar.js';
import type { InputProbe } from './scene.js';

interface FoundInputs {
  /** Files and product folders, each with one scene or more, or an archive of one. */
  inputs: string[];
  /** Folders without an input, and those too deep to be searched. */
  passedOver: string[];
  /** With a name pattern only: raster files whose names do not fit it. */
  skipped?: SkippedFile[];
}

export interface SkippedFile {
  path: string;
  reason: string;
}

export interface InputFinder {
  /** Inputs below a path, see `findInputs`. Throws TW_INGEST_NOT_RECOGNISED and TW_INGEST_NAME_MISMATCH. */
  find(path: string, levels?: number): Promise<FoundInputs>;
  /** The files of an input that is not an archive. A product folder is its own only file. */
  filesOf(input: string): Promise<string[]>;
}

/**
 * A file and a product folder are one input each. Any other folder is searched for raster files, archives and product folders, and so are
 * `levels` levels of its subfolders. Throws TW_INGEST_NOT_RECOGNISED if none of them holds one.
 */
export async function findInputs(path: string, levels = 1): Promise<FoundInputs> {
  const candidate = await probeInput(path);
  if (!candidate.entries || (await identifyFormat(candidate))) return { inputs: [path], passedOver: [] };
  const found = await findInFolder(candidate, levels);
  if (found.inputs.length === 0) throw noInputsIn(path);
  return found;
}

async function findInFolder({ path, entries }: InputProbe, levels: number): Promise<FoundInputs> {
  const found: FoundInputs = { inputs: [], passedOver: [] };
  for (const entry of entries ?? []) {
    const child = await probeInput(join(path, entry));
    if (!child.entries) {
      if (child.fileType && !isSideFile(entry)) found.inputs.push(child.path);
    } else if (await identifyFormat(child)) found.inputs.push(child.path);
    else if (!isSystemFolder(entry)) {
      const below = levels > 0 ? await findInFolder(child, levels - 1) : undefined;
      if (!below || below.inputs.length === 0) found.passedOver.push(child.path);
      for (const list of ['inputs', 'passedOver'] as const) found[list].push(...(below?.[list] ?? []));
    }
  }
  return found;
}

const noInputsIn = (folder: string) =>
  notRecognised(folder, 'neither it nor its direct subfolders hold a raster file or a product');

/** Folders of macOS in archives, and hidden ones. */
const isSystemFolder = (entry: string) => /^(\.|__MACOSX\/)/.test(entry);

/** True if the file must be unpacked first, by its content. */
export async function isArchive(path: string): Promise<boolean> {
  return isArchiveType((await probeInput(path)).fileType);
}

function isArchiveType(type: FileType | null): boolean {
  return type === 'zip' || type === 'tar' || type === 'gzip';
}

/** Overviews, masks and statistics beside a raster are TIFF or Erdas files, too, but not scenes. */
const isSideFile = (name: string) => /\.(ovr|msk|rrd|aux)$/i.test(name);

/**
 * Finds the scenes whose files share all facts in their names except the band. The input of a scene is the path of its first file. A scene
 * has all of its files in their folder, even if only one of them is named. Invariant: an instance returns each scene once, and lists each
 * folder once.
 */
class NamedInputs implements InputFinder {
  private readonly pattern: NamePattern;
  private readonly folders = new Map<string, Promise<Map<string, string[]>>>();
  private readonly returned = new Set<string>();

  constructor(namePattern: string) {
    this.pattern = parseNamePattern(namePattern);
  }

  async find(path: string, levels = 1): Promise<FoundInputs> {
    const candidate = await probeInput(path);
    if (candidate.entries) {
      const found = await this.findInFolder(candidate, levels);
      const { inputs, skipped } = found;
      if (inputs.length > 0) return found;
      throw skipped.length > 0 ? nameMismatch(path, skipped[0].reason) : noInputsIn(path);
    }
    if (isArchiveType(candidate.fileType)) return { inputs: [path], passedOver: [] };
    const reading = readName(this.pattern, basename(path));
    if (reading.reason !== undefined)
      throw isRaster(basename(path), candidate)
        ? nameMismatch(path, reading.reason)
        : notRecognised(path, 'its format is not known');
    return { inputs: await this.sceneOf(path), passedOver: [] };
  }

  async filesOf(input: string): Promise<string[]> {
    const folder = dirname(input);
    const key = keyOf(this.pattern, basename(input));
    const names = (await this.namesByScene(folder)).get(key) ?? [];
    const files: string[] = [];
    for (const name of names) {
      const file = join(folder, name);
      if (isRaster(name, await probeInput(file))) files.push(file);
    }
    return files;
  }

  private async findInFolder({ path, entries }: InputProbe, levels: number): Promise<Required<FoundInputs>> {
    const found: Required<FoundInputs> = { inputs: [], passedOver: [], skipped: [] };
    for (const name of entries ?? []) {
      const child = await probeInput(join(path, name));
      if (child.entries) {
        if (isSystemFolder(name)) continue;
        const below = levels > 0 ? await this.findInFolder(child, levels - 1) : undefined;
        if (!below || below.inputs.length + below.skipped.length === 0) found.passedOver.push(child.path);
        for (const list of ['inputs', 'passedOver'] as const) found[list].push(...(below?.[list] ?? []));
        found.skipped.push(...(below?.skipped ?? []));
      } else if (isArchiveType(child.fileType)) found.inputs.push(child.path);
      else if (isRaster(name, child)) {
        const { reason } = readName(this.pattern, name);
        if (reason !== undefined) found.skipped.push({ path: child.path, reason });
        else found.inputs.push(...(await this.sceneOf(child.path)));
      }
    }
    return found;
  }

  /** The input of the scene of a file; empty if it was returned before. */
  private async sceneOf(file: string): Promise<string[]> {
    const scene = sceneOfFile(this.pattern, file);
    if (this.returned.has(scene)) return [];
    this.returned.add(scene);
    // A file that is not a raster is its own input, which then fails with the reason.
    const [first = file] = await this.filesOf(file);
    return [first];
  }

  private namesByScene(folder: string): Promise<Map<string, string[]>> {
    const known = this.folders.get(folder) ?? listByScene(folder, this.pattern);
    this.folders.set(folder, known);
    return known;
  }
}

/** Finds inputs by their content, or with a pattern by the names of their files. Throws TW_INGEST_BAD_PATTERN. */
export function inputFinder(namePattern?: string): InputFinder {
  if (namePattern !== undefined) return new NamedInputs(namePattern);
  return { find: findInputs, filesOf: async (input) => [input] };
}

/** Equal for the files of one scene. For a file that does not fit the pattern: its path. */
export const sceneOfFile = (pattern: NamePattern, path: string) =>
  join(dirname(path), keyOf(pattern, basename(path)));

function keyOf(pattern: NamePattern, name: string): string {
  const reading = readName(pattern, name);
  return reading.reason === undefined ? sceneKey(reading.facts) : name;
}

const isRaster = (name: string, { fileType }: InputProbe) =>
  fileType !== null && !isArchiveType(fileType) && !isSideFile(name);

async function listByScene(folder: string, pattern: NamePattern): Promise<Map<string, string[]>> {
  const { entries } = await probeInput(folder);
  const names = new Map<string, string[]>();
  for (const name of entries ?? []) {
    const key = keyOf(pattern, name);
    const scene = names.get(key);
    if (scene) scene.push(name);
    else names.set(key, [name]);
  }
  return names;
}

/**
 * Paths of the mask file, GDAL's `.aux.xml`, the STAC Item, and the other file of an ENVI image. Empty for a folder, an
 * archive and a missing file. Throws TW_INGEST_BAD_SIDECAR, and TW_RASTER_... for an ENVI header that cannot be read.
 */
export async function sideFilesOf(path: string): Promise<string[]> {
  // The error of an input that cannot be opened is reported when it is sent.
  const candidate = await probeInput(path).catch(() => undefined);
  if (!candidate || candidate.entries || isArchiveType(candidate.fileType)) return [];
  const { fileType } = candidate;
  const envi =
    fileType === null || fileType === 'envi' ? await otherEnviFile(path, fileType === 'envi') : undefined;
  const image = fileType === 'envi' ? (envi ?? path) : path;
  const [mask, pam] = await Promise.all([maskPath(image), pamPath(image)].map(ifFile));
  const item = (await readItemBesideFile(path))?.path;
  const files = [envi, mask, pam, item].filter((file) => file !== undefined);
  // A STAC Item that is itself the input is not beside it.
  return files.filter((file) => basename(file) !== basename(path));
}

/** Ingest does not follow links to these files. */
const ifFile = (path: string) =>
  lstat(path).then(
    (info) => (info.isFile() ? path : undefined),
    () => undefined,
  );
