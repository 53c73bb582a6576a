/** Errors of derived tiles and tensors. */
import { defineError } from '../errors.js';

export const noMask = defineError(
  'TW_WRANGLE_NO_MASK',
  500,
  'A tile has no mask, so it is unknown which of its pixels are valid. Ingest its scene again.',
  (geocode: string) => `a tile of cell ${geocode} has no mask; ingest its scene again`,
);

export const deriveFailed = defineError(
  'TW_WRANGLE_FAILED',
  500,
  'A tile could not be made; the message names what is wrong with its inputs. The other tiles are made.',
  (tile: string, detail: string) => `${tile} could not be made: ${detail}`,
);

export const noTileDerived = defineError(
  'TW_WRANGLE_ALL_FAILED',
  500,
  'No tile could be made; the message names the first reasons.',
  (count: number, reasons: string[]) => `no tile was made, ${count} failed: ${reasons.join('; ')}`,
);

export const splitTooFine = defineError(
  'TW_WRANGLE_TOO_FINE',
  400,
  'A tile would be split into too many cells, or into cells that its grid does not have. Choose a smaller precision.',
  (grid: string, geocode: string, precision: number, most: number) =>
    `cell ${geocode} cannot be split into ${grid} cells of precision ${precision}: give a smaller --precision, for at most ${most} cells a tile`,
);

export const unknownCollection = defineError(
  'TW_WRANGLE_NO_COLLECTION',
  404,
  'The collection whose cells the new tiles should have does not exist. `tilewright info` lists the existing ones.',
  (id: string) => `there is no collection ${JSON.stringify(id)} whose cells could be used`,
);

export const bandNotFound = defineError(
  'TW_WRANGLE_NO_BAND',
  400,
  'No selected cell has a tile with the named band. `tilewright info` with the id of a tile lists its bands. The layer of a model has tiles after `tilewright predict`.',
  (bands: string[]) =>
    `no tile has the band ${bands.join(', ')}; "tilewright info" with the id of a tile lists its bands, and "tilewright predict" makes the layer of a model`,
);

export const tensorTypes = defineError(
  'TW_WRANGLE_TYPES',
  400,
  'The stored numbers of the bands differ in type or in nodata value, so one array cannot hold them. Request physical values.',
  (geocode: string, kinds: string[]) =>
    `the bands of cell ${geocode} are stored in several ways (${kinds.join('; ')}): leave out --stored`,
);

export const storedExpression = defineError(
  'TW_WRANGLE_STORED_EXPRESSION',
  400,
  'Expressions are computed from physical values, so a tensor of stored numbers cannot contain one. Leave out the expression or `--stored`.',
  (expression: string) =>
    `${expression} is an expression, which has no stored numbers: leave it out, or leave out --stored`,
);

export const tensorTooLarge = defineError(
  'TW_WRANGLE_TENSOR_SIZE',
  400,
  'A tensor is too large. Select fewer dates or bands, choose a coarser resolution, or request a NumPy file, which need not fit into memory.',
  (geocode: string, shape: number[], format: string) =>
    `the tensor of cell ${geocode} would be ${shape.join(' x ')}, too large for .${format}: select fewer dates or bands, or a coarser --resolution${format === 'tif' ? ', or make a .npy' : ''}`,
);

export const tilesOutOfReach = defineError(
  'TW_WRANGLE_OUT_OF_REACH',
  503,
  'Required tiles are on nodes of the cluster that do not respond. Try again when they do, or when other nodes have replaced them.',
  (slots: number) =>
    `no node answers for ${slots} slots whose tiles are needed; try again when others have taken their place`,
);

export const tensorGaps = defineError(
  'TW_WRANGLE_STORED_GAPS',
  400,
  'The stored numbers of a band have no nodata value, and pixels of it have no data, so that an array of stored numbers cannot mark them. Request physical values.',
  (geocode: string, band: string) =>
    `pixels of ${band} in cell ${geocode} have no data, and no stored number marks them: leave out --stored`,
);

export const nothingToExport = defineError(
  'TW_WRANGLE_EXPORT_NOTHING',
  404,
  'No tile matches the filter of an export, no selected tile was made by a model of the layer, or none has a value of the bands. The message says which; a layer has tiles after `tilewright train` and `tilewright predict`.',
  (reason: string) => `there is nothing to export: ${reason}`,
);

export const exportGrids = defineError(
  'TW_WRANGLE_EXPORT_GRIDS',
  400,
  'The tiles to export belong to different grids, which have different coordinate systems. Select one collection.',
  (grids: string[]) =>
    `the tiles belong to the grids ${grids.join(' and ')}, which have different coordinate systems: select one collection`,
);

export const exportCollections = defineError(
  'TW_WRANGLE_EXPORT_COLLECTIONS',
  400,
  'The tiles to export belong to several collections, and the filter names none of these. Name the collections that the image should contain.',
  (collections: string[]) =>
    `the tiles belong to the collections ${collections.join(' and ')}: name those that the image should contain, such as --collection ${collections[0]}`,
);

export const exportTooLarge = defineError(
  'TW_WRANGLE_EXPORT_SIZE',
  400,
  'The exported image would be larger than 512 MB. Select a smaller area. An image cannot cross the antimeridian: export each side of it.',
  (width: number, height: number, bands: number) =>
    `the image would have ${width} x ${height} pixels in ${bands} band(s), more than 512 MB: select a smaller area with --bbox, and export each side of the antimeridian on its own`,
);
