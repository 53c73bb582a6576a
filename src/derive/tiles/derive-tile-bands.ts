/** Finds the bands of one tile in another of the same collection, whose sensor may number them differently. */
import type { BandRecord, GroupRecord } from '../../storage/index.js';

export interface GroupMatch<G> {
  group: G;
  /** By band of the wanted group: index within `group`. */
  bands: number[];
}

/** For each group of `base` except its mask: the group of `other` that has the same size and all of its bands. Null if one is missing. */
export function matchGroups<G extends GroupRecord>(
  base: { groups: GroupRecord[] },
  other: { groups: G[] },
): GroupMatch<G>[] | null {
  const found: GroupMatch<G>[] = [];
  for (const wanted of base.groups) {
    if (wanted.role === 'mask') continue;
    const match = other.groups.map((group) => matchGroup(wanted, group)).find((one) => one !== null);
    if (!match) return null;
    found.push(match);
  }
  return found;
}

function matchGroup<G extends GroupRecord>(wanted: GroupRecord, group: G): GroupMatch<G> | null {
  const { role, width, height } = wanted;
  if (group.role !== role || group.width !== width || group.height !== height) return null;
  // Codes are bits and classes, which cannot be converted.
  const isCodes = role === 'qa' || wanted.codes === true;
  if (isCodes && (group.dataType !== wanted.dataType || group.codes !== wanted.codes)) return null;
  const bands = wanted.bands.map((band) => findBand(band, wanted.bands, group.bands));
  return bands.includes(-1) ? null : { group, bands };
}

/** The band of the same name and common name, or else the only band of that common name. */
function findBand(wanted: BandRecord, own: BandRecord[], others: BandRecord[]): number {
  const same = others.findIndex(
    ({ name, commonName }) => name === wanted.name && commonName === wanted.commonName,
  );
  if (same >= 0 || wanted.commonName === undefined) return same;
  const ofColour = (bands: BandRecord[]) =>
    bands.filter(({ commonName }) => commonName === wanted.commonName);
  if (ofColour(own).length > 1 || ofColour(others).length > 1) return -1;
  return others.findIndex(({ commonName }) => commonName === wanted.commonName);
}
