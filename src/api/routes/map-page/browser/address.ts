/** What the page shows, as the part of its address behind #, so that a link opens it again. */

export interface View {
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
  /** Choices of the form by the ids of their fields. */
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

/** What is not understood is left out. */
export function readAddress(hash: string): PageState {
  const params = new URLSearchParams(hash.replace(/^#/, ''));
  const [zoom, lat, lon] = numbers(params.get('map'), 3);
  const [placeLat, placeLon] = numbers(params.get('place'), 2);
  params.delete('map');
  params.delete('place');
  return {
    ...(isPlace(lat, lon) && { view: { zoom, lat, lon } }),
    ...(isPlace(placeLat, placeLon) && { place: { lat: placeLat, lon: placeLon } }),
    choices: Object.fromEntries(params),
  };
}

/** About a metre. */
const digits = (degrees: number) => degrees.toFixed(5);

const isPlace = (lat: number, lon: number) => Math.abs(lat) <= 90 && Math.abs(lon) <= 180;

/** NaN for what is none. */
function numbers(text: string | null, count: number): number[] {
  const parts = (text ?? '').split('/').map((part) => (part === '' ? NaN : Number(part)));
  return parts.length === count && !parts.some(Number.isNaN) ? parts : Array(count).fill(NaN);
}
