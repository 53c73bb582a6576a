/// <reference lib="dom" />
/** The token of a server whose reads are not open. It is kept until the tab closes, and never part of an address. */
import { L, type TileLayer } from './leaflet-global.js';

const TOKEN_STORAGE_KEY = 'tilewright-token';

/** The server wants a token, or another one. */
export class TokenRequired extends Error {
  constructor(isWrong: boolean) {
    super(
      isWrong ? 'This token does not open the server. Give another one.' : 'This server asks for a token.',
    );
  }
}

export function keepToken(token: string): void {
  sessionStorage.setItem(TOKEN_STORAGE_KEY, token);
}

export const hasToken = () => sessionStorage.getItem(TOKEN_STORAGE_KEY) !== null;

/** A request with the token, where there is one. Throws TokenRequired. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const token = sessionStorage.getItem(TOKEN_STORAGE_KEY);
  const headers = { ...init.headers, ...(token !== null && { authorization: `Bearer ${token}` }) };
  const response = await fetch(path, { ...init, headers });
  if (response.status !== 401) return response;
  sessionStorage.removeItem(TOKEN_STORAGE_KEY);
  throw new TokenRequired(token !== null);
}

/** Lets an image show a picture of the server. Images carry no token: with one, the picture is fetched for it. */
export async function showPicture(image: HTMLImageElement, path: string): Promise<void> {
  if (!hasToken()) {
    image.src = path;
    return;
  }
  const response = await request(path);
  if (!response.ok) throw new Error(`${path} answers ${response.status}`);
  const address = URL.createObjectURL(await response.blob());
  image.src = address;
  await image.decode().finally(() => URL.revokeObjectURL(address));
}

/** Leaflet's layer of map tiles, whose pictures are fetched with the token where there is one. */
export function tileLayer(template: string, options: object): TileLayer {
  const layer = L.tileLayer(template, options);
  if (!hasToken()) return layer;
  layer.createTile = (place, done) => {
    const image = document.createElement('img');
    image.alt = '';
    showPicture(image, layer.getTileUrl(place)).then(
      () => done(null, image),
      (error: Error) => done(error, image),
    );
    return image;
  };
  return layer;
}
