/** The pairs of scenarios and faults. */
import { type Fault, faults } from './faults/index.js';
import { type Scenario, scenarios } from './scenarios/index.js';

export interface ScenarioFaultPair {
  name: string;
  scenario: Scenario;
  fault: Fault;
}

export function pairOf(name: string): ScenarioFaultPair | undefined {
  const [first, second] = name.split('+');
  const scenario = scenarios.find((one) => one.name === first);
  const fault = faults.find((one) => one.name === second);
  return scenario && fault && { name, scenario, fault };
}

export const allPairs: ScenarioFaultPair[] = scenarios.flatMap((scenario) =>
  faults.map((fault) => ({ name: `${scenario.name}+${fault.name}`, scenario, fault })),
);

/** The pairs of every run, with all scenarios and most faults. Other pairs are chosen at random (`--hours`, `--pairs`). */
export const namedPairs: ScenarioFaultPair[] = [
  'leave+kill',
  'replace-down+etcd-leader',
  'drain+partition',
  'steady+store-away',
  'join+kill',
  'empty-disk+store-hangs',
  'steady+partition',
  'replace-up+pause',
  'steady+clock',
  'join+slow-disk',
  'restart+placement',
  'steady+etcd-leader',
  'steady+restore',
  'steady+etcd-answers',
  'steady+kill-children',
  'steady+checkpoints',
].map((name) => pairOf(name)!);
