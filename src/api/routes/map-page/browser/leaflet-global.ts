/// <reference lib="dom" />
/** What the page uses of Leaflet, which a script of its own has loaded before. */

type Point = [lat: number, lon: number];

export interface Bounds {
  getWest(): number;
  getSouth(): number;
  getEast(): number;
  getNorth(): number;
  pad(share: number): Bounds;
}

export interface Layer {
  addTo(map: LeafletMap | LayerGroup): this;
  remove(): this;
}

export interface TileLayer extends Layer {
  on(listeners: Record<string, () => void>): this;
  isLoading(): boolean;
  getTileUrl(place: object): string;
  /** Makes the element of a map tile, and tells when it is there. */
  createTile(place: object, done: (error: Error | null, tile: HTMLElement) => void): HTMLElement;
}

export interface LayerGroup extends Layer {
  clearLayers(): this;
}

export interface LeafletMap {
  attributionControl: { setPrefix(text: string): void };
  on(events: string, listener: (event: { latlng: { lat: number; lng: number } }) => void): this;
  setView(center: Point, zoom: number): this;
  fitBounds(bounds: [Point, Point]): this;
  getBoundsZoom(bounds: [Point, Point]): number;
  getBounds(): Bounds;
  getZoom(): number;
  getCenter(): { lat: number; lng: number };
  getSize(): { x: number; y: number };
  containerPointToLatLng(point: [x: number, y: number]): { lat: number; lng: number };
  invalidateSize(): this;
  createPane(name: string): HTMLElement;
}

export interface Leaflet {
  map(id: string, options: object): LeafletMap;
  tileLayer(template: string, options: object): TileLayer;
  polyline(points: Point[], options: object): Layer;
  circleMarker(point: Point, options: object): Layer;
  marker(point: Point, options: object): Layer;
  divIcon(options: object): object;
  geoJSON(features: object[], options: object): Layer;
  layerGroup(): LayerGroup;
  control: { scale(options: object): Layer; zoom(options: object): Layer };
}

export const { L } = globalThis as unknown as { L: Leaflet };
