import {
  LANDSAT_DATETIME,
  LANDSAT_ORIGIN,
  LANDSAT_PRODUCT_ID,
  REFLECTANCE_BIAS,
  REFLECTANCE_MULTIPLIER,
  SUN_ELEVATION,
} from './landsat-product.js';
import type { View } from './noise.js';

type Group = { [key: string]: string | number | Group };

/** The forms in which the USGS delivers an MTL. */
export type MtlForm = 'txt' | 'json' | 'xml';

/** The MTL of the scene, with the groups and keys of Landsat 8 Collection 2 Level 1 that describe the written files. */
export function landsatMetadata(view: View, cloudPercent: number, form: MtlForm = 'txt'): string {
  const bands = ['1', '2', '3', '4', '5', '6', '7', '8', '9'];
  const each = (prefix: string, value: (band: string) => string | number) =>
    Object.fromEntries(bands.map((band) => [`${prefix}${band}`, value(band)]));
  const west = LANDSAT_ORIGIN.x + view.pixelSize / 2;
  const north = LANDSAT_ORIGIN.y - view.pixelSize / 2;
  const east = west + (view.width - 1) * view.pixelSize;
  const south = north - (view.height - 1) * view.pixelSize;
  return WRITERS[form]({
    LANDSAT_METADATA_FILE: {
      PRODUCT_CONTENTS: {
        ORIGIN: '"Synthetic scene"',
        LANDSAT_PRODUCT_ID: `"${LANDSAT_PRODUCT_ID}"`,
        PROCESSING_LEVEL: '"L1TP"',
        COLLECTION_NUMBER: '02',
        COLLECTION_CATEGORY: '"T1"',
        OUTPUT_FORMAT: '"GEOTIFF"',
        ...each('FILE_NAME_BAND_', (band) => `"${LANDSAT_PRODUCT_ID}_B${band}.TIF"`),
        FILE_NAME_QUALITY_L1_PIXEL: `"${LANDSAT_PRODUCT_ID}_QA_PIXEL.TIF"`,
        FILE_NAME_METADATA_ODL: `"${LANDSAT_PRODUCT_ID}_MTL.txt"`,
        ...each('DATA_TYPE_BAND_', () => '"UINT16"'),
        DATA_TYPE_QUALITY_L1_PIXEL: '"UINT16"',
      },
      IMAGE_ATTRIBUTES: {
        SPACECRAFT_ID: '"LANDSAT_8"',
        SENSOR_ID: '"OLI_TIRS"',
        WRS_TYPE: 2,
        WRS_PATH: 190,
        WRS_ROW: 27,
        DATE_ACQUIRED: LANDSAT_DATETIME.slice(0, 10),
        SCENE_CENTER_TIME: `"${LANDSAT_DATETIME.slice(11)}"`,
        STATION_ID: '"LGN"',
        CLOUD_COVER: cloudPercent.toFixed(2),
        CLOUD_COVER_LAND: cloudPercent.toFixed(2),
        SUN_AZIMUTH: '147.32815208',
        SUN_ELEVATION: SUN_ELEVATION.toFixed(8),
        EARTH_SUN_DISTANCE: '1.0166980',
      },
      PROJECTION_ATTRIBUTES: {
        MAP_PROJECTION: '"UTM"',
        DATUM: '"WGS84"',
        ELLIPSOID: '"WGS84"',
        UTM_ZONE: 33,
        GRID_CELL_SIZE_PANCHROMATIC: '15.00',
        GRID_CELL_SIZE_REFLECTIVE: '30.00',
        PANCHROMATIC_LINES: view.height * 2,
        PANCHROMATIC_SAMPLES: view.width * 2,
        REFLECTIVE_LINES: view.height,
        REFLECTIVE_SAMPLES: view.width,
        ORIENTATION: '"NORTH_UP"',
        CORNER_UL_PROJECTION_X_PRODUCT: west.toFixed(3),
        CORNER_UL_PROJECTION_Y_PRODUCT: north.toFixed(3),
        CORNER_UR_PROJECTION_X_PRODUCT: east.toFixed(3),
        CORNER_UR_PROJECTION_Y_PRODUCT: north.toFixed(3),
        CORNER_LL_PROJECTION_X_PRODUCT: west.toFixed(3),
        CORNER_LL_PROJECTION_Y_PRODUCT: south.toFixed(3),
        CORNER_LR_PROJECTION_X_PRODUCT: east.toFixed(3),
        CORNER_LR_PROJECTION_Y_PRODUCT: south.toFixed(3),
      },
      LEVEL1_PROCESSING_RECORD: {
        ORIGIN: '"Synthetic scene"',
        PROCESSING_LEVEL: '"L1TP"',
        COLLECTION_NUMBER: '02',
        DATE_PRODUCT_GENERATED: '2023-07-11T00:00:00Z',
        PROCESSING_SOFTWARE_VERSION: '"tilewright data-samples"',
      },
      LEVEL1_RADIOMETRIC_RESCALING: {
        ...each('REFLECTANCE_MULT_BAND_', () => REFLECTANCE_MULTIPLIER.toExponential(4).toUpperCase()),
        ...each('REFLECTANCE_ADD_BAND_', () => REFLECTANCE_BIAS.toFixed(6)),
      },
    },
  });
}

const WRITERS: Record<MtlForm, (groups: Group) => string> = { txt: write, json: writeJson, xml: writeXml };

const unquoted = (value: string | number) => String(value).replaceAll('"', '');

function writeJson(groups: Group): string {
  return JSON.stringify(groups, (_, value) => (typeof value === 'object' ? value : unquoted(value)), 2);
}

function writeXml(groups: Group): string {
  const elements = (group: Group): string =>
    Object.entries(group)
      .map(
        ([key, value]) => `<${key}>${typeof value === 'object' ? elements(value) : unquoted(value)}</${key}>`,
      )
      .join('\n');
  return `<?xml version="1.0" encoding="UTF-8"?>\n${elements(groups)}\n`;
}

/** Object description language: groups, indented by two spaces, closed by END. */
function write(groups: Group): string {
  const lines = (group: Group, indent: string): string[] =>
    Object.entries(group).flatMap(([key, value]) =>
      typeof value === 'object'
        ? [`${indent}GROUP = ${key}`, ...lines(value, `${indent}  `), `${indent}END_GROUP = ${key}`]
        : [`${indent}${key} = ${value}`],
    );
  return `${[...lines(groups, ''), 'END'].join('\n')}\n`;
}
