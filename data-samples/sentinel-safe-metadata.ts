/** Metadata of a synthetic SAFE product, in the structure of the Sentinel-2 Products Specification Document, version 14. */

/** Properties of a SAFE product. */
export interface SafeFacts {
  level: 'L1C' | 'L2A';
  /** 02.09, 04.00 ... */
  baseline: string;
  /** Start of the datatake and sensing time of this tile, RFC 3339, UTC, without fractions of a second. */
  datatake: string;
  sensed: string;
  orbit: number;
  absoluteOrbit: number;
  mgrs: string;
  epsg: number;
  origin: { x: number; y: number };
  /** Pixels of 10 m. */
  size: { width: number; height: number };
  /** Added to stored numbers before they are divided by 10000; null writes no list, as before baseline 04.00. */
  addOffset: number | null;
  cloudPercent: number;
}

/** 2023-07-07T10:06:21Z -> 20230707T100621 */
export const compact = (time: string) => time.replace(/[-:]|Z$/g, '');

const PSD = 'https://psd-14.sentinel2.eo.esa.int/PSD';
const HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="no"?>';
const BAND_IDS = Array.from({ length: 13 }, (_, id) => id);

export function productId({ level, datatake, baseline, orbit, mgrs }: SafeFacts): string {
  const run = `N${baseline.replace('.', '')}_R${String(orbit).padStart(3, '0')}`;
  return `S2A_MSI${level}_${compact(datatake)}_${run}_T${mgrs}_${compact(datatake).slice(0, 9)}140000`;
}

export const granuleId = ({ level, mgrs, absoluteOrbit, sensed }: SafeFacts) =>
  `${level}_T${mgrs}_A${String(absoluteOrbit).padStart(6, '0')}_${compact(sensed)}`;

const longId = (facts: SafeFacts, kind: 'TL' | 'DS') => {
  const { level, datatake, absoluteOrbit, mgrs, baseline } = facts;
  const made = `${compact(datatake).slice(0, 9)}140000`;
  const middle =
    kind === 'TL' ? `A${String(absoluteOrbit).padStart(6, '0')}_T${mgrs}` : `S${compact(datatake)}`;
  return `S2A_OPER_MSI_${level}_${kind}_EPAE_${made}_${middle}_N${baseline}`;
};

/** `MTD_MSIL1C.xml` or `MTD_MSIL2A.xml`. `imageFiles` are paths below the product, without extension. */
export function productMetadata(facts: SafeFacts, imageFiles: string[]): string {
  const { level, baseline, datatake, orbit } = facts;
  const root = `n1:Level-${level.slice(1)}_User_Product`;
  const start = datatake.replace('Z', '.024Z');
  return `${HEAD}
<${root} xmlns:n1="${PSD}/User_Product_Level-${level.slice(1)}.xsd">
    <n1:General_Info>
        <Product_Info>
            <PRODUCT_START_TIME>${start}</PRODUCT_START_TIME>
            <PRODUCT_STOP_TIME>${start}</PRODUCT_STOP_TIME>
            <PRODUCT_URI>${productId(facts)}.SAFE</PRODUCT_URI>
            <PROCESSING_LEVEL>Level-${level.slice(1)}</PROCESSING_LEVEL>
            <PRODUCT_TYPE>S2MSI${level.slice(1)}</PRODUCT_TYPE>
            <PROCESSING_BASELINE>${baseline}</PROCESSING_BASELINE>
            <GENERATION_TIME>${datatake.slice(0, 10)}T14:00:00.000000Z</GENERATION_TIME>
            <Datatake datatakeIdentifier="GS2A_${compact(datatake)}_${facts.absoluteOrbit}_N${baseline}">
                <SPACECRAFT_NAME>Sentinel-2A</SPACECRAFT_NAME>
                <DATATAKE_TYPE>INS-NOBS</DATATAKE_TYPE>
                <DATATAKE_SENSING_START>${start}</DATATAKE_SENSING_START>
                <SENSING_ORBIT_NUMBER>${orbit}</SENSING_ORBIT_NUMBER>
                <SENSING_ORBIT_DIRECTION>DESCENDING</SENSING_ORBIT_DIRECTION>
            </Datatake>
            <Query_Options completeSingleTile="true">
                <PRODUCT_FORMAT>SAFE_COMPACT</PRODUCT_FORMAT>
            </Query_Options>
            <Product_Organisation>
                <Granule_List>
                    <Granule datastripIdentifier="${longId(facts, 'DS')}" granuleIdentifier="${longId(facts, 'TL')}" imageFormat="JPEG2000">
${imageFiles.map((file) => `                        <IMAGE_FILE>${file}</IMAGE_FILE>`).join('\n')}
                    </Granule>
                </Granule_List>
            </Product_Organisation>
        </Product_Info>
        <Product_Image_Characteristics>
${specialValue('NODATA', 0)}
${specialValue('SATURATED', 65_535)}
${quantification(level)}${offsets(facts)}
        </Product_Image_Characteristics>
    </n1:General_Info>
    <n1:Quality_Indicators_Info>
        <Cloud_Coverage_Assessment>${facts.cloudPercent.toFixed(4)}</Cloud_Coverage_Assessment>
    </n1:Quality_Indicators_Info>
</${root}>
`;
}

const specialValue = (text: string, index: number) => `            <Special_Values>
                <SPECIAL_VALUE_TEXT>${text}</SPECIAL_VALUE_TEXT>
                <SPECIAL_VALUE_INDEX>${index}</SPECIAL_VALUE_INDEX>
            </Special_Values>`;

function quantification(level: 'L1C' | 'L2A'): string {
  if (level === 'L1C') return '            <QUANTIFICATION_VALUE unit="none">10000</QUANTIFICATION_VALUE>';
  return `            <QUANTIFICATION_VALUES_LIST>
                <BOA_QUANTIFICATION_VALUE unit="none">10000</BOA_QUANTIFICATION_VALUE>
                <AOT_QUANTIFICATION_VALUE unit="none">1000.0</AOT_QUANTIFICATION_VALUE>
                <WVP_QUANTIFICATION_VALUE unit="cm">1000.0</WVP_QUANTIFICATION_VALUE>
            </QUANTIFICATION_VALUES_LIST>`;
}

function offsets({ level, addOffset }: SafeFacts): string {
  if (addOffset === null) return '';
  const [list, name] =
    level === 'L1C'
      ? ['Radiometric_Offset_List', 'RADIO_ADD_OFFSET']
      : ['BOA_ADD_OFFSET_VALUES_LIST', 'BOA_ADD_OFFSET'];
  const lines = BAND_IDS.map((id) => `                <${name} band_id="${id}">${addOffset}</${name}>`);
  return `\n            <${list}>\n${lines.join('\n')}\n            </${list}>`;
}

/** `MTD_TL.xml`. */
export function tileMetadata(facts: SafeFacts): string {
  const { level, epsg, origin, size } = facts;
  const root = `n1:Level-${level.slice(1)}_Tile_ID`;
  const each = (make: (pixel: number) => string) => [10, 20, 60].map(make).join('\n');
  return `${HEAD}
<${root} xmlns:n1="${PSD}/S2_PDI_Level-${level.slice(1)}_Tile_Metadata.xsd">
    <n1:General_Info>
        <TILE_ID metadataLevel="Brief">${longId(facts, 'TL')}</TILE_ID>
        <DATASTRIP_ID metadataLevel="Standard">${longId(facts, 'DS')}</DATASTRIP_ID>
        <SENSING_TIME metadataLevel="Standard">${facts.sensed.replace('Z', '.758475Z')}</SENSING_TIME>
    </n1:General_Info>
    <n1:Geometric_Info>
        <Tile_Geocoding metadataLevel="Brief">
            <HORIZONTAL_CS_NAME>WGS84 / UTM zone ${epsg - 32_600}N</HORIZONTAL_CS_NAME>
            <HORIZONTAL_CS_CODE>EPSG:${epsg}</HORIZONTAL_CS_CODE>
${each(
  (pixel) => `            <Size resolution="${pixel}">
                <NROWS>${(size.height * 10) / pixel}</NROWS>
                <NCOLS>${(size.width * 10) / pixel}</NCOLS>
            </Size>`,
)}
${each(
  (pixel) => `            <Geoposition resolution="${pixel}">
                <ULX>${origin.x}</ULX>
                <ULY>${origin.y}</ULY>
                <XDIM>${pixel}</XDIM>
                <YDIM>-${pixel}</YDIM>
            </Geoposition>`,
)}
        </Tile_Geocoding>
        <Tile_Angles metadataLevel="Standard">
            <Mean_Sun_Angle>
                <ZENITH_ANGLE unit="deg">28.7316</ZENITH_ANGLE>
                <AZIMUTH_ANGLE unit="deg">151.4452</AZIMUTH_ANGLE>
            </Mean_Sun_Angle>
        </Tile_Angles>
    </n1:Geometric_Info>
    <n1:Quality_Indicators_Info metadataLevel="Standard">
        <Image_Content_QI>
            <CLOUDY_PIXEL_PERCENTAGE>${facts.cloudPercent.toFixed(4)}</CLOUDY_PIXEL_PERCENTAGE>
        </Image_Content_QI>
    </n1:Quality_Indicators_Info>
</${root}>
`;
}
