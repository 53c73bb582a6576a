/** Finds the scenes whose files share all facts in their names except the band. */
import { basename, dirname, join } from 'node:path';
import { nameMismatch, notRecognised } from '../errors.js';
import { type NamePattern, parseNamePattern, readName, sceneKey } from '../formats/name-pattern/index.js';
import { probeInput } from '../formats/shared/index.js';
import type { InputProbe } from '../ingest-scene-description.js';
import {
  type FoundInputs,
  findInputs,
  type InputFinder,
  isArchiveType,
  isSideFile,
  noInputsIn,
} from './find-inputs.js';

/**
 * The input of a scene is the path of its first file. A scene has all of its files in their folder, even if only one of them is
 * named. Invariant: an instance returns each scene once, and lists each folder once.
 */
class NamedInputs implements InputFinder {
  private readonly pattern: NamePattern;
  private readonly folders = new Map<string, Promise<Map<string, string[]>>>();
  private readonly returned = new Set<string>();

  constructor(namePattern: string) {
    this.pattern = parseNamePattern(namePattern);
  }

  async find(path: string): Promise<FoundInputs> {
    const candidate = await probeInput(path);
    if (candidate.entries) {
      const found = await this.findInFolder(candidate, 1);
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
