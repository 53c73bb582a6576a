/** The parts that mutation tests change, and for each part the fast test files that cover it. `mutate` are paths below `dist`. */
export interface Part {
  mutate: string[];
  tests: string[];
  /** Words of the names of tests that do not run: code that counts its coverage is up to a thousand times slower in loops over pixels. */
  leaveOut?: string[];
}

const SLOW_SEARCHES = [
  'a search by ids',
  'pages give every tile',
  'searches of several indexes',
  'takes too long',
];

export const PARTS: Record<string, Part> = {
  geocode: {
    mutate: ['src/geocode/!(errors|grid|index).js'],
    tests: [
      'geocode/axis',
      'geocode/ground',
      'geocode/grid',
      'geocode/area',
      'geocode/pixel-sizes',
      'geocode/cover-region',
    ],
  },
  cql2: {
    mutate: ['src/query/cql2/*.js'],
    tests: [
      'query/parse-filter',
      'query/sent-filter',
      'query/temporal',
      'query/expressions',
      'query/filter-parts',
      'query/cql2',
      'query/cql2-limits',
      'query/cql2-messages',
    ],
    leaveOut: ['CASEI equals the full', 'for every character', 'too deep, too long'],
  },
  filter: {
    mutate: ['src/query/filter/!(properties).js'],
    tests: [
      'query/temporal',
      'query/parse-filter',
      'query/sent-filter',
      'query/expressions',
      'query/cql2',
      'query/filter-parts',
      'query/plan-bounds',
      'query/cql2-limits',
      'query/search',
    ],
    leaveOut: ['CASEI equals the full', 'for every character', 'too deep, too long', ...SLOW_SEARCHES],
  },
  query: {
    mutate: ['src/query/{parse-*,sort,token,longitude-first,collection-extents,geometry/*}.js'],
    tests: [
      'query/temporal',
      'query/parse-filter',
      'query/sent-filter',
      'query/sort-token',
      'query/collection-extents',
      'query/cql2',
      'query/spatial',
      'query/filter-parts',
      'query/parameters',
      'query/cql2-messages',
      'query/search',
    ],
    leaveOut: ['a ring that crosses itself', 'too deep, too long', ...SLOW_SEARCHES],
  },
  raster: {
    mutate: [
      'src/raster/{affine,kernels,mask,pixels,validity,warp/!(bilinear-simd)}.js',
      'src/raster/write/overviews.js',
    ],
    tests: [
      'raster/kernels',
      'raster/mask',
      'raster/squares',
      'raster/control-grid',
      'raster/warp-window',
      'raster/warp-edges',
      'raster/validity',
      'raster/bilinear-simd',
      'raster/warp',
    ],
    leaveOut: ['a large UTM scene', 'the SIMD kernel gives the same'],
  },
  expression: {
    mutate: ['src/imagery/expression/*.js'],
    tests: ['imagery/expression'],
  },
  colours: {
    mutate: ['src/imagery/colours/!(index|table).js'],
    tests: ['imagery/colours', 'imagery/legends'],
  },
  sampling: {
    mutate: ['src/imagery/{median,resampling/*}.js'],
    tests: ['imagery/median', 'imagery/cell-view', 'imagery/sample'],
  },
  wrangle: {
    mutate: ['src/wrangle/{cell-sizes,match-bands,npy,resample,splice}.js'],
    tests: ['wrangle/image-cache', 'wrangle/pixels'],
  },
  metrics: {
    mutate: ['src/training/{evaluate,image-metrics,image-scores}.js'],
    tests: ['training/evaluate', 'training/image-metrics', 'training/image-scores'],
    leaveOut: [
      'pixels that do not count have no say',
      '128 x 128',
      '200 x 181',
      'x 176',
      'of five scales',
      'have a PSNR of the whole patch',
    ],
  },
};
