/** Spectral indices of two broad bands. */

export interface NormalisedDifferenceIndex {
  /** Common names (STAC `eo`) of a and b in the normalised difference (a - b) / (a + b). */
  bands: readonly [a: string, b: string];
  /** Typical range over land, for the colours of a map. */
  range: readonly [low: number, high: number];
}

/**
 * NDVI: Rouse et al. 1974. NDMI, from the near infrared and the short-wave infrared at 1.6 um: Hardisky et al. 1983, Wilson and Sader 2002.
 * For Sentinel-2 these bands are B8A (`nir08`) and B11. Both have pixels of 20 m, and B8A is as narrow as the near infrared of Landsat 8
 * and avoids the water vapour absorption within the broad B08.
 */
export const SPECTRAL_INDICES = {
  ndvi: { bands: ['nir', 'red'], range: [0, 1] },
  ndmi: { bands: ['nir08', 'swir16'], range: [-0.5, 0.5] },
} as const satisfies Record<string, NormalisedDifferenceIndex>;
