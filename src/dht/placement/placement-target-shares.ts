/**
 * The fraction of all bytes that each node should hold, for `copies` owners of each slot (at most the number of nodes) in as many zones
 * as possible. The fractions are proportional to the weights, as far as no node holds a slot twice and, with enough zones, no zone does
 * either; with fewer zones, each zone holds every slot. They add up to `copies`.
 */
export function targetShares(
  nodes: readonly { zone: string; weight: number }[],
  copies: number,
): Float64Array {
  const zones = new Map<string, number[]>();
  for (const [node, { zone }] of nodes.entries()) zones.set(zone, [...(zones.get(zone) ?? []), node]);
  const members = [...zones.values()];
  const enough = zones.size >= copies;
  const zoneShares = proportional(
    members.map((zone) => ({
      weight: zone.reduce((sum, node) => sum + nodes[node]!.weight, 0),
      low: enough ? 0 : 1,
      high: enough ? 1 : Math.min(zone.length, copies - zones.size + 1),
    })),
    copies,
  );
  const shares = new Float64Array(nodes.length);
  members.forEach((zone, i) => {
    const parts = zone.map((node) => ({ weight: nodes[node]!.weight, low: 0, high: 1 }));
    proportional(parts, zoneShares[i]!).forEach((share, j) => {
      shares[zone[j]!] = share;
    });
  });
  return shares;
}

interface Part {
  weight: number;
  low: number;
  high: number;
}

/** Splits a sum in proportion to the weights, within the bounds of each part, which must allow that sum. */
function proportional(parts: readonly Part[], sum: number): number[] {
  const at = (level: number) =>
    parts.map(({ weight, low, high }) => Math.min(Math.max(level * weight, low), high));
  let below = 0;
  let above = Math.max(...parts.map(({ weight, high }) => high / weight));
  // The sum grows with the level; a hundred halvings reach full precision.
  for (let step = 0; step < 100; step++) {
    const middle = (below + above) / 2;
    if (at(middle).reduce((a, b) => a + b, 0) < sum) below = middle;
    else above = middle;
  }
  return at(above);
}
