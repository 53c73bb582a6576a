/** The commands. Each is loaded by name, so that a command does not load the code of the others. */
import type { Command } from 'commander';

export const COMMANDS: Record<string, () => Promise<Command>> = {
  demo: async () => (await import('./demo.js')).demoCommand(),
  serve: async () => (await import('./serve.js')).serveCommand(),
  ingest: async () => (await import('./ingest.js')).ingestCommand(),
  subscribe: async () => (await import('./subscriptions.js')).subscribeCommand(),
  subscriptions: async () => (await import('./subscriptions.js')).subscriptionsCommand(),
  search: async () => (await import('./search.js')).searchCommand(),
  series: async () => (await import('./series.js')).seriesCommand(),
  spectrum: async () => (await import('./series.js')).spectrumCommand(),
  fill: async () => (await import('./derive.js')).fillCommand(),
  split: async () => (await import('./derive.js')).splitCommand(),
  coalesce: async () => (await import('./derive.js')).coalesceCommand(),
  analyse: async () => (await import('./analyse.js')).analyseCommand(),
  tensor: async () => (await import('./tensor.js')).tensorCommand(),
  export: async () => (await import('./export.js')).exportCommand(),
  train: async () => (await import('./train.js')).trainCommand(),
  compare: async () => (await import('./compare.js')).compareCommand(),
  texture: async () => (await import('./texture.js')).textureCommand(),
  similar: async () => (await import('./texture.js')).similarCommand(),
  predict: async () => (await import('./predict.js')).predictCommand(),
  score: async () => (await import('./score.js')).scoreCommand(),
  check: async () => (await import('./check.js')).checkCommand(),
  models: async () => (await import('./models.js')).modelsCommand(),
  jobs: async () => (await import('./jobs.js')).jobsCommand(),
  info: async () => (await import('./info.js')).infoCommand(),
  delete: async () => (await import('./delete.js')).deleteCommand(),
  node: async () => (await import('./node.js')).nodeCommand(),
  verify: async () => (await import('./verify.js')).verifyCommand(),
  completion: async () => (await import('./completion.js')).completionCommand(allCommands),
};

export const allCommands = (): Promise<Command[]> =>
  Promise.all(Object.values(COMMANDS).map((make) => make()));
