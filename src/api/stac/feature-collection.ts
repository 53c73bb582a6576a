/**
 * The bytes of a FeatureCollection of features that are JSON already, with its other members. Node takes long to send a
 * long text, and to make one of many.
 */
export function featureCollection(features: string[], others: object): Buffer {
  const texts = ['{"type":"FeatureCollection","features":['];
  for (const [i, feature] of features.entries()) texts.push(i === 0 ? feature : `,${feature}`);
  texts.push(`],${JSON.stringify(others).slice(1)}`);
  const bytes = Buffer.allocUnsafe(texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0));
  let at = 0;
  for (const text of texts) at += bytes.write(text, at);
  return bytes;
}
