/**
 * The functions CASEI and ACCENTI of CQL2 (OGC 21-065r2, sections 7.3 and 7.4), which map equivalent texts to equal ones. Literals have
 * at most 10,000 characters, and ids of tiles at most 240.
 */

export type FoldingFunction = 'casei' | 'accenti';

/**
 * Latin letters with a stroke, each followed by its replacement. Unicode does not decompose strokes, but in the test data of CQL2
 * ACCENTI('København') is equal to ACCENTI('Kobenhavn').
 */
const STROKES = 'ØOøoĐDđdĦHħhŁLłlŦTŧtɃBƀbƗIɨiƵZƶzǤGǥgȺAⱥaȻCȼcɆEɇeɈJɉjɌRɍrɎYɏyⱣPᵽpꝀKꝁk';
const WITHOUT_STROKE = new Map(
  Array.from(STROKES.matchAll(/(.)(.)/gu), ([, with_, without]) => [with_, without]),
);
const STROKE = new RegExp(`[${[...WITHOUT_STROKE.keys()].join('')}]`, 'gu');

/** The blocks "Combining Diacritical Marks". They do not contain vowel signs and other marks that are letters of their script. */
const ACCENT = /[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]/gu;

/**
 * Maximum length of a run of combining marks: the limit of the Stream-Safe Text Format (Unicode Standard Annex 15). Normalisation
 * sorts each run, in a time quadratic in its length. Further marks are dropped.
 */
const MAX_COMBINING_MARKS = 30;
const LONG_RUN = new RegExp(`(\\p{M}{${MAX_COMBINING_MARKS}})\\p{M}+`, 'gu');

const ASCII = /^[\0-\x7f]*$/;

/**
 * Both take time linear in the length of the text. A fold that is applied again changes nothing, even if the other fold was applied in
 * between.
 */
export const foldingFunctions: Record<FoldingFunction, (text: string) => string> = {
  /**
   * Full case folding of Unicode. Three mappings are equivalent to it, applied to each character: a small sigma depends on its
   * neighbours.
   */
  casei: (text) =>
    ASCII.test(text)
      ? text.toLowerCase()
      : Array.from(text, (one) => (one === 'ı' ? one : one.toLowerCase().toUpperCase().toLowerCase())).join(
          '',
        ),
  accenti: (text) =>
    ASCII.test(text)
      ? text
      : text
          .replace(ACCENT, '')
          .replace(LONG_RUN, '$1')
          .normalize('NFD')
          .replace(ACCENT, '')
          .replace(STROKE, (letter) => WITHOUT_STROKE.get(letter)!)
          .normalize('NFC'),
};
