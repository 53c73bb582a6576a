/** Messages about scene parts: the tiles of a remote scene that one node makes for the write of another node. */
import { ERROR_DOCUMENT_SCHEMA, type ErrorDocument } from '../../errors.js';
import type { RemoteItem } from '../../remote/index.js';
import {
  type CollectionRecord,
  checkEncodedTiles,
  type EncodedTiles,
  FILE_NAME_SCHEMA,
  type TileBatch,
  VERSION_SCHEMA,
} from '../../storage/index.js';
import { type Check, COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import type { NegativeCount } from '../cut/index.js';
import type { IngestOptions } from '../ingest-options.js';

export const SCENE_PART_PATH = '/cluster/internal/scene-part';

/** The remote files of a scene: an Item of a catalog, or a single file. */
export interface ScenePartSource {
  /** Address of the catalog, which some credentials depend on. */
  catalog?: string;
  /** Keys or bands of the assets that are read; all with data if absent. */
  assets?: string[];
  item?: RemoteItem;
  /** Address of a single file. */
  file?: string;
}

export interface ScenePartRequest {
  job: string;
  source: ScenePartSource;
  options: IngestOptions;
  collection: CollectionRecord;
  scene: string;
  /** Version of the write of the node that asks. */
  version: string;
  /** Fingerprint of the scene: a node that computes another one must not make tiles. */
  fingerprint: string;
  cells: string[];
}

export interface ScenePartResult {
  /** Version of the tiles. */
  version: string;
  tiles: TileBatch | EncodedTiles;
  negative: NegativeCount;
}

/** The answer is a stream of events; the last one is the result or an error. */
export type ScenePartEvent =
  | { beat: true }
  | { share: number }
  | { result: ScenePartResult }
  | { error: ErrorDocument };

/** Some members become names of folders. Nodes of other versions may send more members. */
export const SCENE_PART_SCHEMA = objectOf({
  job: VERSION_SCHEMA,
  source: objectOf(
    {},
    {
      catalog: TEXT,
      assets: listOf(TEXT),
      item: objectOf({ id: TEXT, url: TEXT, document: { type: 'object' } }),
      file: TEXT,
    },
  ),
  options: { type: 'object' },
  collection: objectOf({ id: FILE_NAME_SCHEMA, grid: { enum: ['geohash', 'quadtile'] }, precision: COUNT }),
  scene: FILE_NAME_SCHEMA,
  version: VERSION_SCHEMA,
  fingerprint: TEXT,
  cells: { ...listOf({ type: 'string', pattern: '^[0-9a-z]{1,24}$' }), minItems: 1 },
});

const checkEvent = messageCheck(
  objectOf(
    {},
    {
      share: NUMBER,
      result: objectOf({
        version: VERSION_SCHEMA,
        tiles: { type: 'object' },
        negative: objectOf({ clear: COUNT, negative: COUNT }),
      }),
      error: ERROR_DOCUMENT_SCHEMA,
    },
  ),
);

export const checkScenePartEvent: Check = (value) => {
  const fault = checkEvent(value);
  if (fault !== undefined) return fault;
  const event = value as ScenePartEvent;
  return 'result' in event ? checkEncodedTiles(event.result.tiles) : undefined;
};
