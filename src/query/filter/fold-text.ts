/** The functions CASEI and ACCENTI of CQL2 (OGC 21-065r2, sections 7.3 and 7.4): texts that count as alike become equal. */

export type Fold = 'casei' | 'accenti';

/**
 * Latin letters with a stroke, each before the letter that it becomes. Unicode decomposes no stroke, but the test data of CQL2 have
 * ACCENTI('København') equal to ACCENTI('Kobenhavn').
 */
const STROKES = 'ØOøoĐDđdĦHħhŁLłlŦTŧtɃBƀbƗIɨiƵZƶzǤGǥgȺAⱥaȻCȼcɆEɇeɈJɉjɌRɍrɎYɏyⱣPᵽpꝀKꝁk';
const WITHOUT_STROKE = new Map(
  Array.from(STROKES.matchAll(/(.)(.)/gu), ([, with_, without]) => [with_, without]),
);
const STROKE = new RegExp(`[${[...WITHOUT_STROKE.keys()].join('')}]`, 'gu');

/** The blocks "Combining Diacritical Marks". Vowel signs and other marks that are letters of their script are not in them. */
const ACCENT = /[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]/gu;

const ASCII = /^[\0-\x7f]*$/;

export const folds: Record<Fold, (text: string) => string> = {
  /** Full case folding of Unicode. Three mappings equal it; each character alone, because the small sigma depends on its neighbours. */
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
          .normalize('NFD')
          .replace(ACCENT, '')
          .replace(STROKE, (letter) => WITHOUT_STROKE.get(letter)!)
          .normalize('NFC'),
};
