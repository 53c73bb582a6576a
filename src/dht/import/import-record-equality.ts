/** Compares records of a data folder with records of a cluster. */
import { matchPixelSizes } from '../../grid/index.js';
import {
  type CollectionRecord,
  type ModelRecord,
  type SceneRecord,
  type TileRecord,
  versionsOf,
} from '../../storage/index.js';

/** The reason why tiles of two collections with the same id would not stack; undefined if they would. */
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
  const keyOf = ({ fingerprint, committedAt, geocodes }: SceneRecord) =>
    `${fingerprint} ${committedAt} ${geocodes.join()}`;
  return keyOf(a) === keyOf(b);
}

export function isSameTile(a: TileRecord, b: TileRecord): boolean {
  const keyOf = ({ createdAt, groups }: TileRecord) =>
    `${createdAt} ${groups.map(({ name, bytes, crc32 }) => `${name} ${bytes} ${crc32}`).join()}`;
  return keyOf(a) === keyOf(b);
}

export function isSameModel(a: ModelRecord, b: ModelRecord): boolean {
  const keyOf = (model: ModelRecord) => JSON.stringify(versionsOf(model).map(({ files }) => files));
  return keyOf(a) === keyOf(b);
}
