/** Dilates a mask (pixels of value 1) by `radius` pixels in all directions, including diagonals. */
export function dilateMask(mask: Uint8Array, width: number, height: number, radius: number): Uint8Array {
  const along = (from: Uint8Array, length: number, step: number, lines: number, lineStep: number) => {
    const to = new Uint8Array(from.length);
    for (let line = 0; line < lines; line++) {
      // Distance to the last masked pixel, in a forward and a backward pass.
      for (const [first, direction] of [
        [0, 1],
        [length - 1, -1],
      ]) {
        let since = radius + 1;
        for (let n = 0, i = first; n < length; n++, i += direction) {
          const at = line * lineStep + i * step;
          since = from[at] ? 0 : since + 1;
          if (since <= radius) to[at] = 1;
        }
      }
    }
    return to;
  };
  return along(along(mask, width, 1, height, width), height, width, width, 1);
}
