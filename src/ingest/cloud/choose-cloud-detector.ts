/** Chooses how cloud is detected in a scene. */
import { referenceGroup, type Scene, type SourceBand } from '../ingest-scene-description.js';
import { MODEL_BANDS } from './s2cloudless.js';

export type CloudDetection =
  | { kind: 'reflectance' }
  /** `pixelSize`: of the mask, metres. */
  | { kind: 'model'; path: string; pixelSize: number };

/** A band among the staged files of a cell. Physical value = stored * scale + offset. */
export interface DetectorBand {
  group: string;
  /** Index within the group's file. */
  band: number;
  scale: number;
  offset: number;
  nodata: number | null;
}

/** A detector, and the bands that it reads by the names that it uses. */
export interface CloudDetector {
  test: CloudDetection;
  bands: Record<string, DetectorBand>;
}

/** Common names of bands for each of the six inputs of the reflectance tests. */
const REFLECTANCE_BANDS: Record<string, string[]> = {
  blue: ['blue'],
  green: ['green'],
  red: ['red'],
  nir: ['nir08', 'nir'],
  swir16: ['swir16'],
  swir22: ['swir22'],
};

/**
 * The operator's model if the scene has all of its bands (Sentinel-2 L1C), whether or not the product has a mask. Otherwise
 * the reflectance tests, if the product has no mask and either allows them or the user `asked` for them. Null if cloud cannot
 * be detected, with a warning on the scene if bands are missing.
 */
export function chooseDetector(
  scene: Scene,
  modelPath: string | undefined,
  asked: boolean,
): CloudDetector | null {
  if (modelPath !== undefined) {
    const bands = findBands(scene, Object.fromEntries(MODEL_BANDS.map((name) => [name, [name]])), byName);
    const pixelSize = referenceGroup(scene).resolution.x;
    if (bands) return { test: { kind: 'model', path: modelPath, pixelSize }, bands };
  }
  if (scene.quality.length > 0 || !(scene.reflectanceTest || asked)) return null;
  const bands = findBands(scene, REFLECTANCE_BANDS, (band) => band.commonName);
  if (!bands) {
    const advice = asked ? ' (name them by --bands)' : '';
    scene.warnings.push(
      `cloud is not assessed: the tests need bands named ${Object.keys(REFLECTANCE_BANDS).join(', ')}${advice}`,
    );
    return null;
  }
  if (isUncalibrated(scene, bands)) {
    scene.warnings.push('cloud is not assessed: the tests need reflectance from 0 to 1; set --scale');
    return null;
  }
  return { test: { kind: 'reflectance' }, bands };
}

/** True for integers without a scale to reflectance: the tests would detect cloud everywhere. */
function isUncalibrated(scene: Scene, bands: Record<string, DetectorBand>): boolean {
  return Object.values(bands).some(({ group: name, scale }) => {
    const group = scene.groups.find((one) => one.name === name);
    return scale === 1 && !group?.bands[0].header.dataType.startsWith('float');
  });
}

const byName = (band: SourceBand) => band.name;

function findBands(
  scene: Scene,
  wanted: Record<string, string[]>,
  nameOf: (band: SourceBand) => string | undefined,
): Record<string, DetectorBand> | null {
  const found: Record<string, DetectorBand> = {};
  const candidates = scene.groups
    .filter((group) => group.role === 'data')
    .flatMap(({ name: group, nodata, bands }) =>
      bands.map((band, index) => {
        const { scale, offset } = band;
        return { name: nameOf(band), band: { group, band: index, scale, offset, nodata } };
      }),
    );
  for (const [as, names] of Object.entries(wanted)) {
    const [match] = names.flatMap((name) => candidates.filter((one) => one.name === name));
    if (!match) return null;
    found[as] = match.band;
  }
  return found;
}
