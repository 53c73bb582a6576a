/** JSON values in the coordination store. */

import { parseJsonOr } from '../utils/json-text.js';
import type { KeyValue } from './coordination-store.js';
import { documentDamaged } from './errors.js';

/** Parses the value of a key as a JSON object with the fields `required`. TW_DHT_DOCUMENT_DAMAGED. */
export function parseJsonValue<T extends object>(
  { key, value }: Pick<KeyValue, 'key' | 'value'>,
  required: (keyof T & string)[],
): T {
  const document = parseJsonOr<T | null>(value, (cause) => documentDamaged.because(cause, key));
  if (typeof document === 'object' && document !== null && required.every((field) => field in document))
    return document;
  throw documentDamaged(key);
}
