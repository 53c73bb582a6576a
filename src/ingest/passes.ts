/**
 * A scene is cut in passes, one a band group, so that only the rows of one group are in memory at a time. The pass of the
 * finest data group also reads the quality bands, because the mask is made there.
 */
import { finestGroup } from './cells.js';
import type { QualityBand, Scene, SourceGroup } from './scene.js';

export interface Pass {
  /** What is read: first the group that is cut, then for the mask each quality band that is not of that group. */
  sources: SourceGroup[];
  /** How the mask is made of the sources; null where the pass makes none. */
  mask: MaskSource[] | null;
}

/** A band with quality codes among the sources of a pass. */
export interface MaskSource {
  source: number;
  band: number;
  codes: Uint8Array;
}

/** Without `quality`, the mask only says where there is data. */
export function passesOf(scene: Scene, quality: boolean): Pass[] {
  const finest = finestGroup(scene);
  return scene.groups.map((group) =>
    group === finest
      ? maskPass(scene, group, quality ? scene.quality : [])
      : { sources: [group], mask: null },
  );
}

function maskPass(scene: Scene, finest: SourceGroup, quality: QualityBand[]): Pass {
  const sources = [finest];
  const mask = quality.map(({ group: name, band, codes }) => {
    if (name === finest.name) return { source: 0, band, codes };
    const group = scene.groups.find((one) => one.name === name);
    if (!group) throw new Error(`the quality band's group ${name} is not one of the scene's`);
    sources.push({ ...group, bands: [group.bands[band]] });
    return { source: sources.length - 1, band: 0, codes };
  });
  return { sources, mask };
}
