/** The text format of Prometheus, version 0.0.4, read strictly: https://prometheus.io/docs/instrumenting/exposition_formats/ */
import assert from 'node:assert/strict';

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const LABEL = String.raw`[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"`;
const VALUE = String.raw`[+-]?(?:Inf|\d+(?:\.\d+)?(?:e[+-]?\d+)?)|NaN`;
const SAMPLE = new RegExp(`^(${NAME})(\\{${LABEL}(?:,${LABEL})*\\})? (${VALUE})$`);
const SUFFIXES: Record<string, RegExp> = { histogram: /_(bucket|sum|count)$/, summary: /_(sum|count)$/ };

/** Samples by their name with labels. Fails if the text violates the format. */
export function parsePrometheus(text: string): Map<string, number> {
  assert.ok(text.endsWith('\n'), 'the last line ends');
  const samples = new Map<string, number>();
  const types = new Map<string, string>();
  const helps = new Set<string>();
  let current = '';
  for (const line of text.slice(0, -1).split('\n')) {
    // Empty lines are ignored.
    if (line === '') continue;
    const [, kind, name = '', rest = ''] = new RegExp(`^# (HELP|TYPE) (${NAME}) (.+)$`).exec(line) ?? [];
    if (kind === 'HELP') {
      assert.ok(!helps.has(name), `${name} is explained twice`);
      helps.add(name);
      current = name;
    } else if (kind === 'TYPE') {
      assert.ok(!types.has(name), `${name} has two types`);
      assert.match(rest, /^(counter|gauge|histogram|summary|untyped)$/);
      assert.equal(name, current, 'the type follows the explanation');
      types.set(name, rest);
    } else {
      const [, sample = '', labels = '', value = ''] = SAMPLE.exec(line) ?? [];
      assert.notEqual(sample, '', `no line of the format: ${line}`);
      const type = types.get(current)!;
      const family = sample === current ? sample : sample.replace(SUFFIXES[type] ?? /^$/, '');
      assert.equal(family, current, `${sample} stands below another metric`);
      assert.ok(!samples.has(sample + labels), `${sample}${labels} is there twice`);
      samples.set(sample + labels, Number(value.replace('Inf', 'Infinity')));
    }
  }
  for (const [name, type] of types) if (type === 'histogram') checkHistogram(name, samples);
  return samples;
}

/** Checks that the buckets ascend and the last one has the total. */
function checkHistogram(name: string, samples: Map<string, number>): void {
  const series = new Map<string, number[]>();
  for (const [key, value] of samples) {
    if (!key.startsWith(`${name}_bucket{`)) continue;
    const others = key.slice(`${name}_bucket{`.length, -1).replace(/,?le="[^"]*",?/, '');
    const labels = others === '' ? '' : `{${others}}`;
    series.set(labels, [...(series.get(labels) ?? []), value]);
  }
  for (const [labels, classes] of series) {
    assert.ok(samples.has(`${name}_sum${labels}`), `${name}${labels} has no sum`);
    assert.deepEqual(
      classes,
      classes.toSorted((a, b) => a - b),
    );
    assert.equal(classes.at(-1), samples.get(`${name}_count${labels}`), name + labels);
  }
}
