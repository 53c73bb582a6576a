/** Types of those modules of jsts that the tests use; jsts has no types for them. */
declare module 'jsts/org/locationtech/jts/io/GeoJSONReader.js' {
  export interface JstsGeometry {
    isEmpty(): boolean;
  }
  export default class GeoJSONReader {
    read(geometry: object): JstsGeometry;
  }
}
declare module 'jsts/org/locationtech/jts/operation/relate/RelateOp.js' {
  import type { JstsGeometry } from 'jsts/org/locationtech/jts/io/GeoJSONReader.js';

  export interface IntersectionMatrix {
    isIntersects(): boolean;
    isDisjoint(): boolean;
    isWithin(): boolean;
    isContains(): boolean;
    isEquals(dimensionA: number, dimensionB: number): boolean;
    isTouches(dimensionA: number, dimensionB: number): boolean;
    isCrosses(dimensionA: number, dimensionB: number): boolean;
    isOverlaps(dimensionA: number, dimensionB: number): boolean;
  }
  const RelateOp: { relate(a: JstsGeometry, b: JstsGeometry): IntersectionMatrix };
  export default RelateOp;
}
declare module 'jsts/org/locationtech/jts/operation/valid/IsValidOp.js' {
  import type { JstsGeometry } from 'jsts/org/locationtech/jts/io/GeoJSONReader.js';

  const IsValidOp: { isValid(geometry: JstsGeometry): boolean };
  export default IsValidOp;
}
declare module 'jsts/org/locationtech/jts/operation/union/UnaryUnionOp.js' {
  import type { JstsGeometry } from 'jsts/org/locationtech/jts/io/GeoJSONReader.js';

  const UnaryUnionOp: { union(geometry: JstsGeometry): JstsGeometry };
  export default UnaryUnionOp;
}
