import { Kinds } from './kinds.js';
import type { Landscape } from './landscape.js';
import { fractalNoise, quantile } from './noise.js';

/** A lasting change of the ground. `clear-cut`: branches remain of a forest. `buildings`: green roofs on any land. */
export interface LandChange {
  kind: 'clear-cut' | 'buildings';
  /** The first changed time, RFC 3339. */
  from: string;
  /** Share of the forest, or of the land, that changes, 0-1. */
  share: number;
}

/** Size of the patches of changed land, metres. */
const SPACING = 900;

/** True if the kind of ground of a pixel can change. */
export function canChange(kind: number, change: LandChange['kind']): boolean {
  if (change === 'buildings') return kind !== Kinds.water;
  return kind === Kinds.conifer || kind === Kinds.broadleaf;
}

/** Returns the landscape after a change. The same landscape, change and seed give the same land. */
export function changedLandscape(land: Landscape, change: LandChange, seed: number): Landscape {
  const { view } = land;
  const where = fractalNoise(view, SPACING, 2, seed + 401);
  const mottle = fractalNoise(view, 180, 3, seed + 411);
  const limit = quantile(
    where.filter((_, i) => canChange(land.kind[i]!, change.kind)),
    change.share,
  );
  const kind = land.kind.slice();
  const shade = land.shade.slice();
  const green = land.green.slice();
  for (let i = 0; i < kind.length; i++) {
    if (where[i] >= limit || !canChange(kind[i], change.kind)) continue;
    kind[i] = change.kind === 'buildings' ? Kinds.roofs : Kinds.brash;
    shade[i] = 0.8 + 0.4 * mottle[i];
    green[i] = 1;
  }
  return { ...land, kind, shade, green };
}
