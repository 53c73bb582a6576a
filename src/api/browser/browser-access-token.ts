/// <reference lib="dom" />
/** The token of a server that requires one for reads. It is kept until the tab closes, and is never part of a URL. */
import type { Coords, DoneCallback, TileLayer } from 'leaflet';
import { L } from './browser-leaflet-global.js';

const TOKEN_STORAGE_KEY = 'tilewright-token';

/** The server requires a token, or refused the token. */
export class TokenRequired extends Error {
  constructor(isWrong: boolean) {
    super(isWrong ? 'The server refused this token. Enter another one.' : 'This server requires a token.');
  }
}

export function keepToken(token: string): void {
  sessionStorage.setItem(TOKEN_STORAGE_KEY, token);
}

export const hasToken = () => sessionStorage.getItem(TOKEN_STORAGE_KEY) !== null;

/** Sends a request, with the token if there is one. Throws TokenRequired. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const token = sessionStorage.getItem(TOKEN_STORAGE_KEY);
  const headers = { ...init.headers, ...(token !== null && { authorization: `Bearer ${token}` }) };
  const response = await fetch(path, { ...init, headers });
  if (response.status !== 401) return response;
  sessionStorage.removeItem(TOKEN_STORAGE_KEY);
  throw new TokenRequired(token !== null);
}

/** Loads a picture from the server into an image element. Image elements cannot send a token, so with a token the picture is fetched. */
export async function showPicture(image: HTMLImageElement, path: string): Promise<void> {
  if (!hasToken()) {
    image.src = path;
    return;
  }
  const response = await request(path);
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  const address = URL.createObjectURL(await response.blob());
  image.src = address;
  await image.decode().finally(() => URL.revokeObjectURL(address));
}

/** Leaflet's layer of map tiles, which are fetched with the token if there is one. */
export function tileLayer(template: string, options: object): TileLayer {
  const layer = L.tileLayer(template, options);
  if (!hasToken()) return layer;
  const createTile = (coords: Coords, done: DoneCallback) => {
    const image = document.createElement('img');
    image.alt = '';
    showPicture(image, layer.getTileUrl(coords)).then(
      () => done(undefined, image),
      (error: Error) => done(error, image),
    );
    return image;
  };
  return Object.assign(layer, { createTile });
}
