/**
 * EO-1 Hyperion level 1T: radiance at the sensor on a UTM grid, one GeoTIFF for each of 242 bands and metadata as text (USGS,
 * EO-1 Hyperion README and Level 1 Data Format Control Book). Values are watts per square metre, steradian and micrometre,
 * times a factor for each detector.
 */
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { openRaster } from '../../raster/index.js';
import { groupBands, type UngroupedBand, withCommonNames } from '../bands.js';
import { badMetadata, missingBand, notRecognised } from '../errors.js';
import { nominalPixelSize } from '../georeferencing.js';
import type { InputProbe, ProductFormat, Scene } from '../scene.js';
import { type AcquisitionTime, datetimeOption, parseTime, timeRange } from './acquisition-time.js';
import { type MtlGroup, readMtl } from './landsat-mtl.js';
import { NASA, USGS } from './providers.js';

/**
 * Centres of the 242 bands of Hyperion, nm, in the order of their numbers, which is not that of their wavelengths: bands 1-70 belong to the
 * visible and near infrared detector, and 71-242 to the other one, whose range overlaps it. Source: USGS, "Hyperion Spectral Coverage"
 * (EO-1 sensors); the same for all scenes.
 */
const CENTRE_WAVELENGTHS_NM = `
  355.59 365.76 375.94 386.11 396.29 406.46 416.64 426.82 436.99 447.17 457.34 467.52 477.69 487.87 498.04
  508.22 518.39 528.57 538.74 548.92 559.09 569.27 579.45 589.62 599.80 609.97 620.15 630.32 640.50 650.67
  660.85 671.02 681.20 691.37 701.55 711.72 721.90 732.07 742.25 752.43 762.60 772.78 782.95 793.13 803.30
  813.48 823.65 833.83 844.00 854.18 864.35 874.53 884.70 894.88 905.05 915.23 925.41 935.58 945.76 955.93
  966.11 976.28 986.46 996.63 1006.81 1016.98 1027.16 1037.33 1047.51 1057.68 851.92 862.01 872.10 882.19
  892.28 902.36 912.45 922.54 932.64 942.73 952.82 962.91 972.99 983.08 993.17 1003.30 1013.30 1023.40
  1033.49 1043.59 1053.69 1063.79 1073.89 1083.99 1094.09 1104.19 1114.19 1124.28 1134.38 1144.48 1154.58
  1164.68 1174.77 1184.87 1194.97 1205.07 1215.17 1225.17 1235.27 1245.36 1255.46 1265.56 1275.66 1285.76
  1295.86 1305.96 1316.05 1326.05 1336.15 1346.25 1356.35 1366.45 1376.55 1386.65 1396.74 1406.84 1416.94
  1426.94 1437.04 1447.14 1457.23 1467.33 1477.43 1487.53 1497.63 1507.73 1517.83 1527.92 1537.92 1548.02
  1558.12 1568.22 1578.32 1588.42 1598.51 1608.61 1618.71 1628.81 1638.81 1648.90 1659.00 1669.10 1679.20
  1689.30 1699.40 1709.50 1719.60 1729.70 1739.70 1749.79 1759.89 1769.99 1780.09 1790.19 1800.29 1810.38
  1820.48 1830.58 1840.58 1850.68 1860.78 1870.87 1880.98 1891.07 1901.17 1911.27 1921.37 1931.47 1941.57
  1951.57 1961.66 1971.76 1981.86 1991.96 2002.06 2012.15 2022.25 2032.35 2042.45 2052.45 2062.55 2072.65
  2082.75 2092.84 2102.94 2113.04 2123.14 2133.24 2143.34 2153.34 2163.43 2173.53 2183.63 2193.73 2203.83
  2213.93 2224.03 2234.12 2244.22 2254.22 2264.32 2274.42 2284.52 2294.61 2304.71 2314.81 2324.91 2335.01
  2345.11 2355.21 2365.20 2375.30 2385.40 2395.50 2405.60 2415.70 2425.80 2435.89 2445.99 2456.09 2466.09
  2476.19 2486.29 2496.39 2506.48 2516.59 2526.68 2536.78 2546.88 2556.98 2566.98 2577.08
`;

/** Full widths at half maximum, nm. */
const FWHM_NM = `
  11.3871 11.3871 11.3871 11.3871 11.3871 11.3871 11.3871 11.3871 11.3871 11.3871 11.3871 11.3871 11.3871
  11.3784 11.3538 11.3133 11.2580 11.1907 11.1119 11.0245 10.9321 10.8368 10.7407 10.6482 10.5607 10.4823
  10.4147 10.3595 10.3188 10.2942 10.2856 10.2980 10.3349 10.3909 10.4592 10.5322 10.6004 10.6562 10.6933
  10.7058 10.7276 10.7907 10.8833 10.9938 11.1044 11.1980 11.2600 11.2824 11.2822 11.2816 11.2809 11.2797
  11.2782 11.2771 11.2765 11.2756 11.2754 11.2754 11.2754 11.2754 11.2754 11.2754 11.2754 11.2754 11.2754
  11.2754 11.2754 11.2754 11.2754 11.2754 11.0457 11.0457 11.0457 11.0457 11.0457 11.0457 11.0457 11.0457
  11.0457 11.0457 11.0457 11.0457 11.0457 11.0457 11.0457 11.0457 11.0457 11.0451 11.0423 11.0372 11.0302
  11.0218 11.0122 11.0013 10.9871 10.9732 10.9572 10.9418 10.9248 10.9065 10.8884 10.8696 10.8513 10.8335
  10.8154 10.7979 10.7822 10.7663 10.7520 10.7385 10.7270 10.7174 10.7091 10.7022 10.6970 10.6946 10.6937
  10.6949 10.6996 10.7058 10.7163 10.7283 10.7437 10.7612 10.7807 10.8034 10.8267 10.8534 10.8818 10.9110
  10.9422 10.9743 11.0074 11.0414 11.0759 11.1108 11.1461 11.1811 11.2156 11.2496 11.2826 11.3146 11.3460
  11.3753 11.4037 11.4302 11.4538 11.4760 11.4958 11.5133 11.5286 11.5404 11.5505 11.5580 11.5621 11.5634
  11.5617 11.5563 11.5477 11.5346 11.5193 11.5002 11.4789 11.4548 11.4279 11.3994 11.3688 11.3366 11.3036
  11.2696 11.2363 11.2007 11.1666 11.1333 11.1018 11.0714 11.0424 11.0155 10.9912 10.9698 10.9508 10.9355
  10.9230 10.9139 10.9083 10.9069 10.9057 10.9013 10.8951 10.8854 10.8740 10.8591 10.8429 10.8242 10.8039
  10.7820 10.7592 10.7342 10.7092 10.6834 10.6572 10.6312 10.6052 10.5803 10.5560 10.5328 10.5101 10.4904
  10.4722 10.4552 10.4408 10.4285 10.4197 10.4129 10.4088 10.4077 10.4077 10.4077 10.4077 10.4077 10.4077
  10.4077 10.4077 10.4077 10.4077 10.4077 10.4077 10.4077 10.4077 10.4077 10.4077 10.4077 10.4077 10.4077
  10.4077 10.4077 10.4077 10.4077 10.4077 10.4077 10.4077 10.4077
`;

const numbersIn = (text: string) => text.trim().split(/\s+/).map(Number);

/** Calibrated bands; the others are 0 (USGS, EO-1 User Guide). */
const isCalibrated = (number: number) => (number >= 8 && number <= 57) || (number >= 77 && number <= 224);

interface HyperionBand {
  /** From 1. */
  number: number;
  detector: 'vnir' | 'swir';
  wavelength: number;
  fwhm: number;
  calibrated: boolean;
}

const widthsNm = numbersIn(FWHM_NM);

export const HYPERION_BANDS: HyperionBand[] = numbersIn(CENTRE_WAVELENGTHS_NM).map((wavelength, i) => ({
  number: i + 1,
  detector: i < 70 ? 'vnir' : 'swir',
  wavelength,
  fwhm: widthsNm[i]!,
  calibrated: isCalibrated(i + 1),
}));

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
