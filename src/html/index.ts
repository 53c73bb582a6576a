/**
 * Building blocks of HTML reports: escaped markup, chart axes, number formats. Invariant: every text from outside is escaped, because only
 * `html` and `trusted` create markup. Imports no other folder.
 */

export { Html, html, htmlPage, htmlSection, PAGE_POLICY, reportStyle, trusted } from './html.js';
export {
  type AxisScale,
  dateText,
  dateTime,
  decimalsOf,
  formatColumn,
  formatDuration,
  formatPercentValue,
  formatR2,
  linearScale,
  logScale,
  logTick,
  median,
  multiplesBetween,
  niceBelow,
  niceStep,
  signed,
  significant,
} from './numbers.js';
