/** Matrices of a report: as a file and as an image. */
import { npyHead } from '../../derive/index.js';
import { type Html, html } from '../../html/index.js';
import { encodeImage } from '../../imagery/index.js';

/** Colours range from blue (-1) over white (0) to red (1); NaN is grey. */
export async function matrixImage(values: Float64Array, size: number): Promise<Html> {
  const pixels = new Uint8Array(4 * size * size);
  const colourOf = (value: number) => {
    if (Number.isNaN(value)) return [128, 128, 128];
    const faint = Math.round(255 * (1 - Math.min(1, Math.abs(value))));
    return value < 0 ? [faint, faint, 255] : [255, faint, faint];
  };
  for (const [i, value] of values.entries()) pixels.set([...colourOf(value), 255], 4 * i);
  const picture = (await encodeImage(pixels, size, size, 'png')).toString('base64');
  return html`<figure><img class="matrix" alt="correlation of the bands" src="data:image/png;base64,${picture}"><figcaption>Bands in the order of the files, from the upper left; red is 1, white 0, blue -1.</figcaption></figure>`;
}

/** A NumPy file of f64. */
export function matrixFile(values: Float64Array, shape: number[]): Buffer {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  return Buffer.concat([npyHead('float64', shape), bytes]);
}
