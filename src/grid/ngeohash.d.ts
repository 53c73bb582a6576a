/** The two functions of the package that are used here. */
declare module 'ngeohash' {
  const ngeohash: {
    /** A point on an edge belongs to the cell west or south of it. */
    encode(latitude: number, longitude: number, length: number): string;
    decode_bbox(geohash: string): [south: number, west: number, north: number, east: number];
  };
  export default ngeohash;
}
