/** A scene of the rasters that a name pattern groups: one file, or one file for each band. */
import { basename, dirname } from 'node:path';
import { mapConcurrent } from '../../async/index.js';
import { groupBands, type UngroupedBand } from '../bands.js';
import { badNamePattern, bandTwice, nameMismatch } from '../errors.js';
import {
  type DescribeOptions,
  type FileNameFacts,
  type ProductFormat,
  type Scene,
  slugify,
} from '../scene.js';
import { checkNamePattern, parseNamePattern, readName } from './name-pattern.js';
import { probeInput } from './probe.js';
import { asCommonName } from './raster-bands.js';
import { rasterFile } from './raster-file.js';

/** Number of files opened concurrently: each JPEG 2000 file needs a process. */
const MAX_CONCURRENT_OPENS = 4;

/** Describes all `files` as one scene. Options take precedence over the names, and the names over STAC Items and tags. */
export function namedRasters(files: string[]): Pick<ProductFormat, 'name' | 'describe'> {
  return {
    name: 'raster files named by a pattern',

    async describe({ path }, options) {
      checkNamePattern(options);
      const { sceneName, names } = readNames(files, options);
      const [{ time, platform }] = names;
      const given: DescribeOptions = {
        ...options,
        id: options.id ?? slugify(sceneName),
        datetime: options.datetime ?? time,
        platform: options.platform ?? platform,
      };
      const scenes = await mapConcurrent(files, MAX_CONCURRENT_OPENS, async (file) => {
        const [scene] = await rasterFile.describe(await probeInput(file), given);
        return scene;
      });
      return [{ ...mergeScenes(scenes, names), path, names }];
    },
  };
}

/** Throws TW_INGEST_NAME_MISMATCH, TW_INGEST_BAND_TWICE and TW_INGEST_BAD_PATTERN. */
function readNames(
  files: string[],
  { namePattern = '', id }: DescribeOptions,
): { sceneName: string; names: FileNameFacts[] } {
  const pattern = parseNamePattern(namePattern);
  let sceneName = '';
  const fileOfBand = new Map<string | undefined, string>();
  const names = files.map((file) => {
    const reading = readName(pattern, basename(file));
    if (reading.reason !== undefined) throw nameMismatch(file, reading.reason);
    const { facts } = reading;
    const other = fileOfBand.get(facts.band);
    if (other !== undefined) throw bandTwice(file, other, facts.band);
    fileOfBand.set(facts.band, file);
    ({ sceneName } = reading);
    return facts;
  });
  if (sceneName === '' && id === undefined)
    throw badNamePattern(
      namePattern,
      `nothing that it reads names the scene of ${dirname(files[0]!)}; add --id, or a field such as {time:%Y%m%d}`,
    );
  return { sceneName, names };
}

function mergeScenes(scenes: Scene[], names: FileNameFacts[]): Scene {
  const [first] = scenes;
  if (names[0].band === undefined) return first;
  const bands = scenes.flatMap(({ groups }, i) => renameBands(ungroup(groups), names[i].band!));
  return {
    ...first,
    groups: groupBands(bands),
    warnings: [...new Set(scenes.flatMap(({ warnings }) => warnings))],
  };
}

const ungroup = (groups: Scene['groups']): UngroupedBand[] =>
  groups.flatMap(({ bands, role, nodata, resolution, resampling }) =>
    bands.map((band) => ({ ...band, role, nodata, resolution, resampling })),
  );

/** The only band of a file has the name in the file name. Several bands add their own: `rgb_b1`. */
function renameBands(bands: UngroupedBand[], name: string): UngroupedBand[] {
  if (bands.length > 1) return bands.map((band) => ({ ...band, name: `${name}_${band.name}` }));
  return bands.map((band) => ({ ...band, name, commonName: asCommonName(name) ?? band.commonName }));
}
