/** Characters of a piece. Texts and buffers beyond some 100 kB get memory of their own from the system, page by page. */
const PIECE = 40_000;

/**
 * The bytes of a FeatureCollection of features that are JSON already, with its other members. Node takes long to send a
 * long text, and to make one of many.
 */
export function featureCollection(features: Iterable<string>, others: object): Buffer {
  const pieces: Buffer[] = [];
  let text = '{"type":"FeatureCollection","features":[';
  let comma = '';
  for (const feature of features) {
    text += comma + feature;
    comma = ',';
    if (text.length < PIECE) continue;
    pieces.push(Buffer.from(text));
    text = '';
  }
  pieces.push(Buffer.from(`${text}],${JSON.stringify(others).slice(1)}`));
  return Buffer.concat(pieces);
}
