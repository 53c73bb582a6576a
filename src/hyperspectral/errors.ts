/** Errors of analyses. */
import { defineError } from '../errors.js';

const rounded = (value: number) => Number(value.toPrecision(3));

export const noSimd = defineError(
  'TW_ANALYSIS_NO_SIMD',
  501,
  'Analyses need a processor with WebAssembly SIMD. All processors that run Node 20 on x86-64 or arm64 have it.',
  () => 'this machine has no WebAssembly SIMD, which analyses need',
);

export const tooFewPixels = defineError(
  'TW_ANALYSIS_TOO_FEW_PIXELS',
  422,
  'A covariance needs two pixels that have data in every band. Choose a larger area, or fewer bands.',
  (found: number, counted = 'pixels') =>
    `${found} ${counted} have data in every band, and a covariance needs 2`,
);

export const oneCollection = defineError(
  'TW_ANALYSIS_COLLECTION',
  400,
  'An analysis reads the tiles of one collection. Name exactly one.',
  (count: number) => `an analysis reads one collection, and the filter names ${count}`,
);

export const singularCovariance = defineError(
  'TW_ANALYSIS_SINGULAR',
  422,
  'The covariance has no inverse: a band is constant, or a copy or linear combination of other bands. Choose other bands.',
  (bands: number, pixels: number) =>
    `the covariance of ${bands} bands over ${pixels} pixels has no inverse: a band is constant, or a copy or linear combination of other bands; choose other bands`,
);

export const singularNoise = defineError(
  'TW_ANALYSIS_SINGULAR_NOISE',
  422,
  'The covariance of the noise has no inverse: bands are copies of each other, or there are fewer pairs of neighbouring pixels than bands. Choose fewer bands, or a larger area.',
  (bands: number) =>
    `the covariance of the noise of ${bands} bands has no inverse; choose fewer bands, or a larger area`,
);

export const badLibrary = defineError(
  'TW_ANALYSIS_LIBRARY',
  422,
  'A spectral library cannot be used; the message names the file or the spectrum. A library is an ENVI spectral library, or a CSV with a column of wavelengths and one column for each spectrum.',
  (path: string, what: string) => `${path} cannot be used as a spectral library: ${what}`,
);

export const libraryShape = defineError(
  'TW_ANALYSIS_LIBRARY_SPECTRUM',
  422,
  'A spectrum of a library cannot be used; the message names it and the reason.',
  (name: string, what: string) => `the spectrum ${JSON.stringify(name)} cannot be used: ${what}`,
);

export const libraryRange = defineError(
  'TW_ANALYSIS_LIBRARY_RANGE',
  422,
  'The library covers less than half of the bands. Choose the bands that it covers, or another library.',
  (wavelengths: number[], covered: number, bands: { wavelength: number }[]) => {
    const range = (values: number[]) => `${Math.min(...values)} to ${Math.max(...values)} nm`;
    return `the library (${range(wavelengths)}) covers ${covered} of ${bands.length} bands (${range(bands.map(({ wavelength }) => wavelength))}); choose bands that it covers, or another library`;
  },
);

export const dependentEndmembers = defineError(
  'TW_ANALYSIS_DEPENDENT',
  422,
  'An endmember is a mixture or a copy of others, so abundances are not defined. Leave it out, or request fewer endmembers.',
  () =>
    'an endmember is a mixture or a copy of others, so abundances are not defined; leave it out, or request fewer endmembers',
);

export const fewEndmembers = defineError(
  'TW_ANALYSIS_FEW_ENDMEMBERS',
  422,
  'The pixels do not differ enough for the requested number of endmembers. Request fewer, or choose a larger area.',
  (wanted: number, found: number) =>
    `the pixels do not differ enough for ${wanted} endmembers${found > 0 ? `, but for ${found}` : ''}; request fewer, or choose a larger area`,
);

export const fewClusters = defineError(
  'TW_ANALYSIS_FEW_CLUSTERS',
  422,
  'The pixels have fewer different spectra than the requested number of clusters. Request fewer, or choose a larger area.',
  (wanted: number, found: number) =>
    `the pixels have ${found} different spectra, and ${wanted} clusters were requested; request fewer, or choose a larger area`,
);

export const badWindow = defineError(
  'TW_ANALYSIS_WINDOW',
  400,
  'The windows of local anomalies cannot be used; the message says why. Their sides must be odd, the inner one smaller, with at least two pixels per component between them.',
  (what: string) => `the windows of local anomalies cannot be used: ${what}`,
);

export const libraryOrCount = defineError(
  'TW_ANALYSIS_ENDMEMBERS',
  400,
  'Unmixing takes either a number of endmembers to find, or a library of them.',
  () => 'give either the number of endmembers to find, or a library of them',
);

export const badLabels = defineError(
  'TW_ANALYSIS_LABELS',
  422,
  'Labels cannot be used; the message says why. They are a raster of integers from 1 to 254 (0 for no label), or a GeoJSON FeatureCollection whose features have a property "class".',
  (what: string) => `the labels cannot be used: ${what}`,
);

export const fewLabels = defineError(
  'TW_ANALYSIS_FEW_LABELS',
  422,
  'A classifier needs labelled pixels of two classes, each in two places. Label more pixels in more places, or score it on random pixels, which overestimates the accuracy.',
  (what: string, advice: string) =>
    `a classifier needs labelled pixels of two classes, each in two places: ${what}; ${advice}`,
);

export const unknownIndex = defineError(
  'TW_ANALYSIS_INDEX',
  400,
  'An index is not in the library and is not an expression over bands; the message lists the library.',
  (text: string, why: string, known: readonly string[]) =>
    `the index ${JSON.stringify(text)} cannot be computed: ${why}; give an expression over bands such as (860nm - 660nm) / (860nm + 660nm), or one of ${known.join(', ')}`,
);

export const indexBands = defineError(
  'TW_ANALYSIS_INDEX_BANDS',
  422,
  'An index needs a wavelength that has no band within the FWHM of the band, or within 15 nm if that is more. Choose other indices, or other bands.',
  (missing: string[]) => `the bands do not cover the indices: ${missing.join('; ')}; choose other indices`,
);

export const badSmoothing = defineError(
  'TW_ANALYSIS_SMOOTHING',
  400,
  'The window of a smoothing cannot be used: it must have an odd number of bands, more than the order of the polynomial, and the order must be at least that of the derivative.',
  (window: number, order: number, derivative: number) =>
    `a window of ${window} bands with a polynomial of order ${order} cannot give derivative ${derivative}: the window must be odd and larger than the order, and the order must be at least that of the derivative`,
);

export const shortRuns = defineError(
  'TW_ANALYSIS_SHORT_RUNS',
  422,
  'No run of bands is as long as the window. A run consists of consecutive bands of the file in order of wavelength, without a jump back or a gap. Choose a smaller window, or more bands.',
  (window: number, longest: number) =>
    `no run of bands without a jump or a gap has ${window} bands, the longest has ${longest}; choose a smaller window, or more bands`,
);

export const sensorNeeded = defineError(
  'TW_ANALYSIS_SENSOR',
  400,
  'Resampling takes either the name of a sensor, or the bands of one.',
  () => 'give either the name of a sensor, or the bands of one',
);

export const badSensorFile = defineError(
  'TW_ANALYSIS_SENSOR_FILE',
  422,
  'A file with the bands of a sensor cannot be used; the message names the reason. It is a CSV of two columns, the centre and the FWHM of each band.',
  (path: string, what: string) => `${path} does not contain the bands of a sensor: ${what}`,
);

export const sensorRange = defineError(
  'TW_ANALYSIS_SENSOR_RANGE',
  422,
  'The bands of the collection cover no band of the sensor.',
  (sensor: string, low: number, high: number) => `bands from ${low} to ${high} nm cover no band of ${sensor}`,
);

export const emptyRange = defineError(
  'TW_ANALYSIS_RANGE',
  422,
  'A continuum needs at least 3 bands within its range. Choose a wider range, or more bands.',
  (found: number, range: readonly [low: number, high: number] | undefined) =>
    range
      ? `${found} bands lie between ${range[0]} and ${range[1]} nm, and a continuum needs 3; choose a wider range, or more bands`
      : `${found} bands are analysed, and a continuum needs 3; choose more bands`,
);

export const reversedRange = defineError(
  'TW_ANALYSIS_RANGE_ORDER',
  400,
  'A range of wavelengths does not begin with the shorter wavelength. Give the shorter wavelength first.',
  (from: number, to: number) => `the range ${from} to ${to} nm is empty; give the shorter wavelength first`,
);

export const noSpectra = defineError(
  'TW_ANALYSIS_NO_SPECTRA',
  422,
  'No tile that matches the filter has a spectrum: a group of at least 16 bands that all have a wavelength. The message names the reasons.',
  (collection: string, reasons: string[]) =>
    `no tile of ${JSON.stringify(collection)} that matches can be analysed${reasons.length > 0 ? `: ${reasons.join('; ')}` : ''}`,
);

export const tileAnalysisFailed = defineError(
  'TW_ANALYSIS_TILE',
  500,
  'A tile could not be analysed; the message names the reason. The other tiles are analysed.',
  (tile: string, detail: string) => `${tile} could not be analysed: ${detail}`,
);

export const tilesChangedWhileReading = defineError(
  'TW_ANALYSIS_CHANGED',
  409,
  'Tiles were deleted or replaced while an analysis read them, so its passes would read different pixels. Run it again.',
  (collection: string) =>
    `tiles of ${JSON.stringify(collection)} were deleted or replaced while they were analysed; run the analysis again`,
);

export const noTileAnalysed = defineError(
  'TW_ANALYSIS_ALL_FAILED',
  500,
  'No tile could be analysed; the message names the first reasons.',
  (count: number, reasons: string[]) => `no tile was analysed, ${count} failed: ${reasons.join('; ')}`,
);

export const damagedClassifier = defineError(
  'TW_ANALYSIS_CLASSIFIER',
  422,
  'A stored classifier cannot be used. The message says why. Train it again, or delete it.',
  (id: string, reason: string) =>
    `the classifier ${id} cannot be used: ${reason}; train it again, or delete it`,
);

export const otherScale = defineError(
  'TW_ANALYSIS_OTHER_SCALE',
  422,
  'A classifier that was trained on reflectance is applied to larger numbers, or vice versa. Ingest the collection whose numbers have no scale again with `--scale`, and train again if the classifier was trained on it.',
  (found: number, trained: number) => {
    const means = `the brightest band has a mean of ${rounded(found)} here and ${rounded(trained)} where the classifier was trained`;
    return found > trained
      ? `${means}; ingest this collection again with the scale that turns its numbers into reflectance, such as --scale 0.0001`
      : `${means}; ingest the collection of the training again with the scale that turns its numbers into reflectance, such as --scale 0.0001, and train again`;
  },
);

export const noLabelTiles = defineError(
  'TW_ANALYSIS_LABEL_TILES',
  422,
  'A tile of the collection of labels has no codes. Codes come from rasters with a colour table, from bands with classification:classes, and from classify.',
  (tile: string) =>
    `the tile ${tile} has no codes; labels come from rasters with a colour table, from bands with classification:classes, and from classify`,
);

export const netFailed = defineError(
  'TW_ANALYSIS_NET',
  500,
  'A neural network could not be trained or applied; the message says why.',
  (reason: string) => `the network could not be trained or applied: ${reason}`,
);

export const netOption = defineError(
  'TW_ANALYSIS_NET_OPTION',
  400,
  'Epochs apply only to the classifiers cnn1d and resnet3d. Choose one of them, or leave the option out.',
  () => 'epochs apply only to the classifiers cnn1d and resnet3d; choose one of them',
);
