/** Identity of the synthetic Landsat product. */

export const LANDSAT_PRODUCT_ID = 'LC08_L1TP_190027_20230701_20230711_02_T1';
export const LANDSAT_DATETIME = '2023-07-01T09:45:17.2810340Z';
/** Outer corner of the upper left pixel in EPSG:32633. */
export const LANDSAT_ORIGIN = { x: 492_900, y: 5_302_200 };
export const LANDSAT_EPSG = 32_633;
export const SUN_ELEVATION = 60.5;
/** Top-of-atmosphere reflectance = (number * MULTIPLIER + BIAS) / sin(SUN_ELEVATION). */
export const REFLECTANCE_MULTIPLIER = 2e-5;
export const REFLECTANCE_BIAS = -0.1;
