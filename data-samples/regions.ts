/** How a region differs from the land of the series, which has some of every kind. */
export interface Region {
  /** Added to the height, which is 0 to 1 and mostly between 0.35 and 0.65: fields below 0.56, then forest, rock from 0.65 on. */
  lift: number;
  /** Factor of how far heights are from 0.5. */
  relief: number;
  /** Land below this height is sea. */
  sea: number;
  /** Factor of the radius of towns. */
  towns: number;
  /** Added to what decides between broad leaves and needles; from 0.5 on all is broad-leaved, from -0.5 down all is conifers. */
  broadleaf: number;
}

/** Some of every kind. */
export const MIXED: Region = { lift: 0, relief: 1, sea: 0, towns: 1, broadleaf: 0 };

/** Regions that differ. */
export const REGIONS = {
  fields: { ...MIXED, lift: -0.04, relief: 0.4, towns: 0.4 },
  fen: { ...MIXED, lift: -0.15, relief: 0.4, towns: 0.3 },
  conifers: { ...MIXED, lift: 0.1, relief: 0.4, towns: 0, broadleaf: -0.6 },
  broadleaf: { ...MIXED, lift: 0.1, relief: 0.4, towns: 0, broadleaf: 0.6 },
  coast: { ...MIXED, relief: 0.5, sea: 0.48 },
  town: { ...MIXED, lift: -0.08, relief: 0.4, towns: 3.5 },
} as const satisfies Record<string, Region>;
