import type { JsonBuffer } from '../../../query/index.js';

/** Writes a FeatureCollection with the members `others` to `out`; `write` adds one feature. Returns the bytes. */
export function featureCollection<T>(
  out: JsonBuffer,
  features: T[],
  write: (feature: T) => void,
  others: object,
): Buffer {
  out.appendText('{"type":"FeatureCollection","features":[');
  for (const [i, feature] of features.entries()) {
    if (i > 0) out.appendText(',');
    write(feature);
  }
  out.appendText(`],${JSON.stringify(others).slice(1)}`);
  return out.take();
}
