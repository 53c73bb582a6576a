import { Kinds } from './kinds.js';
import { fractalNoise, type View, valueNoise } from './noise.js';
import { parcelAt } from './parcels.js';
import { uniform } from './random.js';
import { MIXED, type Region } from './regions.js';

/**
 * The ground of a view, the same on every date. One value a pixel. The layers hold what makes near infrared only partly
 * a function of colour: `nir` differs between stands and fields that look alike, and a part of it goes with texture.
 */
export interface Landscape {
  view: View;
  /** Index into KINDS. */
  kind: Uint8Array;
  /** Factor of all bands: crowns, roofs, soil colour. About 1. */
  shade: Float32Array;
  /** Factor of the green fraction: vigour of a field and its rows. About 1. */
  green: Float32Array;
  /** Factor of the near infrared of leaves. About 1. */
  nir: Float32Array;
  /** A number for each field; 0 for other land. */
  field: Uint32Array;
}

/** The landscape of a view: a river, heights with forest and rock, towns, and fields in parcels. */
export function makeLandscape(view: View, seed: number, more: Region = MIXED): Landscape {
  const { width, height, pixelSize } = view;
  const pixels = width * height;
  const noise = (spacing: number, salt: number) => valueNoise(view, spacing, seed + salt);
  const elevation = fractalNoise(view, 4200, 5, seed + 1);
  const course = fractalNoise(view, 5200, 3, seed + 11);
  const stand = fractalNoise(view, 1100, 3, seed + 21);
  const outline = noise(350, 31);
  const mottle = fractalNoise(view, 180, 3, seed + 41);
  const crowns = noise(34, 51);
  const needles = noise(13, 61);
  const region = noise(3600, 71);
  const hidden = fractalNoise(view, 420, 2, seed + 81);

  const kind = new Uint8Array(pixels);
  const shade = new Float32Array(pixels).fill(1);
  const green = new Float32Array(pixels).fill(1);
  const nir = new Float32Array(pixels);
  const field = new Uint32Array(pixels);
  for (let row = 0, i = 0; row < height; row++) {
    const y = view.y + (row + 0.5) * pixelSize;
    for (let column = 0; column < width; column++, i++) {
      const x = view.x + (column + 0.5) * pixelSize;
      const up = 0.5 + more.relief * (elevation[i] - 0.5) + more.lift;
      nir[i] = 1 + 0.2 * (region[i] - 0.5) + 0.16 * (hidden[i] - 0.5);
      const soilColour = 0.75 + 0.3 * mottle[i] + 0.25 * region[i];
      if (up < more.sea || (up < 0.62 && Math.abs(course[i] - 0.5) < 0.006 + 0.01 * (1 - up))) {
        kind[i] = Kinds.water;
        shade[i] = 0.94 + 0.12 * mottle[i];
      } else if (up > 0.65) {
        kind[i] = Kinds.rock;
        shade[i] = 0.6 + 0.8 * mottle[i];
      } else if (up + 0.1 * (outline[i] - 0.5) > 0.56) {
        const broad = stand[i] + 0.5 * (0.6 - up) + more.broadleaf > 0.5;
        kind[i] = broad ? Kinds.broadleaf : Kinds.conifer;
        const texture = broad ? 0.9 * (crowns[i] - 0.5) : 0.3 * (needles[i] - 0.5);
        shade[i] = (0.88 + 0.24 * mottle[i]) * (1 + texture);
      } else if (townReaches(x, y, outline[i], seed, more.towns)) {
        const [brightness, gardens] = townPixel(x, y, pixelSize, seed);
        kind[i] = Kinds.town;
        shade[i] = brightness;
        green[i] = gardens;
      } else {
        const parcel = parcelAt(x, y, up, seed);
        kind[i] = parcel.kind;
        field[i] = parcel.field;
        shade[i] = soilColour;
        green[i] = parcel.green * (0.93 + 0.14 * mottle[i]);
        nir[i] *= parcel.nir;
      }
    }
  }
  return { view, kind, shade, green, nir, field };
}

const TOWN_LATTICE = 4200;

/** True inside a town: a disc around a random centre in each lattice square, with a ragged edge. */
function townReaches(x: number, y: number, outline: number, seed: number, size: number): boolean {
  const column = Math.floor(x / TOWN_LATTICE);
  const row = Math.floor(y / TOWN_LATTICE);
  const centreX = (column + 0.3 + 0.4 * uniform(column, row, seed + 201)) * TOWN_LATTICE;
  const centreY = (row + 0.3 + 0.4 * uniform(column, row, seed + 202)) * TOWN_LATTICE;
  const radius = size * (250 + 950 * uniform(column, row, seed + 203));
  const distance = Math.sqrt((x - centreX) ** 2 + (y - centreY) ** 2);
  return distance < radius * (0.65 + 0.7 * outline);
}

/** Brightness and share of gardens of a town pixel: blocks of 110 x 80 m between streets, buildings of about 20 m. */
function townPixel(x: number, y: number, pixelSize: number, seed: number): [shade: number, green: number] {
  const acrossX = x * 0.96 + y * 0.28;
  const acrossY = y * 0.96 - x * 0.28;
  const street = Math.max(12, pixelSize);
  const inBlockX = acrossX - Math.floor(acrossX / 110) * 110;
  const inBlockY = acrossY - Math.floor(acrossY / 80) * 80;
  if (inBlockX < street || inBlockY < street) return [0.75, 0.03];
  const dense = uniform(Math.floor(acrossX / 110), Math.floor(acrossY / 80), seed + 211);
  const building = uniform(Math.floor(acrossX / 20), Math.floor(acrossY / 20), seed + 212);
  if (building < 0.35 + 0.4 * dense) return [0.8 + 1.6 * building, 0.02];
  return [0.9, 0.22 + 0.22 * (1 - dense)];
}
