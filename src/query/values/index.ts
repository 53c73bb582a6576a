/**
 * Parses single values: numbers, bounding boxes, datetimes. Pure functions that name the parameter in their errors. Imports the part `grid`
 * (types).
 */
export { axisOrderHint } from './bbox-value-hint.js';
export { checkBbox, parseBbox } from './parse-bbox-value.js';
export { parseDatetime, parseInstant, writeDatetime } from './parse-datetime-value.js';
export { parseNumber } from './parse-number-value.js';
