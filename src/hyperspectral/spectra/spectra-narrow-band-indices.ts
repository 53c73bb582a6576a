/** Narrow-band indices by name, as expressions over bands by wavelength. Bands are reflectance, 0 to 1. */

const define = (title: string, expression: string, source: string) => ({ title, expression, source });

export const NARROW_BAND_INDICES = {
  ndvi: define(
    'normalized difference vegetation index',
    '(800nm - 670nm) / (800nm + 670nm)',
    'Rouse et al. 1974',
  ),
  ndvi705: define(
    'red-edge normalized difference',
    '(750nm - 705nm) / (750nm + 705nm)',
    'Gitelson and Merzlyak 1994',
  ),
  pri: define('photochemical reflectance index', '(531nm - 570nm) / (531nm + 570nm)', 'Gamon et al. 1992'),
  mcari: define(
    'modified chlorophyll absorption ratio index',
    '((700nm - 670nm) - 0.2 * (700nm - 550nm)) * (700nm / 670nm)',
    'Daughtry et al. 2000',
  ),
  tcari_osavi: define(
    'transformed chlorophyll absorption ratio index by optimized soil-adjusted vegetation index',
    '3 * ((700nm - 670nm) - 0.2 * (700nm - 550nm) * (700nm / 670nm)) / (1.16 * (800nm - 670nm) / (800nm + 670nm + 0.16))',
    'Haboudane et al. 2002',
  ),
  cri1: define('carotenoid reflectance index 1', '1 / 510nm - 1 / 550nm', 'Gitelson et al. 2002'),
  cri2: define('carotenoid reflectance index 2', '1 / 510nm - 1 / 700nm', 'Gitelson et al. 2002'),
  ari1: define('anthocyanin reflectance index 1', '1 / 550nm - 1 / 700nm', 'Gitelson et al. 2001'),
  ari2: define('anthocyanin reflectance index 2', '800nm * (1 / 550nm - 1 / 700nm)', 'Gitelson et al. 2001'),
  rep: define(
    'red-edge position by linear interpolation, nm',
    '700 + 40 * ((670nm + 780nm) / 2 - 700nm) / (740nm - 700nm)',
    'Guyot and Baret 1988',
  ),
  psri: define('plant senescence reflectance index', '(680nm - 500nm) / 750nm', 'Merzlyak et al. 1999'),
  sipi: define(
    'structure-insensitive pigment index',
    '(800nm - 445nm) / (800nm - 680nm)',
    'Penuelas et al. 1995',
  ),
  wbi: define('water band index', '900nm / 970nm', 'Penuelas et al. 1997'),
  ndwi: define('normalized difference water index', '(860nm - 1240nm) / (860nm + 1240nm)', 'Gao 1996'),
  msi: define('moisture stress index', '1599nm / 819nm', 'Hunt and Rock 1989'),
  ndii: define(
    'normalized difference infrared index',
    '(819nm - 1649nm) / (819nm + 1649nm)',
    'Hardisky et al. 1983',
  ),
  ndni: define(
    'normalized difference nitrogen index',
    '(log(1 / 1510nm) - log(1 / 1680nm)) / (log(1 / 1510nm) + log(1 / 1680nm))',
    'Serrano et al. 2002',
  ),
  ndli: define(
    'normalized difference lignin index',
    '(log(1 / 1754nm) - log(1 / 1680nm)) / (log(1 / 1754nm) + log(1 / 1680nm))',
    'Serrano et al. 2002',
  ),
  cai: define(
    'cellulose absorption index',
    '0.5 * (2000nm + 2200nm) - 2100nm',
    'Daughtry 2001, without the factor 100',
  ),
  clay: define('clay minerals ratio', '1650nm / 2215nm', 'Drury 1987'),
  ferrous: define('ferrous minerals ratio', '1650nm / 830nm', 'Segal 1982'),
  iron_oxide: define('ratio of ferric iron oxides', '660nm / 485nm', 'Segal 1982'),
};

export type IndexName = keyof typeof NARROW_BAND_INDICES;
export const INDEX_NAMES = Object.keys(NARROW_BAND_INDICES) as IndexName[];
