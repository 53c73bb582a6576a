/** Parses geometry literals of CQL2 text, well-known text and BBOX, to GeoJSON. The GeoJSON is checked later. */
import type { TokenStream } from './cql2-lexer.js';

type Reader = (tokens: TokenStream) => unknown;

const list =
  (item: Reader): Reader =>
  (tokens) => {
    tokens.expect('(');
    const items = [item(tokens)];
    while (tokens.accept(',')) items.push(item(tokens));
    tokens.expect(')');
    return items;
  };

/** Two numbers, and an optional height. */
const point: Reader = (tokens) => {
  const numbers = [tokens.signedNumber(), tokens.signedNumber()];
  if (!tokens.nextIs(',') && !tokens.nextIs(')')) numbers.push(tokens.signedNumber());
  return numbers;
};

const pointInBrackets: Reader = (tokens) => {
  tokens.expect('(');
  const value = point(tokens);
  tokens.expect(')');
  return value;
};

const points = list(point);

const coordinates: Record<string, [type: string, read: Reader]> = {
  POINT: ['Point', pointInBrackets],
  LINESTRING: ['LineString', points],
  POLYGON: ['Polygon', list(points)],
  MULTIPOINT: [
    'MultiPoint',
    list((tokens) => (tokens.nextIs('(') ? pointInBrackets(tokens) : point(tokens))),
  ],
  MULTILINESTRING: ['MultiLineString', list(points)],
  MULTIPOLYGON: ['MultiPolygon', list(list(points))],
};

/** Parses a geometry; undefined if the next token does not begin one. */
export function parseGeometry(tokens: TokenStream): object | undefined {
  const word = tokens.peek().text.toUpperCase();
  const withHeight = tokens.nextIs('Z', 1);
  if (!tokens.nextIs('(', withHeight ? 2 : 1)) return undefined;
  if (word === 'BBOX') {
    tokens.next();
    return { bbox: list((inside) => inside.signedNumber())(tokens) };
  }
  const collection = word === 'GEOMETRYCOLLECTION';
  const reader = coordinates[word];
  if (!collection && !reader) return undefined;
  tokens.next();
  if (withHeight) tokens.next();
  if (reader) return { type: reader[0], coordinates: reader[1](tokens) };
  return { type: 'GeometryCollection', geometries: list(partOfCollection)(tokens) };
}

const partOfCollection: Reader = (tokens) => {
  if (tokens.nextIs('GEOMETRYCOLLECTION')) tokens.fail('a geometry other than a collection');
  return parseGeometry(tokens) ?? tokens.fail('a geometry');
};
