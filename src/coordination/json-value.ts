/** Values in the coordination store that are JSON. */
import { documentDamaged } from './errors.js';
import type { KeyValue } from './kv-store.js';

/** The JSON object that a key holds; `has` names fields that it must have. TW_DHT_DOCUMENT_DAMAGED. */
export function parseJsonValue<T extends object>(
  { key, value }: Pick<KeyValue, 'key' | 'value'>,
  has: (keyof T & string)[],
): T {
  try {
    const document: unknown = JSON.parse(value);
    if (typeof document === 'object' && document !== null && has.every((field) => field in document))
      return document as T;
  } catch (error) {
    throw documentDamaged.because(error, key);
  }
  throw documentDamaged(key);
}
