/** Whether records of a folder and of a cluster are of the same thing. */
import { matchPixelSizes } from '../../grid/index.js';
import {
  type CollectionRecord,
  type ModelRecord,
  type SceneRecord,
  type TileRecord,
  versionsOf,
} from '../../storage/index.js';

/** Why tiles of two collections of one name could not lie on each other; undefined where they can. */
export function cellDifference(own: CollectionRecord, other: CollectionRecord): string | undefined {
  const cells = ({ grid, precision }: CollectionRecord) => `${grid} cells of precision ${precision}`;
  if (cells(own) !== cells(other)) return `${cells(own)} here, ${cells(other)} in the cluster`;
  const sizes = own.pixelSizes?.flat() ?? [];
  const { fitted } = matchPixelSizes(other.pixelSizes ?? [], sizes);
  const odd = sizes.findIndex(({ x, y }, i) => fitted[i]!.x !== x || fitted[i]!.y !== y);
  if (odd < 0) return undefined;
  const text = ({ x, y }: { x: number; y: number }) => (x === y ? `${x} m` : `${x} x ${y} m`);
  return `pixels of ${text(sizes[odd]!)} here, ${text(fitted[odd]!)} in the cluster`;
}

export function isSameScene(a: SceneRecord, b: SceneRecord): boolean {
  const told = ({ fingerprint, committedAt, geocodes }: SceneRecord) =>
    `${fingerprint} ${committedAt} ${geocodes.join()}`;
  return told(a) === told(b);
}

export function isSameTile(a: TileRecord, b: TileRecord): boolean {
  const told = ({ createdAt, groups }: TileRecord) =>
    `${createdAt} ${groups.map(({ name, bytes, crc32 }) => `${name} ${bytes} ${crc32}`).join()}`;
  return told(a) === told(b);
}

export function isSameModel(a: ModelRecord, b: ModelRecord): boolean {
  const told = (model: ModelRecord) => JSON.stringify(versionsOf(model).map(({ files }) => files));
  return told(a) === told(b);
}
