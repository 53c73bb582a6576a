/** The deliveries of a scene: its tiles can have different versions if its regions were ingested one after another. */
import type { SceneDelivery, SceneRecord } from './records.js';

/** Returns the deliveries that have tiles, the latest one first. Each cell of the scene is in one of them. */
export function sceneDeliveries({
  version,
  fingerprint,
  geocodes,
  earlier = [],
}: SceneRecord): SceneDelivery[] {
  if (earlier.length === 0) return [{ version, fingerprint, geocodes }];
  const kept = new Set(earlier.flatMap((delivery) => delivery.geocodes));
  const latest = { version, fingerprint, geocodes: geocodes.filter((cell) => !kept.has(cell)) };
  // Other nodes may have made all of its tiles.
  return latest.geocodes.length > 0 ? [latest, ...earlier] : earlier;
}

/** Returns the version of each tile of a scene by geocode. */
export function tileVersions(scene: SceneRecord): Map<string, string> {
  const deliveries = sceneDeliveries(scene);
  return new Map(deliveries.flatMap(({ version, geocodes }) => geocodes.map((cell) => [cell, version])));
}

/** Returns the cells whose tiles deliveries of this fingerprint have made. */
export function cellsOfFingerprint(scene: SceneRecord, fingerprint: string): string[] {
  return sceneDeliveries(scene).flatMap((one) => (one.fingerprint === fingerprint ? one.geocodes : []));
}

/** Returns the deliveries of a scene without the tiles that `keep` does not select. */
export function keptDeliveries(scene: SceneRecord, keep: (geocode: string) => boolean): SceneDelivery[] {
  return sceneDeliveries(scene)
    .map((one) => ({ ...one, geocodes: one.geocodes.filter(keep) }))
    .filter(({ geocodes }) => geocodes.length > 0);
}

/**
 * Returns a scene without the tile of a cell, or null if it was the last tile. The delivery of the tile loses its fingerprint, so that the
 * same delivery restores the tile.
 */
export function withoutTile(scene: SceneRecord, geocode: string): SceneRecord | null {
  const without = ({ geocodes }: SceneDelivery) => geocodes.filter((cell) => cell !== geocode);
  const geocodes = without(scene);
  if (geocodes.length === 0) return null;
  // Without the digest of its Item, a remote scene is read again.
  const { earlier, item: _, ...others } = scene;
  if (!earlier?.some((one) => one.geocodes.includes(geocode)))
    return { ...others, fingerprint: '', geocodes, ...(earlier && { earlier }) };
  const left = earlier.map((one) =>
    one.geocodes.includes(geocode) ? { ...one, fingerprint: '', geocodes: without(one) } : one,
  );
  // A region that was read is then without one of its tiles.
  return { ...others, geocodes, regions: [], earlier: left.filter((one) => one.geocodes.length > 0) };
}
