/** Preloaded by servers: a checkpoint of a training is due after a tenth of a second, because the clock of training processes is faster. */
const FACTOR = 50;

if (/training\/(train-worker|distributed\/worker)\.bundle\.js$/.test(process.argv[1] ?? '')) {
  const now = performance.now.bind(performance);
  performance.now = () => FACTOR * now();
}
