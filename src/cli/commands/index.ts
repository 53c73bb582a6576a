/**
 * The commands, one per file. Each is loaded by name, so that a command does not load the code of the others. Imports `cli/options`,
 * `cli/output`, `client`, and types of the parts.
 */
import type { Command } from 'commander';

export const COMMANDS: Record<string, () => Promise<Command>> = {
  demo: async () => (await import('./demo.js')).demoCommand(),
  serve: async () => (await import('./serve.js')).serveCommand(),
  ingest: async () => (await import('./ingest.js')).ingestCommand(),
  search: async () => (await import('./search.js')).searchCommand(),
  series: async () => (await import('./series.js')).seriesCommand(),
  spectrum: async () => (await import('./spectrum.js')).spectrumCommand(),
  fill: async () => (await import('./derive/fill.js')).fillCommand(),
  split: async () => (await import('./derive/split.js')).splitCommand(),
  coalesce: async () => (await import('./derive/coalesce.js')).coalesceCommand(),
  analyse: async () => (await import('./analyse/index.js')).analyseCommand(),
  tensor: async () => (await import('./derive/tensor.js')).tensorCommand(),
  train: async () => (await import('./training/train.js')).trainCommand(),
  compare: async () => (await import('./compare.js')).compareCommand(),
  texture: async () => (await import('./training/texture.js')).textureCommand(),
  similar: async () => (await import('./training/similar.js')).similarCommand(),
  predict: async () => (await import('./training/predict.js')).predictCommand(),
  models: async () => (await import('./training/models.js')).modelsCommand(),
  jobs: async () => (await import('./jobs.js')).jobsCommand(),
  info: async () => (await import('./info.js')).infoCommand(),
  delete: async () => (await import('./delete.js')).deleteCommand(),
  node: async () => (await import('./cluster/node.js')).nodeCommand(),
  verify: async () => (await import('./verify.js')).verifyCommand(),
  completion: async () => (await import('./completion.js')).completionCommand(allCommands),
};

export const allCommands = (): Promise<Command[]> =>
  Promise.all(Object.values(COMMANDS).map((make) => make()));
