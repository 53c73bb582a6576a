/** Metrics whose values are read from the state of a node at the moment of a request. */
import { Counter, Gauge, Registry } from 'prom-client';

type Labels = Record<string, string>;
/** A number, or a value for each set of labels. Without any set, the metric is left out: it would have a value 0 without labels. */
type Value = number | { labels: Labels; value: number }[];

/** Names begin with `tilewright_`, which is added here. */
export class Snapshot {
  private readonly registry = new Registry();

  gauge(name: string, help: string, value: Value): void {
    if (samplesOf(value).length === 0) return;
    const gauge = new Gauge(this.configuration(name, help, value));
    for (const sample of samplesOf(value)) gauge.set(sample.labels, sample.value);
  }

  counter(name: string, help: string, value: Value): void {
    if (samplesOf(value).length === 0) return;
    const counter = new Counter(this.configuration(name, help, value));
    for (const sample of samplesOf(value)) counter.inc(sample.labels, sample.value);
  }

  /** In the text format of Prometheus. */
  text(): Promise<string> {
    return this.registry.metrics();
  }

  private configuration(name: string, help: string, value: Value) {
    const labelNames = Object.keys(samplesOf(value)[0]?.labels ?? {});
    return { name: `tilewright_${name}`, help, labelNames, registers: [this.registry] };
  }
}

const samplesOf = (value: Value) => (typeof value === 'number' ? [{ labels: {}, value }] : value);
