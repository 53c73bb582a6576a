/// <reference lib="dom" />
/** Meridians and parallels below the map tiles: a base map without an external server. */
import type { Map as LeafletMap } from 'leaflet';
import { L } from './browser-leaflet-global.js';

const STEPS_DEGREES = [30, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001];
const MIN_GAP_PIXELS = 90;
const MAX_LATITUDE = 85;

export function addGraticule(map: LeafletMap): void {
  map.createPane('graticule').style.zIndex = '150';
  const lines = L.layerGroup().addTo(map);
  const draw = () => {
    lines.clearLayers();
    const degree = (256 * 2 ** map.getZoom()) / 360;
    const step = STEPS_DEGREES.findLast((one) => one * degree >= MIN_GAP_PIXELS) ?? STEPS_DEGREES[0];
    const bounds = map.getBounds().pad(0.2);
    const line = (points: [number, number][]) =>
      L.polyline(points, { pane: 'graticule', className: 'graticule', interactive: false, weight: 1 }).addTo(
        lines,
      );
    const label = (at: [number, number], text: string, side: string) => {
      const icon = L.divIcon({ className: `degrees ${side}`, html: text, iconSize: undefined });
      L.marker(at, { icon, interactive: false, keyboard: false }).addTo(lines);
    };
    const south = Math.max(-MAX_LATITUDE, bounds.getSouth());
    const north = Math.min(MAX_LATITUDE, bounds.getNorth());
    const edge = map.containerPointToLatLng([0, map.getSize().y]);
    for (const lon of multiples(step, bounds.getWest(), bounds.getEast())) {
      line([
        [south, lon],
        [north, lon],
      ]);
      label([edge.lat, lon], name(lon, 'E', 'W'), 'below');
    }
    for (const lat of multiples(step, south, north)) {
      line([
        [lat, bounds.getWest()],
        [lat, bounds.getEast()],
      ]);
      label([lat, edge.lng], name(lat, 'N', 'S'), 'beside');
    }
  };
  map.on('moveend', draw);
  draw();
}

function multiples(step: number, from: number, to: number): number[] {
  const first = Math.ceil(from / step);
  const count = Math.max(0, Math.floor(to / step) - first + 1);
  return Array.from({ length: count }, (_, i) => (first + i) * step);
}

/** `12.5°E`. Longitudes beyond the antimeridian are wrapped. */
function name(degrees: number, positive: string, negative: string): string {
  const wrapped = degrees > 180 ? degrees - 360 : degrees < -180 ? degrees + 360 : degrees;
  const rounded = Number(Math.abs(wrapped).toFixed(3));
  return `${rounded}°${rounded === 0 ? '' : wrapped > 0 ? positive : negative}`;
}
