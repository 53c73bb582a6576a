/**
 * The commands. Each is loaded by name, so that a command does not load the code of the others. Imports files of a folder
 * above, the folders `compare`, `demo`, `options` and `output` and the parts `api`, `async`, `client`, `coordination`, `derive` (types),
 * `dht`, `engines`, `grid`, `html`, `hyperspectral`, `ingest`, `jobs` (types), `node.ts`, `storage` and `training`.
 */
import type { Command } from 'commander';

export const COMMANDS: Record<string, () => Promise<Command>> = {
  demo: async () => (await import('./demo-command.js')).demoCommand(),
  serve: async () => (await import('./serve-command.js')).serveCommand(),
  ingest: async () => (await import('./ingest-command.js')).ingestCommand(),
  subscribe: async () => (await import('./jobs/index.js')).subscribeCommand(),
  subscriptions: async () => (await import('./jobs/index.js')).subscriptionsCommand(),
  search: async () => (await import('./search-command.js')).searchCommand(),
  series: async () => (await import('./analyse/series-command.js')).seriesCommand(),
  spectrum: async () => (await import('./analyse/spectrum-command.js')).spectrumCommand(),
  fill: async () => (await import('./derive/derive-commands.js')).fillCommand(),
  split: async () => (await import('./derive/derive-commands.js')).splitCommand(),
  coalesce: async () => (await import('./derive/derive-commands.js')).coalesceCommand(),
  analyse: async () => (await import('./analyse/index.js')).analyseCommand(),
  tensor: async () => (await import('./derive/tensor-command.js')).tensorCommand(),
  export: async () => (await import('./derive/export-command.js')).exportCommand(),
  train: async () => (await import('./training/train-command.js')).trainCommand(),
  compare: async () => (await import('./compare-command.js')).compareCommand(),
  texture: async () => (await import('./training/texture-command.js')).textureCommand(),
  similar: async () => (await import('./analyse/similar-command.js')).similarCommand(),
  predict: async () => (await import('./training/predict-command.js')).predictCommand(),
  check: async () => (await import('./training/check-command.js')).checkCommand(),
  models: async () => (await import('./training/models-command.js')).modelsCommand(),
  jobs: async () => (await import('./jobs/index.js')).jobsCommand(),
  info: async () => (await import('./info-command.js')).infoCommand(),
  delete: async () => (await import('./delete-command.js')).deleteCommand(),
  node: async () => (await import('./cluster/node-command.js')).nodeCommand(),
  verify: async () => (await import('./verify-command.js')).verifyCommand(),
  completion: async () => (await import('./completion-command.js')).completionCommand(allCommands),
};

export const allCommands = (): Promise<Command[]> =>
  Promise.all(Object.values(COMMANDS).map((make) => make()));
