/**
 * Plans the passes in which a scene is cut, mostly one for each band group, so that only the rows of one group are in memory
 * at a time. The pass of the finest data group makes the mask: it also reads the groups that hold quality codes, and cuts
 * those too.
 */
import { isHyperspectral } from '../../raster/index.js';
import {
  type QualityBand,
  referenceGroup,
  requireGroup,
  type Scene,
  type SourceGroup,
} from '../ingest-scene-description.js';

export interface CutPass {
  /** The groups that are in memory together. */
  sources: SourceGroup[];
  cuts: GroupCut[];
}

/** A group that is cut in a pass. */
export interface GroupCut {
  /** Index of the group within the scene. */
  group: number;
  /** Its index within the sources of the pass. */
  source: number;
  /** Quality bands of the mask; null if this cut makes no mask. */
  mask: MaskSource[] | null;
}

/** A band with quality codes among the sources of a pass. */
export interface MaskSource {
  source: number;
  band: number;
  codes: Uint8Array;
}

/** Groups that are cut separately, see `cut-cube.ts`: their rows would not fit into memory. */
export const isCubeGroup = ({ role, bands }: SourceGroup) => role === 'data' && isHyperspectral(bands);

/** Without `quality`, the mask only marks pixels with data. */
export function planCutPasses(scene: Scene, quality: boolean): CutPass[] {
  const first = isCubeGroup(referenceGroup(scene)) ? [] : [maskPass(scene, quality ? scene.quality : [])];
  const cut = new Set(first.flatMap(({ cuts }) => cuts.map(({ group }) => group)));
  const others = [...scene.groups.keys()].filter((g) => !cut.has(g) && !isCubeGroup(scene.groups[g]!));
  return [
    ...first,
    ...others.map((g) => ({
      sources: [scene.groups[g]],
      cuts: [{ group: g, source: 0, mask: null }],
    })),
  ];
}

function maskPass(scene: Scene, quality: QualityBand[]): CutPass {
  const { groups } = scene;
  const finest = groups.indexOf(referenceGroup(scene));
  const read = [finest];
  const mask = quality.map(({ group: name, band, codes }) => {
    const g = groups.indexOf(requireGroup(scene, name));
    if (!read.includes(g)) read.push(g);
    return { source: read.indexOf(g), band, codes };
  });
  return {
    sources: read.map((g) => groups[g]),
    cuts: read.map((group, source) => ({ group, source, mask: group === finest ? mask : null })),
  };
}
