/** The state of the page as the fragment of its URL, so that a link restores it. */

interface View {
  zoom: number;
  lat: number;
  lon: number;
}

export interface MapPoint {
  lat: number;
  lon: number;
}

export interface PageState {
  view?: View;
  place?: MapPoint;
  /** Values of the form by the ids of their fields. */
  choices: Record<string, string>;
}

/** `map=13/47.84120/15.01230&collection=fields&look=NDVI`. */
export function writeAddress({ view, place, choices }: PageState): string {
  const params = new URLSearchParams(choices);
  if (place) params.set('place', `${digits(place.lat)}/${digits(place.lon)}`);
  const parts = view ? [`map=${view.zoom}/${digits(view.lat)}/${digits(view.lon)}`] : [];
  if (params.size > 0) parts.push(String(params).replaceAll('%2F', '/'));
  return parts.join('&');
}

/** Invalid values are ignored. */
export function readAddress(hash: string): PageState {
  const params = new URLSearchParams(hash.replace(/^#/, ''));
  const [zoom, lat, lon] = numbers(params.get('map'), 3);
  const [placeLat, placeLon] = numbers(params.get('place'), 2);
  params.delete('map');
  params.delete('place');
  return {
    ...(isOnEarth(lat, lon) && { view: { zoom, lat, lon } }),
    ...(isOnEarth(placeLat, placeLon) && { place: { lat: placeLat, lon: placeLon } }),
    choices: Object.fromEntries(params),
  };
}

/** Five decimals are about a metre. */
const digits = (degrees: number) => degrees.toFixed(5);

const isOnEarth = (lat: number, lon: number) => Math.abs(lat) <= 90 && Math.abs(lon) <= 180;

/** Numbers separated by slashes; all NaN if one is invalid or their count differs. */
function numbers(text: string | null, count: number): number[] {
  const parts = (text ?? '').split('/').map((part) => (part === '' ? NaN : Number(part)));
  return parts.length === count && !parts.some(Number.isNaN) ? parts : Array(count).fill(NaN);
}
