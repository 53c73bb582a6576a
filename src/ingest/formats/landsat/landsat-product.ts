/** Identifies a Landsat product by its MTL, or without one by its name. */
import { basename } from 'node:path';
import { notRecognised } from '../../errors.js';
import { parseTime } from '../shared/index.js';
import { type Mtl, mtlValue, readMtl } from './landsat-mtl.js';

export type LandsatLevel = 'c2-l2' | 'c2-l1' | 'c1-l1' | 'pre-l1';

export interface LandsatProduct {
  /** LC08, LE07, LT05 ... */
  sensor: string;
  /** 4 to 9. */
  spacecraft: number;
  /** Processing level such as L1TP; for Analysis Ready Data its region such as CU. */
  level: string;
  /** Path and row; for Analysis Ready Data horizontal and vertical tile. */
  pathRow: string;
  date: string;
  start: number;
  collection: LandsatLevel;
  mtl: Mtl | null;
}

/** Null if the MTL is not that of a scene. Throws TW_INGEST_NOT_RECOGNISED and TW_INGEST_BAD_METADATA. */
export async function readProductFromMtl(path: string): Promise<LandsatProduct | null> {
  const mtl = await readMtl(path);
  if (!mtl.has('L1_METADATA_FILE') && !mtl.has('LANDSAT_METADATA_FILE')) return null;
  // The second name was used before 2012.
  const need = (key: string, ...old: string[]) => {
    const value = mtlValue(mtl, key, ...old);
    if (value === undefined) throw notRecognised(path, `the MTL has no ${key}`);
    return value;
  };
  const spacecraft = Number(/([4-9])$/.exec(need('SPACECRAFT_ID'))?.[1]);
  const letter = SENSORS.get(need('SENSOR_ID'));
  if (!spacecraft || !letter) {
    throw notRecognised(
      path,
      `${need('SPACECRAFT_ID')} with ${need('SENSOR_ID')} is not read, only TM, ETM+, OLI and TIRS`,
    );
  }
  const level = mtlValue(mtl, 'PROCESSING_LEVEL') ?? need('DATA_TYPE', 'PRODUCT_TYPE');
  const date = need('DATE_ACQUIRED', 'ACQUISITION_DATE');
  const time = need('SCENE_CENTER_TIME', 'SCENE_CENTER_SCAN_TIME');
  const start = parseTime(`${date}T${time}`);
  if (Number.isNaN(start)) throw notRecognised(path, `the MTL's date ${date} and time cannot be read`);
  return {
    sensor: `L${letter}0${spacecraft}`,
    spacecraft,
    level,
    pathRow: need('WRS_PATH').padStart(3, '0') + need('WRS_ROW', 'STARTING_ROW').padStart(3, '0'),
    date: date.replaceAll('-', ''),
    start,
    collection: collectionOf(mtlValue(mtl, 'COLLECTION_NUMBER'), level),
    mtl,
  };
}

const SENSORS = new Map([
  ['OLI_TIRS', 'C'],
  ['OLI', 'O'],
  ['TIRS', 'T'],
  ['ETM', 'E'],
  ['ETM+', 'E'],
  ['TM', 'T'],
]);

function collectionOf(number: string | undefined, level: string): LandsatLevel {
  if (Number(number) === 2) return level.startsWith('L1') ? 'c2-l1' : 'c2-l2';
  return Number(number) === 1 ? 'c1-l1' : 'pre-l1';
}

/** Scenes (LC08_L2SP_017036_20130419_20200913_02_T2), and tiles of Analysis Ready Data (LC08_CU_003009_20200101_20210501_02). */
const PRODUCT_NAME =
  /^(L[COTE]0([4-9]))_(L\d[A-Z]{2}|CU|AK|HI)_(\d{6})_(\d{4})(\d\d)(\d\d)(?:_\d{8}_(\d\d)(?:_|$))?/;

/** Some archives deliver Landsat bands without their MTL. The USGS defines product names, which hold the other properties. */
export function parseProductName(names: string[]): LandsatProduct | null {
  const found = names.map((name) => PRODUCT_NAME.exec(basename(name))).filter((match) => match !== null);
  if (found.length === 0) return null;
  const [, sensor, spacecraft, level, pathRow, year, month, day] = found[0];
  // Shortened names do not contain the collection, but the name of the quality band implies it.
  const byQuality = names.some((name) => /_BQA\.tiff?$/i.test(name)) ? '01' : '02';
  const number = found.find((match) => match[8])?.[8] ?? byQuality;
  return {
    sensor,
    spacecraft: Number(spacecraft),
    level,
    pathRow,
    date: year + month + day,
    start: parseTime(`${year}-${month}-${day}`),
    collection: collectionOf(number, level),
    mtl: null,
  };
}
