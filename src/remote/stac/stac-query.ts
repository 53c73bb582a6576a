/** The conditions of a search for Items. */
import type { Bbox } from '../../grid/index.js';
import type { JsonObject } from './stac-documents.js';

export interface StacQuery {
  /** All collections if absent. */
  collections?: string[];
  /** Degrees; west > east crosses the antimeridian. */
  bbox?: Bbox;
  /** In the form of STAC APIs; days, months and years are allowed. */
  datetime?: string;
  /** CQL2 as text or JSON, for APIs only. */
  filter?: string | JsonObject;
  /** Percent. Items without the property `eo:cloud_cover` are selected. */
  maxCloud?: number;
  /** Number of Items at most, the first ones of the search. */
  limit?: number;
  /** True if a search without a limit may have many Items. */
  all?: boolean;
}
