/** The state of each scene in the answer to a search. */

import type { Seen } from './history.js';
import type { Deliveries } from './scene-deliveries.js';

export interface FoundTile {
  id: string;
  scene: string;
  /** A property of the tile's files that all tiles of a complete scene share. */
  version: string;
  /** Number of the delivery, from its date. */
  delivery: number;
}

/** The states of all scenes. A partial answer may lack tiles, but must not mix deliveries. */
export function observe(
  tiles: FoundTile[],
  deliveries: Pick<Deliveries, 'scenes' | 'tilesOf'>,
  partial = false,
): Record<string, Seen> {
  const byScene = new Map<string, FoundTile[]>();
  for (const tile of tiles) {
    const known = byScene.get(tile.scene);
    if (known) known.push(tile);
    else byScene.set(tile.scene, [tile]);
  }
  const seen: Record<string, Seen> = {};
  for (const scene of deliveries.scenes) seen[scene] = stateOf(byScene.get(scene) ?? []);
  return seen;

  function stateOf(found: FoundTile[]): Seen {
    const [first] = found;
    if (!first) return 'absent';
    const versions = countBy(found, ({ version, delivery }) => `${delivery} (version ${version})`);
    if (versions.size > 1)
      return { half: `tiles of ${[...versions].map(([name, n]) => `delivery ${name}: ${n}`).join(', ')}` };
    const wanted = deliveries.tilesOf(first.scene, first.delivery);
    const ids = new Set(found.map(({ id }) => id));
    const foreign = [...ids].filter((id) => !wanted.has(id));
    const missing = [...wanted].filter((id) => !ids.has(id));
    if (foreign.length > 0) return { half: `delivery ${first.delivery} has no ${foreign.join(', ')}` };
    if (missing.length > 0 && !partial)
      return {
        half: `delivery ${first.delivery} lacks ${missing.length} of ${wanted.size}: ${missing.join(', ')}`,
      };
    return first.delivery;
  }
}

function countBy<T>(all: T[], keyOf: (one: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const one of all) counts.set(keyOf(one), (counts.get(keyOf(one)) ?? 0) + 1);
  return counts;
}
