/**
 * EO-1 Hyperion level 1T: radiance at the sensor on a UTM grid, one GeoTIFF for each of 242 bands and metadata as text (USGS,
 * EO-1 Hyperion README and Level 1 Data Format Control Book). Values are watts per square metre, steradian and micrometre,
 * times a factor for each detector.
 */
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { openRaster } from '../../../raster/index.js';
import { badMetadata, missingBand, notRecognised } from '../../errors.js';
import { nominalPixelSize } from '../../georeferencing/index.js';
import { groupBands, type UngroupedBand } from '../../ingest-band-groups.js';
import type { InputProbe, ProductFormat, Scene } from '../../ingest-scene-description.js';
import { type MtlGroup, readMtl } from '../landsat/index.js';
import {
  type AcquisitionTime,
  datetimeOption,
  NASA,
  parseTime,
  timeRange,
  USGS,
  withCommonNames,
} from '../shared/index.js';
import { HYPERION_BANDS } from './hyperion-bands.js';

const BAND_FILE = /^(EO1H\w+)_B(\d{3})_L1T\.TIFF?$/i;
const METADATA = /^(EO1H\w+)_MTL[._]L1T(?:\.TXT)?$/i;

/** No radiance is that low. The files have 0 for unseen pixels. */
const NODATA = -32768;
/** Scale factors from the product's README, for metadata without them. */
const SCALING_FACTORS = { vnir: 40, swir: 80 };

export const hyperion: ProductFormat = {
  name: 'Hyperion L1T',

  async identify({ path, entries }) {
    if (entries === null) return METADATA.test(basename(path));
    return entries.some((name) => METADATA.test(name) || BAND_FILE.test(name));
  },

  async describe(candidate, options) {
    const { path } = candidate;
    const { folder, metadata, id, files } = await filesOf(candidate);
    const groups = [...(await readMtl(metadata)).values()];
    const values: MtlGroup = Object.assign({}, ...groups);
    const bands = await spectralBands(folder, files, values, metadata);
    return [
      {
        path,
        id: options.id ?? id,
        collection: {
          id: options.collection ?? 'hyperion-l1t',
          title: 'EO-1 Hyperion L1T radiance at the sensor',
          // USGS: its data are in the public domain.
          license: 'PDDL-1.0',
          attribution: 'EO-1 Hyperion data courtesy of the U.S. Geological Survey',
          providers: [NASA, USGS],
        },
        platform: options.platform ?? 'eo-1',
        ...(datetimeOption(options) ?? timeOf(values, metadata)),
        groups: groupBands(withCommonNames(bands)),
        quality: [],
        warnings: [
          'values are radiance at the sensor, not reflectance',
          'the product has no cloud mask, so cloud is not assessed',
        ],
      },
    ] satisfies Scene[];
  },
};

/** The files of a scene: their names have the scene id of the metadata file. Throws TW_INGEST_BAD_METADATA if there are none. */
async function filesOf({ path, entries }: InputProbe) {
  const folder = entries ? path : dirname(path);
  const names = entries ?? (await readdir(folder));
  const metadata = entries ? names.find((name) => METADATA.test(name)) : basename(path);
  if (metadata === undefined) throw badMetadata(path, 'the file *_MTL_L1T.TXT is not there');
  const id = METADATA.exec(metadata)?.[1];
  if (id === undefined) throw notRecognised(path, 'it is not a Hyperion product');
  const files = new Map<number, string>();
  for (const name of names) {
    const [, scene, number] = BAND_FILE.exec(name) ?? [];
    if (scene?.toUpperCase() === id.toUpperCase()) files.set(Number(number), join(folder, name));
  }
  return { folder, metadata: join(folder, metadata), id, files };
}

/** All existing bands. Bands without calibration are bad and may be missing. Throws TW_INGEST_MISSING_BAND. */
async function spectralBands(
  folder: string,
  files: Map<number, string>,
  values: MtlGroup,
  metadata: string,
): Promise<UngroupedBand[]> {
  const bands: UngroupedBand[] = [];
  for (const { number, detector, calibrated, wavelength, fwhm } of HYPERION_BANDS) {
    const name = `B${String(number).padStart(3, '0')}`;
    const file = files.get(number);
    if (file === undefined) {
      if (!calibrated) continue;
      throw missingBand(folder, name, `There is no file *_${name}_L1T.TIF; download the product again.`);
    }
    // One after another, so that only one file is open at a time.
    const header = await openRaster(file);
    if (header.dataType !== 'int16')
      throw badMetadata(file, `its pixels are ${header.dataType}, and those of Hyperion are int16`);
    bands.push({
      name,
      header,
      index: 0,
      role: 'data',
      resampling: 'nearest',
      nodata: NODATA,
      resolution: nominalPixelSize(header),
      scale: 1 / factorOf(values, detector, metadata),
      offset: 0,
      detector,
      wavelength,
      fwhm,
      ...(!calibrated && { good: false as const }),
    });
  }
  return bands;
}

function factorOf(values: MtlGroup, detector: keyof typeof SCALING_FACTORS, metadata: string): number {
  const name = `SCALING_FACTOR_${detector.toUpperCase()}`;
  const factor = Number(values[name] ?? SCALING_FACTORS[detector]);
  if (!(factor > 0)) throw badMetadata(metadata, `${name} is ${values[name]}`);
  return factor;
}

/** Times are "2010 158 18:41:37", with the day of the year; the date is a separate field. */
function timeOf(values: MtlGroup, metadata: string): AcquisitionTime {
  const [start, end] = ['START_TIME', 'END_TIME'].map((name) => {
    const clock = /\d\d:\d\d(:\d\d(\.\d+)?)?$/.exec(values[name] ?? '')?.[0];
    return clock ? parseTime(`${values['ACQUISITION_DATE']}T${clock}`) : NaN;
  });
  const range = timeRange(start!, end!);
  if (!range) throw badMetadata(metadata, 'it has no ACQUISITION_DATE with a START_TIME');
  return range;
}
