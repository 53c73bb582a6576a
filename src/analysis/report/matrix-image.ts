/** A correlation matrix as a picture. */
import { type Html, html } from '../../html/index.js';
import { encodeImage } from '../../imagery/index.js';

/** From -1, blue, over 0, white, to 1, red; grey where there is none. */
export async function matrixImage(values: Float64Array, size: number): Promise<Html> {
  const pixels = new Uint8Array(4 * size * size);
  for (const [i, value] of values.entries()) {
    const faint = Math.round(255 * (1 - Math.min(1, Math.abs(value))));
    const colour = Number.isNaN(value)
      ? [128, 128, 128]
      : value < 0
        ? [faint, faint, 255]
        : [255, faint, faint];
    pixels.set([...colour, 255], 4 * i);
  }
  const picture = (await encodeImage(pixels, size, size, 'png')).toString('base64');
  return html`<figure><img class="matrix" alt="correlation of the bands" src="data:image/png;base64,${picture}"><figcaption>Bands in the order of the files, from the upper left; red is 1, white 0, blue -1.</figcaption></figure>`;
}
