/**
 * Reads the metadata of a Sentinel-2 SAFE product. Structure: Sentinel-2 Products Specification Document (S2-PDGS-TAS-DI-PSD),
 * issues 12 to 15. Elements are searched by name, because their parents changed between issues.
 */
import { badMetadata } from '../../errors.js';
import { elementsOf, parseTime, readXml, textOf, type XmlElement } from '../shared/index.js';
import { type Radiometry, SENTINEL2_BANDS, type Sentinel2Level } from './sentinel2-bands.js';

export interface SafeProduct {
  level: Sentinel2Level;
  /** sentinel-2a ... */
  platform: string;
  /** Start of the sensing of the datatake, as in the names of products; the same for all deliveries. */
  datatake: number;
  /** Relative orbit, 1-143. */
  orbit: number;
  baseline: string | undefined;
  radiometry: Radiometry;
  /** Image files that the product lists: paths or names, without extension. */
  listed: string[];
  warnings: string[];
}

export interface SafeTile {
  sensed: number | undefined;
  /** MGRS tile such as 32TLS. */
  mgrs: string | undefined;
}

const ROOTS: Record<string, Sentinel2Level> = {
  'Level-1C_User_Product': 'L1C',
  'Level-2A_User_Product': 'L2A',
};

/** The level of the product whose metadata has this root; undefined for other roots. */
export const levelOfRoot = (root: string): Sentinel2Level | undefined =>
  Object.hasOwn(ROOTS, root) ? ROOTS[root] : undefined;

/** Reads `MTD_MSIL1C.xml`, `MTD_MSIL2A.xml` or their predecessors. Throws TW_INGEST_BAD_METADATA. */
export async function readSafeProduct(path: string): Promise<SafeProduct> {
  const root = await readXml(path);
  const level = levelOfRoot(root.name);
  if (!level) throw badMetadata(path, `its root is ${root.name}, not a product of level 1C or 2A`);
  const need = (name: string) => {
    const text = textOf(root, name);
    if (text === undefined) throw badMetadata(path, `it has no ${name}`);
    return text;
  };
  const spacecraft = /^Sentinel-2([A-Z])$/i.exec(need('SPACECRAFT_NAME'));
  if (!spacecraft) throw badMetadata(path, `SPACECRAFT_NAME is ${need('SPACECRAFT_NAME')}`);
  const orbit = Number(need('SENSING_ORBIT_NUMBER'));
  if (!(Number.isInteger(orbit) && orbit >= 1 && orbit <= 143)) {
    throw badMetadata(path, `SENSING_ORBIT_NUMBER is ${orbit}`);
  }
  const warnings: string[] = [];
  const baseline = textOf(root, 'PROCESSING_BASELINE');
  return {
    level,
    platform: `sentinel-2${spacecraft[1].toLowerCase()}`,
    datatake: timeOf(path, 'DATATAKE_SENSING_START', need('DATATAKE_SENSING_START')),
    orbit,
    baseline,
    radiometry: radiometryOf(root, path, level, baseline, warnings),
    listed: ['IMAGE_FILE', 'IMAGE_ID', 'IMAGE_FILE_2A', 'IMAGE_ID_2A'].flatMap((name) =>
      elementsOf(root, name).map((element) => element.text),
    ),
    warnings,
  };
}

/** Reads `MTD_TL.xml`. Throws TW_INGEST_BAD_METADATA. */
export async function readSafeTile(path: string): Promise<SafeTile> {
  const root = await readXml(path);
  const sensed = textOf(root, 'SENSING_TIME');
  const id = textOf(root, 'TILE_ID') ?? textOf(root, 'TILE_ID_2A');
  return {
    sensed: sensed === undefined ? undefined : timeOf(path, 'SENSING_TIME', sensed),
    mgrs: id && /_T(\d\d[A-Z]{3})(?:_|$)/.exec(id)?.[1],
  };
}

function timeOf(path: string, name: string, text: string): number {
  const time = parseTime(text);
  if (Number.isNaN(time)) throw badMetadata(path, `${name} is ${text}, which is not a time`);
  return time;
}

/** reflectance = (number + RADIO_ADD_OFFSET or BOA_ADD_OFFSET) / quantification value; the offset is 0 before baseline 04.00. */
function radiometryOf(
  root: XmlElement,
  path: string,
  level: Sentinel2Level,
  baseline: string | undefined,
  warnings: string[],
): Radiometry {
  const names =
    level === 'L1C' ? ['QUANTIFICATION_VALUE'] : ['BOA_QUANTIFICATION_VALUE', 'L2A_BOA_QUANTIFICATION_VALUE'];
  const quantification = Number(names.map((name) => textOf(root, name)).find((text) => text !== undefined));
  if (!(quantification > 0)) throw badMetadata(path, `it has no ${names[0]} above 0`);

  const offsetName = level === 'L1C' ? 'RADIO_ADD_OFFSET' : 'BOA_ADD_OFFSET';
  const offsets = new Map<string, number>();
  for (const { attributes, text } of elementsOf(root, offsetName)) {
    const band = SENTINEL2_BANDS[Number(attributes.band_id)];
    const offset = text === '' ? NaN : Number(text);
    if (!band || !Number.isFinite(offset)) {
      throw badMetadata(path, `${offsetName} of band_id ${attributes.band_id} is "${text}"`);
    }
    offsets.set(band.name, offset);
  }
  if (offsets.size === 0 && Number(baseline) >= 4) {
    warnings.push(`the metadata of baseline ${baseline} has no ${offsetName}; offset 0 is assumed`);
  }

  const special = elementsOf(root, 'Special_Values').find(
    (e) => textOf(e, 'SPECIAL_VALUE_TEXT') === 'NODATA',
  );
  const nodata = Number((special && textOf(special, 'SPECIAL_VALUE_INDEX')) ?? 0);
  if (!Number.isFinite(nodata)) throw badMetadata(path, 'the special value NODATA is not a number');
  return {
    scale: 1 / quantification,
    offset: (band) => (offsets.get(band) ?? 0) / quantification,
    nodata: (declared) => declared ?? nodata,
  };
}
