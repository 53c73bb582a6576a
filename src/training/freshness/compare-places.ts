/** Order of places in results: by collection, then by geocode. */
import { compareText } from '../../utils/compare-text.js';

interface Place {
  collection: string;
  geocode: string;
}

export const comparePlaces = (a: Place, b: Place): number =>
  compareText(a.collection, b.collection) || compareText(a.geocode, b.geocode);
