/** EPSG codes of geographic systems: longitude and latitude in degrees. */
const GEOGRAPHIC = new Set([4326, 4269, 4258, 4674]);

export function isGeographicEpsg(code: number): boolean {
  return GEOGRAPHIC.has(code);
}
